#include "formats/gguf_sentence_pieces.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "formats/gguf_pre_tokenizers.h"
#include "model/architecture.h"
#include "tokenizer/json_parts.h"

namespace heed {
std::optional<GgufSentencePieces> find_gguf_sentence_pieces(const GgufFields& fields) {
  const auto text = fields.find_text(gguf_sentence_pieces_key);
  if (!text) return std::nullopt;
  const std::string source = fmt::format("{}: '{}'", fields.source(), gguf_sentence_pieces_key);
  const Json document = parse_json(*text, source);
  const std::int64_t pieces =
      json_integer(json_member(document, "pieces", source), {source + ": 'pieces'"}, 1, max_extent);
  const bool is_bpe = fields.find_text("tokenizer.ggml.model") == "llama";
  return GgufSentencePieces{.search = is_bpe ? PieceSearch::bpe : PieceSearch::unigram,
                            .pieces = static_cast<std::size_t>(pieces),
                            .added = read_added_tokens(document, source)};
}

const char* sentence_pieces_file(PieceSearch search) {
  return search == PieceSearch::bpe ? llama_pieces_name : "spiece.model";
}

void describe_sentence_pieces(const GgufSentencePieces& found, const GgufFields& fields,
                              Json& config) {
  if (found.search == PieceSearch::bpe) {
    config["tokenizer_class"] = "LlamaTokenizer";
    for (const char* const side : {"add_bos_token", "add_eos_token"}) {
      config[side] = fields.find_boolean(fmt::format("tokenizer.ggml.{}", side)).value_or(false);
    }
  } else {
    config["tokenizer_class"] = "T5Tokenizer";
    config["extra_ids"] = 0;
  }
  Json& tokens = config["added_tokens_decoder"] = Json::object();
  for (const AddedToken& token : found.added) {
    Json described = added_token_json(token);
    described.erase("id");
    tokens[std::to_string(token.id)] = std::move(described);
  }
}

std::string why_no_gguf_sentence_pieces(const SentencePieceTokenizer& tokenizer) {
  if (tokenizer.finds_ids_by_text()) {
    return "its tokens have other ids than the pieces of its SentencePiece model (Marian)";
  }
  // Programs that read the kind llama fail at such a text.
  const bool is_bpe = tokenizer.model().search == PieceSearch::bpe;
  if (is_bpe && !tokenizer.model().byte_fallback) {
    return "its SentencePiece model of BPE has no bytes for unknown characters";
  }
  return {};
}

void add_sentence_pieces(const SentencePieceTokenizer& tokenizer, std::int64_t rows,
                         GgufMetadata& metadata) {
  const SentencePieceModel& model = tokenizer.model();
  const auto size = static_cast<std::size_t>(rows);
  require(tokenizer.tokens().size() <= size, ErrorCode::corrupt_data,
          "the tokenizer has a token {}, but the model's embedding has {} rows",
          tokenizer.tokens().size() - 1, rows);
  std::vector<std::string> tokens(size);
  std::vector<std::int32_t> types(size, static_cast<std::int32_t>(GgufTokenType::unused));
  std::vector<float> scores(size);
  for (std::size_t id = 0; id < size; ++id) tokens[id] = fmt::format("[PAD{}]", id);
  Json added = Json::array();
  for (const AddedToken& token : tokenizer.added_tokens()) {
    added.push_back(added_token_json(token));
    const auto id = static_cast<std::size_t>(token.id);
    tokens[id] = token.content;
    types[id] = static_cast<std::int32_t>(token.special ? GgufTokenType::control
                                                        : GgufTokenType::user_defined);
  }
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    tokens[id] = piece.text;
    types[id] = static_cast<std::int32_t>(piece.kind);
    scores[id] = piece.score;
  }
  metadata.add("tokenizer.ggml.model",
               std::string_view(model.search == PieceSearch::bpe ? "llama" : "t5"));
  metadata.add("tokenizer.ggml.pre", std::string_view("default"));
  metadata.add("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
  metadata.add("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
  metadata.add("tokenizer.ggml.scores", std::span<const float>(scores));
  metadata.add("tokenizer.ggml.add_space_prefix", model.add_dummy_prefix);
  metadata.add("tokenizer.ggml.remove_extra_whitespaces", model.remove_extra_whitespaces);
  if (const std::string& bytes = model.charsmap_bytes; !bytes.empty()) {
    metadata.add("tokenizer.ggml.precompiled_charsmap",
                 std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
  }
  metadata.add("tokenizer.ggml.unknown_token_id", static_cast<std::uint32_t>(model.unknown));
  const Json own = {{"pieces", model.pieces.size()}, {"added_tokens", added}};
  metadata.add(gguf_sentence_pieces_key, std::string_view(own.dump()));
}

bool are_same(const SentencePieceTokenizer& left, const SentencePieceTokenizer& right) {
  const SentencePieceModel& model = left.model();
  const SentencePieceModel& other = right.model();
  const auto& [before, after] = left.text_template();
  const auto& added = left.added_tokens();
  const auto& others = right.added_tokens();
  return model.search == other.search && model.pieces == other.pieces &&
         model.byte_fallback == other.byte_fallback &&
         model.add_dummy_prefix == other.add_dummy_prefix &&
         model.remove_extra_whitespaces == other.remove_extra_whitespaces &&
         model.charsmap_bytes == other.charsmap_bytes &&
         std::is_permutation(added.begin(), added.end(), others.begin(), others.end()) &&
         before == right.text_template().before && after == right.text_template().after;
}

}  // namespace heed
