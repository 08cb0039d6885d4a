// libFuzzer target: SentencePiece models, WordPiece and Unigram files, and character maps from
// anywhere. The first byte says what the rest is.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "allowed_errors.h"
#include "heed/error.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/sentence_piece_tokenizer.h"
#include "tokenizer/small_published.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/train_byte_pair.h"
#include "tokenizer/word_piece_tokenizer.h"

namespace {

constexpr std::string_view probe =
    "The  \uFB01ne cats, e\u0301 \u6CE8\xFF@@ [MASK]<extra_id_0> t\r\n";

// Bytes of the good file that a fuzzed piece takes the place of; the place is in its first bytes.
std::string spliced(std::string good, std::string_view bytes) {
  if (bytes.size() < 3) return good;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const std::size_t place = (byte(0) * std::size_t{256} + byte(1)) % good.size();
  return good.replace(place, byte(2), bytes.substr(3));
}

void encode_in_all_ways(const heed::Tokenizer& tokenizer, std::string_view text) {
  for (const bool special : {true, false}) {
    const heed::EncodeOptions options = {
        .special_tokens = special, .add_beginning = special, .add_ending = special};
    const auto ids = tokenizer.encode(text, options);
    const auto spans = tokenizer.encode_with_offsets(text, options);
    if (spans.size() != ids.size()) std::abort();
    std::size_t end = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const bool in_order = spans[i].begin >= end && spans[i].end >= spans[i].begin;
      if (spans[i].id != ids[i] || !in_order || spans[i].end > text.size()) std::abort();
      end = spans[i].end;
    }
    tokenizer.decode(ids, {.special_tokens = special});
  }
}

// What is accepted is saved and read back as the same.
void try_json(std::string_view json) {
  const auto tokenizer = heed::parse_tokenizer_json(json, "fuzzed");
  encode_in_all_ways(*tokenizer, probe);
  encode_in_all_ways(*tokenizer, json.substr(0, 300));
  const auto saved = heed::parse_tokenizer_json(tokenizer->to_json(), "saved");
  if (saved->content_key() != tokenizer->content_key()) std::abort();
  if (saved->encode(probe) != tokenizer->encode(probe)) std::abort();
}

void try_sentence_piece(const std::string& model) {
  const heed::SentencePieceTokenizer tokenizer(heed::plain_definition(model, "x.model", "fuzzed"),
                                               "fuzzed");
  encode_in_all_ways(tokenizer, probe);
}

void try_charsmap(std::string_view bytes) {
  const heed::Charsmap map(bytes, "fuzzed");
  for (int byte = 0; byte < 256; ++byte) {
    map.replacement(std::string(1, static_cast<char>(byte)) + "\xAC\x81");
  }
}

void try_good_tokenizers(std::string_view text) {
  static const std::string models[] = {heed::small_sentence_piece(1),
                                       heed::small_sentence_piece(2)};
  static const std::unique_ptr<heed::Tokenizer> tokenizers[] = {
      heed::parse_tokenizer_json(heed::small_word_piece_document().dump(), "good"),
      heed::parse_tokenizer_json(heed::small_unigram_document().dump(), "good"),
      std::make_unique<heed::SentencePieceTokenizer>(heed::plain_definition(models[0], "x", "good"),
                                                     "good"),
      std::make_unique<heed::SentencePieceTokenizer>(heed::plain_definition(models[1], "x", "good"),
                                                     "good")};
  for (const auto& tokenizer : tokenizers) encode_in_all_ways(*tokenizer, text);
}

// A joint vocabulary gives every text back.
void try_joint_vocabulary(std::string_view text) {
  const auto tokenizer = heed::learn_joint_vocabulary(std::span(&text, 1),
                                                      {.vocabulary_size = 300, .min_frequency = 1});
  const auto ids = tokenizer->encode(text, {.add_ending = true});
  if (tokenizer->decode(ids) != std::string(text) + "</s>") std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  static const std::string model = heed::small_sentence_piece();
  static const std::string charsmap = heed::small_charsmap();
  static const std::string word_pieces = heed::small_word_piece_document().dump();
  static const std::string unigram = heed::small_unigram_document().dump();
  heed::fuzz::allow_errors([&] {
    switch (data[0] % 9) {
      case 0: try_sentence_piece(std::string(rest)); break;
      case 1: try_sentence_piece(spliced(model, rest)); break;
      case 2: try_charsmap(rest); break;
      case 3: try_charsmap(spliced(charsmap, rest)); break;
      case 4: try_json(spliced(word_pieces, rest)); break;
      case 5: try_json(spliced(unigram, rest)); break;
      case 6:
        encode_in_all_ways(*heed::read_word_piece_lines("[UNK]\n" + std::string(rest), {}, "x"),
                           probe);
        break;
      case 7: try_good_tokenizers(rest); break;
      default: try_joint_vocabulary(rest);
    }
  });
  return 0;
}
