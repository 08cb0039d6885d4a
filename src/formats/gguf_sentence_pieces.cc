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
  return GgufSentencePieces{.pieces = static_cast<std::size_t>(pieces),
                            .added = read_added_tokens(document, source)};
}

void describe_sentence_pieces(const GgufSentencePieces& found, Json& config) {
  config["tokenizer_class"] = "T5Tokenizer";
  config["extra_ids"] = 0;
  Json& tokens = config["added_tokens_decoder"] = Json::object();
  for (const AddedToken& token : found.added) {
    Json described = added_token_json(token);
    described.erase("id");
    tokens[std::to_string(token.id)] = std::move(described);
  }
}

bool add_sentence_pieces(const SentencePieceTokenizer& tokenizer, std::int64_t rows,
                         GgufMetadata& metadata) {
  const SentencePieceModel& model = tokenizer.model();
  if (model.search != PieceSearch::unigram || tokenizer.finds_ids_by_text()) return false;
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
  metadata.add("tokenizer.ggml.model", std::string_view("t5"));
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
  return true;
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
