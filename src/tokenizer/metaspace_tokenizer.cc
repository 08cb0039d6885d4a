#include "tokenizer/metaspace_tokenizer.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/metaspace.h"
#include "tokenizer/pair_map.h"
#include "tokenizer/piecewise.h"
#include "tokenizer/words.h"

namespace heed {
namespace {

std::optional<std::int32_t> find_unknown(const MetaspaceDefinition& definition,
                                         std::string_view source) {
  if (!definition.unknown) return std::nullopt;
  const auto found = std::ranges::find(definition.tokens, *definition.unknown);
  require(found != definition.tokens.end() && !found->empty(), ErrorCode::corrupt_data,
          "{}: the unk_token {} is not in the vocabulary", source, in_quotes(*definition.unknown));
  return static_cast<std::int32_t>(found - definition.tokens.begin());
}

TokenizerParts parts_of(const MetaspaceDefinition& definition, std::string_view source) {
  return {.vocabulary = Vocabulary(
              metaspace_token_bytes(definition.tokens, definition.added, definition.byte_fallback),
              definition.added, source),
          .normalisation = definition.normalisation,
          .text_template = definition.text_template,
          .unknown = find_unknown(definition, source),
          .strips_first_space = definition.strips_first_space};
}

}  // namespace

MetaspaceTokenizer::MetaspaceTokenizer(MetaspaceDefinition definition, std::string_view source)
    : Tokenizer(parts_of(definition, source), source), definition_(std::move(definition)) {
  require(definition_.byte_fallback || definition_.unknown, ErrorCode::unsupported,
          "{}: the model has neither byte_fallback nor an unk_token: characters without a token "
          "would disappear",
          source);
  read_tokens(source);
  read_merges(source);
}

void MetaspaceTokenizer::read_tokens(std::string_view source) {
  byte_ids_.fill(-1);
  const auto& tokens = definition_.tokens;
  for (std::size_t index = 0; index < tokens.size(); ++index) {
    const auto id = static_cast<std::int32_t>(index);
    const std::string& token = tokens[index];
    const Utf8Character character = token.empty() ? Utf8Character{} : read_utf8(token, 0);
    if (character.valid && character.length == token.size() && character.code_point != ' ') {
      const bool is_space = token == metaspace_character;
      const std::size_t point = is_space ? ' ' : character.code_point;
      if (point >= character_ids_.size()) character_ids_.resize(point + 1, -1);
      character_ids_[point] = id;
    } else if (definition_.byte_fallback && token.starts_with("<0x")) {
      for (int byte = 0; byte < 256; ++byte) {
        if (token == byte_token_text(byte)) byte_ids_[byte] = id;
      }
    }
  }
  require(find_character(' ') >= 0, ErrorCode::corrupt_data,
          "{}: the vocabulary has no token for {}, the space", source,
          in_quotes(metaspace_character));
  for (int byte = 0; definition_.byte_fallback && byte < 256; ++byte) {
    // Gemma has no <0x09>: a character that is a token needs no bytes.
    const bool is_character = byte < 0x80 && find_character(static_cast<char32_t>(byte)) >= 0;
    require(byte_ids_[byte] >= 0 || is_character, ErrorCode::corrupt_data,
            "{}: the vocabulary has no token {}; byte_fallback needs all 256", source,
            byte_token_text(byte));
  }
}

void MetaspaceTokenizer::read_merges(std::string_view source) {
  std::unordered_map<std::string_view, std::int32_t> ids;
  for (std::size_t id = 0; id < definition_.tokens.size(); ++id) {
    const std::string& token = definition_.tokens[id];
    if (token.empty()) continue;
    require(ids.emplace(token, static_cast<std::int32_t>(id)).second, ErrorCode::corrupt_data,
            "{}: the token {} has two ids", source, in_quotes(token));
  }
  PairMap<char> seen(definition_.merges.size());
  for (std::size_t rank = 0; rank < definition_.merges.size(); ++rank) {
    const auto& [left, right] = definition_.merges[rank];
    const std::string result = left + right;
    const auto find = [&](const std::string& token, std::string_view role) {
      const auto found = ids.find(token);
      require(found != ids.end(), ErrorCode::corrupt_data,
              "{}: merge {}: the {} {} is not in the vocabulary", source, rank, role,
              in_quotes(token));
      require(std::ranges::find(byte_ids_, found->second) == byte_ids_.end() &&
                  found->second != unknown(),
              ErrorCode::unsupported, "{}: merge {} has {} as its {}", source, rank,
              in_quotes(token), role);
      return found->second;
    };
    const MergeRule rule = {find(left, "left part"), find(right, "right part"),
                            find(result, "result")};
    require(seen.insert({rule.left, rule.right}).second, ErrorCode::corrupt_data,
            "{}: merge {} of {} and {} is listed twice", source, rank, in_quotes(left),
            in_quotes(right));
    merges_.push_back(rule);
    const std::string text = with_spaces(result);
    char32_t before = ' ';
    for (std::size_t i = 0; i < text.size();) {
      const Utf8Character character = read_utf8(text, i);
      if (character.code_point == ' ' && before != ' ') before_spaces_.insert(before);
      before = character.code_point;
      i += character.length;
    }
  }
  definition_.merges = {};
  merger_.emplace(byte_ids_, merges_);
}

std::int32_t MetaspaceTokenizer::find_character(char32_t code_point) const {
  return code_point < character_ids_.size() ? character_ids_[code_point] : -1;
}

bool MetaspaceTokenizer::is_boundary(std::string_view text, std::size_t position) const {
  if (position == 0 || position >= text.size()) return true;
  if (text[position] != ' ') return false;
  if (definition_.splits_words) return true;
  if (text[position - 1] == ' ') return false;
  if (before_spaces_.empty()) return true;
  std::size_t start = position - 1;  // of the character before
  while (start > 0 && position - start < 4 && (text[start] & 0xC0) == 0x80) --start;
  const Utf8Character character = read_utf8(text, start);
  const bool ends_here = character.valid && start + character.length == position;
  return !ends_here || !before_spaces_.contains(character.code_point);
}

void MetaspaceTokenizer::append_word(std::string_view word,
                                     std::vector<std::int32_t>& tokens) const {
  std::vector<std::int32_t> symbols;
  symbols.reserve(word.size());
  bool after_unknown = false;
  for (std::size_t i = 0; i < word.size();) {
    const Utf8Character character = read_utf8(word, i);
    const std::int32_t id = character.valid ? find_character(character.code_point) : -1;
    if (id >= 0) {
      symbols.push_back(id);
    } else if (definition_.byte_fallback) {
      for (std::size_t byte = i; byte < i + character.length; ++byte) {
        symbols.push_back(byte_ids_[static_cast<unsigned char>(word[byte])]);
      }
    } else if (!after_unknown || !definition_.fuse_unknown) {
      merger_->append_tokens(symbols, tokens);
      symbols.clear();
      tokens.push_back(*unknown());
    }
    after_unknown = id < 0;
    i += character.length;
  }
  merger_->append_tokens(symbols, tokens);
}

void MetaspaceTokenizer::append_words(std::string_view text, WordCache& cache,
                                      std::vector<std::int32_t>& tokens) const {
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin + 1;
    do {
      end = std::min(text.find(' ', end), text.size());
    } while (!is_boundary(text, end) && ++end);
    append_cached(text.substr(begin, end - begin), cache, tokens,
                  [&](std::string_view word) { append_word(word, tokens); });
    begin = end;
  }
}

