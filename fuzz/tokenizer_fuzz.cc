// libFuzzer target: tokenizer files and texts from anywhere. The first byte says what the rest is.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "allowed_errors.h"
#include "base/json.h"
#include "heed/error.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/train_byte_pair.h"
#include "tokenizer/words.h"

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

// Special tokens found in the whole text, in none of it, and in a part that the text's length
// names: only the last is something else.
void encode_in_ranges(const heed::Tokenizer& tokenizer, std::string_view text) {
  const heed::TextRange whole[] = {{0, text.size()}};
  if (tokenizer.encode(text, {.special_ranges = whole}) != tokenizer.encode(text)) std::abort();
  const std::span<const heed::TextRange> none;
  if (tokenizer.encode(text, {.special_ranges = none}) !=
      tokenizer.encode(text, {.special_tokens = false})) {
    std::abort();
  }
  const heed::TextRange parts[] = {{text.size() / 8, text.size() / 3},
                                   {text.size() / 2, text.size() - text.size() / 8}};
  const auto ids = tokenizer.encode(text, {.special_ranges = parts});
  if (tokenizer.encode_with_offsets(text, {.special_ranges = parts}).size() != ids.size()) {
    std::abort();
  }
}

// Spans must cover the text; encode_with_offsets() itself checks it. Cutting must change nothing.
std::vector<std::int32_t> encode_in_all_ways(const heed::Tokenizer& tokenizer,
                                             std::string_view text, bool special) {
  heed::EncodeOptions options = {.special_tokens = special};
  const auto ids = tokenizer.encode(text, options);
  if (special) encode_in_ranges(tokenizer, text);
  if (tokenizer.encode_with_offsets(text, options).size() != ids.size()) std::abort();
  std::size_t cut = text.size() / 2;
  while (!tokenizer.may_cut(text, cut)) ++cut;
  auto joined = tokenizer.encode(text.substr(0, cut), options);
  options.continues = cut > 0;
  const auto rest = tokenizer.encode(text.substr(cut), options);
  joined.insert(joined.end(), rest.begin(), rest.end());
  if (joined != ids) std::abort();
  return ids;
}

void round_trip(const heed::Tokenizer& tokenizer, std::string_view text) {
  for (const bool special : {true, false}) {
    if (tokenizer.decode(encode_in_all_ways(tokenizer, text, special)) != text) std::abort();
  }
}

// A tokenizer that may change texts (NFC, spaces, stripping) decodes to another one.
void parse_json(std::string_view text) {
  const auto tokenizer = heed::parse_tokenizer_json(text, "fuzzed");
  const auto saved = heed::parse_tokenizer_json(tokenizer->to_json(), "saved");
  if (saved->content_key() != tokenizer->content_key()) std::abort();
  if (tokenizer->kind() == heed::TokenizerKind::character) return;
  const auto ids = encode_in_all_ways(*tokenizer, text, true);
  if (saved->encode(text) != ids || saved->decode(ids) != tokenizer->decode(ids)) std::abort();
}

std::string good_vocabulary() {
  std::string text = small_tokenizer().to_json();
  const std::size_t begin = text.find('{', text.find("\"vocab\""));
  return text.substr(begin, text.find('}', text.find("<|endoftext|>", begin)) + 1 - begin);
}

// The steps of a pre-tokenizer that cut texts by a pattern.
std::string cutting_steps(heed::WordPattern pattern) {
  if (heed::sets_digits_apart(pattern)) {
    return fmt::format(R"({{"type": "Digits", "individual_digits": {}}}, )"
                       R"({{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}})",
                       pattern == heed::WordPattern::gpt2_digits);
  }
  return fmt::format(R"({{"type": "Split", "pattern": {{"Regex": {}}}, "behavior": "Isolated"}}, )"
                     R"({{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}})",
                     heed::Json(heed::word_pattern_text(pattern)).dump());
}

// The small tokenizer with other steps: form C, the pattern `index` of word_patterns, a template.
std::string published_json(std::size_t index) {
  std::string json = small_tokenizer().to_json();
  const auto put = [&](std::string_view key, const std::string& value) {
    const std::size_t begin = json.find(key) + key.size();
    json.replace(begin, json.find('\n', begin) - begin, value + ",");
  };
  put("\"normalizer\": ", R"({"type": "NFC"})");
  put("\"pre_tokenizer\": ", R"({"type": "Sequence", "pretokenizers": [)" +
                                 cutting_steps(heed::word_patterns[index]) + "]}");
  put("\"post_processor\": ",
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|endoftext|>"}}, )"
      R"({"Sequence": {"id": "A"}}], "special_tokens": {"<|endoftext|>": {"ids": [0]}}})");
  return json;
}

