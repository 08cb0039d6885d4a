#include "tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <initializer_list>

#include "base/error.h"
#include "base/files.h"
#include "base/utf8.h"
#include "tokenizer/words.h"

namespace heed {
namespace {

// FNV-1a, 64 bits.
std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
  return hash;
}

std::optional<std::int32_t> first_added(const Vocabulary& vocabulary,
                                        std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const AddedToken* token = vocabulary.find_added(name)) return token->id;
  }
  return std::nullopt;
}

void check_ids(const std::vector<std::int32_t>& ids, const Vocabulary& vocabulary,
               std::string_view source) {
  for (const std::int32_t id : ids) {
    require(id >= 0 && id < vocabulary.size() && !vocabulary.bytes(id).empty(),
            ErrorCode::corrupt_data,
            "{}: the template names the token {}, which is not in the vocabulary", source, id);
  }
}

}  // namespace

const char* tokenizer_kind_name(TokenizerKind kind) {
  switch (kind) {
    case TokenizerKind::byte_pair: return "byte_pair";
    case TokenizerKind::metaspace: return "metaspace";
    case TokenizerKind::character: return "character";
    case TokenizerKind::word_piece: return "word_piece";
    case TokenizerKind::unigram: return "unigram";
    case TokenizerKind::sentence_piece: return "sentence_piece";
  }
  fail(ErrorCode::internal, "tokenizer kind {}", static_cast<int>(kind));
}

Tokenizer::Tokenizer(TokenizerParts parts, std::string_view source)
    : parts_(std::move(parts)), preparation_(parts_.normalisation, parts_.vocabulary.added()) {
  check_ids(parts_.text_template.before, vocabulary(), source);
  check_ids(parts_.text_template.after, vocabulary(), source);
  beginning_of_text_ = parts_.text_template.before.empty()
                           ? first_added(vocabulary(), {"<|begin_of_text|>", "<s>", "<bos>"})
                           : parts_.text_template.before.front();
  end_of_text_ =
      first_added(vocabulary(), {end_of_text_name, "<|end_of_text|>", "</s>", "[SEP]", "<eos>"});
  padding_ = first_added(vocabulary(), {"<pad>", "[PAD]"});
  start_ = first_added(vocabulary(), {"<s>", "[CLS]"});
  mask_ = first_added(vocabulary(), {"<mask>", "[MASK]"});
}

PreparedText Tokenizer::prepare(std::string_view text, EncodeOptions options) const {
  return preparation_.prepare(text, {.special_tokens = options.special_tokens,
                                     .special_ranges = options.special_ranges,
                                     .continues = options.continues});
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::vector<std::int32_t> ids = encode_prepared(prepare(text, options), options.stop);
  const auto& [before, after] = parts_.text_template;
  if (options.add_beginning) ids.insert(ids.begin(), before.begin(), before.end());
  if (options.add_ending) ids.insert(ids.end(), after.begin(), after.end());
  return ids;
}

std::vector<TokenSpan> Tokenizer::encode_with_offsets(std::string_view text,
                                                      EncodeOptions options) const {
  const PreparedText prepared = prepare(text, options);
  std::vector<TokenSpan> spans = prepared_spans(prepared, options.stop);
  SourceOffsets source = prepared.source_offsets();
  std::size_t begin = 0;  // in the text
  for (TokenSpan& span : spans) {
    span.begin = begin;
    span.end = begin = source.at(span.end);
  }
  check(begin <= text.size(), "tokens stand for parts of their text");
  if (!spans.empty()) spans.back().end = text.size();
  const auto& [before, after] = parts_.text_template;
  if (options.add_beginning) {
    std::vector<TokenSpan> first;
    for (const std::int32_t id : before) first.push_back({id, 0, 0});
    spans.insert(spans.begin(), first.begin(), first.end());
  }
  if (options.add_ending) {
    for (const std::int32_t id : after) spans.push_back({id, text.size(), text.size()});
  }
  return spans;
}

// The bytes of the tokens are those of the text.
std::vector<TokenSpan> Tokenizer::prepared_spans(const PreparedText& prepared,
                                                 StopFlag stop) const {
  const std::string_view text = prepared.text();
  std::vector<TokenSpan> spans;
  auto match = prepared.matches().begin();
  std::size_t position = 0;
  for (const std::int32_t id : encode_prepared(prepared, stop)) {
    const std::size_t begin = position;
    const std::size_t part_end = match != prepared.matches().end() ? match->begin : text.size();
    if (match != prepared.matches().end() && match->begin == position) {
      position = match++->end;
    } else {
      position += token_size(text.substr(0, part_end), position, id);
    }
    spans.push_back({id, begin, position});
  }
  check(position == text.size(), "the tokens of a text cover it");
  return spans;
}

std::size_t Tokenizer::token_size(std::string_view, std::size_t, std::int32_t id) const {
  return vocabulary().bytes(id).size();
}

bool Tokenizer::may_cut(std::string_view text, std::size_t position) const {
  if (position == 0 || position >= text.size()) return true;
  return is_word_boundary(text, position) && preparation_.may_cut(text, position);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, DecodeOptions options) const {
  const TextNormalisation& normalisation = parts_.normalisation;
  const bool strips_parts =
      parts_.strips_first_space && options.special_tokens &&
      (normalisation.prepend_always || normalisation.prepend_missing == PrependScheme::always);
  std::string text;
  text.reserve(ids.size() * 4);
  bool is_first = parts_.strips_first_space;  // of a part that encode() put a space before
  for (const std::int32_t id : ids) {
    std::string_view bytes = vocabulary().bytes(id);
    const AddedToken* added = vocabulary().find_added(id);
    if (added != nullptr && added->special && !options.special_tokens) continue;
    if (added == nullptr && is_first && bytes.starts_with(' ')) bytes.remove_prefix(1);
    text += bytes;
    is_first = strips_parts && added != nullptr;
  }
  return text;
}

std::string Tokenizer::token_bytes(std::int32_t id) const {
  return std::string(vocabulary().bytes(id));
}

std::string Tokenizer::token_text(std::int32_t id) const {
  return printable(vocabulary().bytes(id));
}

std::optional<std::int32_t> Tokenizer::find_added_token(std::string_view content) const {
  return first_added(vocabulary(), {content});
}

void Tokenizer::save(const std::filesystem::path& directory) const {
  OutputDirectory made(directory);
  for (const TokenizerFile& file : files()) write_text_file(directory / file.name, file.content);
  made.keep();
}

std::vector<TokenizerFile> Tokenizer::files() const { return {{tokenizer_file_name, to_json()}}; }

std::string Tokenizer::content_key() const {
  std::string content;
  for (const TokenizerFile& file : files()) content += file.content;
  return fmt::format("{}-{}-{:016x}", tokenizer_kind_name(kind()), vocabulary_size(),
                     hash_of(content));
}

}  // namespace heed