std::vector<std::int32_t> MetaspaceTokenizer::encode_prepared(const PreparedText& text,
                                                              StopFlag stop) const {
  PieceEncoder encoder;
  encoder.is_boundary = [this](std::string_view whole, std::size_t position) {
    return is_boundary(whole, position);
  };
  encoder.append_tokens = [this](std::string_view part, WordCache& cache,
                                 std::vector<std::int32_t>& tokens) {
    append_words(part, cache, tokens);
  };
  return encode_in_pieces(text, encoder, caches_, stop);
}

std::size_t MetaspaceTokenizer::token_size(std::string_view text, std::size_t position,
                                           std::int32_t id) const {
  if (id != unknown()) return Tokenizer::token_size(text, position, id);
  std::size_t end = position;
  do {
    end += read_utf8(text, end).length;
    if (!definition_.fuse_unknown || end == text.size()) break;
    const Utf8Character next = read_utf8(text, end);
    if (next.valid && find_character(next.code_point) >= 0) break;
  } while (true);
  return end - position;
}

bool MetaspaceTokenizer::may_cut(std::string_view text, std::size_t position) const {
  if (position == 0 || position >= text.size()) return true;
  return text[position] == ' ' && Tokenizer::may_cut(text, position) &&
         !text.substr(0, position).ends_with(metaspace_character) && is_boundary(text, position);
}

}  // namespace heed