// LLaMA 2's steps around a few tokens: with the normaliser, or with the pre-tokenizer.
std::string metaspace_json(bool pre_tokenizer, bool bytes) {
  heed::Json vocabulary = {{"<unk>", 0}, {"<s>", 1}};
  const auto add = [&](const std::string& token) { vocabulary.emplace(token, vocabulary.size()); };
  for (int byte = 0; byte < 256 && bytes; ++byte) add(fmt::format("<0x{:02X}>", byte));
  for (const char* token : {"▁", "t", "h", "e", "o", "注", "▁t", "he", "▁the", "▁▁", "o▁"})
    add(token);
  return heed::Json{
      {"added_tokens",
       {{{"id", 1}, {"content", "<s>"}, {"special", true}, {"normalized", false}},
        {{"id", vocabulary.size()}, {"content", "<r>"}, {"rstrip", true}}}},
      {"normalizer",
       pre_tokenizer ? heed::Json() : heed::Json::parse(R"({"type": "Sequence", "normalizers": [
                           {"type": "Prepend", "prepend": "▁"},
                           {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]})")},
      {"pre_tokenizer", pre_tokenizer
                            ? heed::Json::parse(R"({"type": "Metaspace", "replacement": "▁",
                           "prepend_scheme": "first", "split": false})")
                            : heed::Json()},
      {"model",
       {{"type", "BPE"},
        {"unk_token", "<unk>"},
        {"fuse_unk", pre_tokenizer},
        {"byte_fallback", bytes},
        {"vocab", vocabulary},
        {"merges", {"▁ t", "h e", "▁t he", "▁ ▁", "o ▁"}}}}}
      .dump();
}

std::vector<std::unique_ptr<heed::Tokenizer>> published_tokenizers() {
  std::vector<std::unique_ptr<heed::Tokenizer>> all;
  for (std::size_t i = 0; i < heed::word_patterns.size(); ++i) {
    if (heed::word_patterns[i] == heed::WordPattern::gpt2) continue;  // small_tokenizer() is it
    all.push_back(heed::parse_tokenizer_json(published_json(i), "good"));
  }
  for (const bool pre_tokenizer : {false, true}) {
    for (const bool bytes : {false, true}) {
      all.push_back(heed::parse_tokenizer_json(metaspace_json(pre_tokenizer, bytes), "good"));
    }
  }
  return all;
}

// A tokenizer_config.json beside a good tokenizer. What it makes of that is saved and read back.
void parse_config(const std::string& tokenizer_json, std::string_view text) {
  const auto config = heed::TokenizerConfig::of(heed::parse_json(text, "fuzzed"));
  const auto tokenizer = heed::parse_tokenizer_json(tokenizer_json, "good", config);
  const auto saved = heed::parse_tokenizer_json(tokenizer->to_json(), "saved");
  if (saved->content_key() != tokenizer->content_key()) std::abort();
  const heed::EncodeOptions around = {.add_beginning = true, .add_ending = true};
  if (saved->encode(text, around) != tokenizer->encode(text, around)) std::abort();
}

constexpr std::string_view good_config =
    R"({"added_tokens_decoder": {"290": {"content": "<|im_end|>", "special": true, "rstrip": true},
    "291": {"content": "mat", "lstrip": true, "normalized": true}}, "bos_token": "<|im_end|>",
    "eos_token": {"content": "cat"}, "additional_special_tokens": ["the"], "add_bos_token": true,
    "add_eos_token": false})";

constexpr std::string_view good_merges = "#version: 0.2\nt h\nth e\na t\n";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  static const std::string json = small_tokenizer().to_json();
  static const std::string vocabulary = good_vocabulary();
  static const auto published = published_tokenizers();
  heed::fuzz::allow_errors([&] {
    switch (data[0] % 11) {
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
      case 5: {
        static const std::string metaspace = metaspace_json(false, true);
        parse_json(spliced(metaspace, rest));
        break;
      }
      case 6:
        parse_json(spliced(published_json(data[0] / 11 % heed::word_patterns.size()), rest));
        break;
      case 8: parse_config(json, rest); break;
      case 9: parse_config(json, spliced(std::string(good_config), rest)); break;
      case 7: {
        const heed::Tokenizer& tokenizer = *published[data[0] / 11 % published.size()];
        tokenizer.decode(encode_in_all_ways(tokenizer, rest, true));
        break;
      }
      default: {
        const auto trained = heed::train_byte_pair_tokenizer(
            std::span(&rest, 1), {.vocabulary_size = 300, .min_frequency = 1});
        round_trip(*trained, rest);
        parse_json(trained->to_json());
      }
    }
  });
  return 0;
}
