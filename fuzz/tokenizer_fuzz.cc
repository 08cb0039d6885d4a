// libFuzzer target: tokenizer files and texts from anywhere. The first byte says what the rest is.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "heed/error.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/train_byte_pair.h"

namespace {

const heed::Tokenizer& small_tokenizer() {
  static const auto tokenizer = [] {
    const std::string_view text = "the cat sat on the mat, the cat's mat; aaaa aaaaaaaa 注意 注意";
    return heed::train_byte_pair_tokenizer(std::span(&text, 1),
                                           {.vocabulary_size = 290, .min_frequency = 1});
  }();
  return *tokenizer;
}

// Bytes of the good file that a fuzzed piece takes the place of; the place is in its first bytes.
std::string spliced(std::string good, std::string_view bytes) {
  if (bytes.size() < 3) return good;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const std::size_t place = (byte(0) * std::size_t{256} + byte(1)) % good.size();
  return good.replace(place, byte(2), bytes.substr(3));
}

void round_trip(const heed::Tokenizer& tokenizer, std::string_view text) {
  for (const bool special : {true, false}) {
    const auto ids = tokenizer.encode(text, {.special_tokens = special});
    if (tokenizer.decode(ids) != text) std::abort();
    const auto spans = tokenizer.encode_with_offsets(text, {.special_tokens = special});
    if (spans.size() != ids.size()) std::abort();
  }
}

void parse_json(std::string_view text) {
  const auto tokenizer = heed::parse_tokenizer_json(text, "fuzzed");
  if (heed::parse_tokenizer_json(tokenizer->to_json(), "saved")->content_key() !=
      tokenizer->content_key()) {
    std::abort();
  }
  if (tokenizer->kind() == heed::TokenizerKind::byte_pair) round_trip(*tokenizer, text);
}

std::string good_vocabulary() {
  std::string text = small_tokenizer().to_json();
  const std::size_t begin = text.find('{', text.find("\"vocab\""));
  return text.substr(begin, text.find('}', text.find("<|endoftext|>", begin)) + 1 - begin);
}

constexpr std::string_view good_merges = "#version: 0.2\nt h\nth e\na t\n";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  static const std::string json = small_tokenizer().to_json();
  static const std::string vocabulary = good_vocabulary();
  try {
    switch (data[0] % 6) {
      case 0: parse_json(rest); break;
      case 1: parse_json(spliced(json, rest)); break;
      case 2: round_trip(small_tokenizer(), rest); break;
      case 3: {
        const auto tokenizer = heed::parse_vocabulary_and_merges(
            {.vocabulary = vocabulary, .merges = spliced(std::string(good_merges), rest)});
        round_trip(*tokenizer, rest);
        break;
      }
      case 4: {
        const auto tokenizer = heed::parse_vocabulary_and_merges(
            {.vocabulary = spliced(vocabulary, rest), .merges = good_merges});
        round_trip(*tokenizer, rest);
        break;
      }
      default: {
        const auto trained = heed::train_byte_pair_tokenizer(
            std::span(&rest, 1), {.vocabulary_size = 300, .min_frequency = 1});
        round_trip(*trained, rest);
        parse_json(trained->to_json());
      }
    }
  } catch (const heed::Error& error) {
    if (error.code() == heed::ErrorCode::internal) std::abort();
  }
  return 0;
}
