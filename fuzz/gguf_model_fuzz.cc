// Descriptions of models and tokenizers in the metadata of GGUF files: of any bytes, and of good
// files of which a piece is replaced. The first byte says which.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allowed_errors.h"
#include "base/error.h"
#include "formats/gguf_tokenizer.h"
#include "formats/small_gguf.h"
#include "tokenizer/sentence_piece_tokenizer.h"
#include "tokenizer/small_charsmap.h"
#include "tokenizer/small_metaspace.h"
#include "tokenizer/small_published.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/train_byte_pair.h"

namespace {

constexpr std::string_view probe = "The  cat, e\u0301 \u6CE8\xFF don't 1234 </s>\r\n";

// A header with the description of a model and a tokenizer.
std::string header_with(const heed::Tokenizer& tokenizer,
                        heed::GgufMetadata metadata = heed::testing::small_llama()) {
  heed::write_gguf_tokenizer(tokenizer, tokenizer.vocabulary_size(), {}, metadata);
  return heed::gguf_header(metadata, {});
}

// Of T5's kind: an end, an unknown token and a few pieces, with a map of characters.
heed::SentencePieceTokenizer small_sentence_pieces() {
  heed::SentencePieceModel model{.unknown = 2, .charsmap_bytes = heed::small_charsmap()};
  const heed::SentencePiece pieces[] = {{"<pad>", 0, heed::PieceKind::control},
                                        {"</s>", 0, heed::PieceKind::control},
                                        {"<unk>", 0, heed::PieceKind::unknown},
                                        {"\u2581the", -1},
                                        {"\u2581", -2},
                                        {"cat", -3},
                                        {"don", 0, heed::PieceKind::user_defined}};
  model.pieces.assign(std::begin(pieces), std::end(pieces));
  const std::string file = heed::write_sentence_piece_model(model);
  heed::SentencePieceDefinition definition = heed::plain_definition(file, "spiece.model", "good");
  definition.text_template.after = {1};
  return {std::move(definition), "good"};
}

const std::vector<std::string>& good_headers() {
  static const std::vector<std::string> headers = [] {
    const std::string_view text = "the cat sat on the mat and the cat ate the rat";
    return std::vector<std::string>{
        header_with(
            *heed::train_byte_pair_tokenizer(std::span(&text, 1), {.vocabulary_size = 270})),
        header_with(*heed::small_metaspace()),
        header_with(*heed::parse_tokenizer_json(heed::small_word_piece_document().dump(), "good"),
                    heed::testing::small_bert()),
        header_with(*heed::parse_tokenizer_json(heed::small_unigram_document().dump(), "good")),
        header_with(small_sentence_pieces())};
  }();
  return headers;
}

std::string spliced(std::string good, std::string_view bytes) {
  if (bytes.size() < 3) return good;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const std::size_t place = (byte(0) * std::size_t{256} + byte(1)) % good.size();
  return good.replace(place, byte(2), bytes.substr(3));
}

// Errors may be of these kinds alone.
template <class Read>
void attempt(Read&& read) {
  heed::fuzz::allow_errors({heed::ErrorCode::corrupt_data, heed::ErrorCode::unsupported},
                           [&] { read(); });
}

void read(std::string_view bytes) {
  attempt([&] {
    const heed::GgufFile file =
        heed::GgufFile::parse(std::as_bytes(std::span(bytes.data(), bytes.size())), "input");
    attempt([&] {
      const heed::TensorEntry entries[] = {
          {.name = "token_embd.weight", .dtype = heed::DType::f32, .shape = {300, 8}, .bytes = {}},
          {.name = "token_types.weight", .dtype = heed::DType::f32, .shape = {2, 8}, .bytes = {}}};
      heed::gguf_config(file, [&](std::string_view name) -> const heed::TensorEntry* {
        for (const heed::TensorEntry& entry : entries) {
          if (entry.name == name) return &entry;
        }
        return nullptr;
      });
    });
    attempt([&] { heed::gguf_tokenizer_config(file); });
    attempt([&] {
      const auto tokenizer = heed::read_gguf_tokenizer(file);
      if (tokenizer == nullptr) return;
      const auto ids = tokenizer->encode(probe, {.add_beginning = true, .add_ending = true});
      tokenizer->decode(ids);
      if (tokenizer->encode_with_offsets(probe).size() != tokenizer->encode(probe).size()) {
        std::abort();
      }
    });
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<std::string>& good = good_headers();
  if (data[0] % 8 == 7) {
    read(rest);
  } else {
    read(spliced(good[data[0] % good.size()], rest));
  }
  return 0;
}
