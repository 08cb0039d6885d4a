#include "tokenizer/sentence_piece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/metaspace.h"

namespace heed {
namespace {

TokenizerParts sentence_piece_parts(const SentencePieceDefinition& definition,
                                    const SentencePieceModel& model, std::string_view source) {
  const auto unknown = std::ranges::find(definition.tokens, definition.unknown);
  require(unknown != definition.tokens.end() && !unknown->empty(), ErrorCode::corrupt_data,
          "{}: the unknown token {} is not in the vocabulary", source,
          in_quotes(definition.unknown));
  return {.vocabulary = Vocabulary(
              metaspace_token_bytes(definition.tokens, definition.added, model.byte_fallback),
              definition.added, source),
          .normalisation = {},
          .text_template = definition.text_template,
          .unknown = static_cast<std::int32_t>(unknown - definition.tokens.begin())};
}

// What the library says of a model that was checked before; it may throw where it runs out of
// memory or builds its tables.
void load_processor(sentencepiece::SentencePieceProcessor& processor, std::string_view model,
                    std::string_view source) {
  std::string message;
  try {
    const auto status = processor.LoadFromSerializedProto(model);
    if (status.ok()) return;
    message = status.error_message();
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "{}: no memory for this SentencePiece model", source);
  } catch (const std::exception& error) {
    message = error.what();
  }
  fail(ErrorCode::corrupt_data, "{}: libsentencepiece refuses this model: {}", source, message);
}

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(const SentencePieceDefinition& definition,
                                               std::string_view source)
    : SentencePieceTokenizer(definition, read_sentence_piece_model(definition.model, source),
                             source) {}

SentencePieceTokenizer::SentencePieceTokenizer(SentencePieceDefinition definition,
                                               SentencePieceModel model, std::string_view source)
    : PartTokenizer(sentence_piece_parts(definition, model, source), source),
      model_(std::move(model)),
      tokens_(std::move(definition.tokens)),
      files_(std::move(definition.files)),
      ids_by_text_(definition.ids_by_text),
      processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {
  require(ids_by_text_ || tokens_.size() >= model_.pieces.size(), ErrorCode::corrupt_data,
          "{}: {} tokens for {} pieces", source, tokens_.size(), model_.pieces.size());
  for (std::size_t id = 0; id < tokens_.size() && ids_by_text_; ++id) {
    if (!tokens_[id].empty()) ids_.emplace(tokens_[id], static_cast<std::int32_t>(id));
  }
  load_processor(*processor_, definition.model, source);
}

SentencePieceTokenizer::~SentencePieceTokenizer() = default;

std::int32_t SentencePieceTokenizer::id_of(std::uint32_t piece, const std::string& text) const {
  if (!ids_by_text_) return static_cast<std::int32_t>(piece);
  const auto found = ids_.find(text);
  return found == ids_.end() ? *unknown() : found->second;
}

void SentencePieceTokenizer::append_part(std::string_view part, bool,
                                         std::vector<TokenSpan>& spans) const {
  if (part.empty()) return;
  require(part.size() < INT32_MAX, ErrorCode::invalid_argument,
          "a text of {} bytes for a SentencePiece model; expected fewer than {}", part.size(),
          INT32_MAX);
  const auto encoded = processor_->EncodeAsImmutableProto(part);
  std::size_t end = 0;
  for (std::size_t i = 0; i < encoded.pieces_size(); ++i) {
    const auto piece = encoded.pieces(static_cast<int>(i));
    const std::size_t begin = end;
    end = std::clamp<std::size_t>(piece.end(), begin, part.size());
    spans.push_back({id_of(piece.id(), piece.piece()), begin, end});
  }
}

// As the library does: the space before the first token is left out, and all spaces at the
// beginning where the model never makes two.
std::string SentencePieceTokenizer::decode(std::span<const std::int32_t> ids,
                                           DecodeOptions options) const {
  const bool strips = model_.add_dummy_prefix || model_.remove_extra_whitespaces;
  std::string text;
  bool is_first = true;
  for (const std::int32_t id : ids) {
    std::string_view bytes = vocabulary().bytes(id);
    const AddedToken* added = vocabulary().find_added(id);
    if (added != nullptr && added->special && !options.special_tokens) continue;
    const bool at_beginning = model_.remove_extra_whitespaces ? text.empty() : is_first;
    if (added == nullptr && strips && at_beginning && bytes.starts_with(' ')) {
      bytes.remove_prefix(1);
    }
    text += bytes;
    is_first = false;
  }
  return text;
}

std::string SentencePieceTokenizer::to_json() const {
  fail(ErrorCode::unsupported,
       "a SentencePiece model is saved as it is, in '{}', and not as tokenizer.json",
       files_.empty() ? "" : files_.front().name);
}

SentencePieceDefinition plain_definition(std::string_view model, std::string_view file_name,
                                         std::string_view source) {
  SentencePieceDefinition definition{.model = model};
  const SentencePieceModel read = read_sentence_piece_model(model, source);
  for (const SentencePiece& piece : read.pieces) {
    const auto id = static_cast<std::int32_t>(definition.tokens.size());
    definition.tokens.push_back(piece.text);
    if (piece.kind == PieceKind::unknown) definition.unknown = piece.text;
    if (piece.kind == PieceKind::control || piece.kind == PieceKind::unknown) {
      definition.added.push_back({.id = id, .content = piece.text});
    }
  }
  definition.files = {{std::string(file_name), std::string(model)}};
  return definition;
}

}  // namespace heed
