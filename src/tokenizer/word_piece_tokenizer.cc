#include "tokenizer/word_piece_tokenizer.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/character_class.h"
#include "tokenizer/words.h"

namespace heed {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

// A token behind a space, as decoders clean it up: in this order, and each token for itself.
std::string cleaned_up(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> replacements[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : replacements) replace_all(text, from, to);
  return text;
}

// A token as decode() writes it: behind other tokens, or first.
std::string written(const WordPieceDefinition& definition, std::string_view token, bool is_first) {
  const bool continues = !is_first && token.starts_with(definition.continuation);
  std::string text(is_first || continues ? "" : " ");
  text += token.substr(continues ? definition.continuation.size() : 0);
  return definition.cleans_up ? cleaned_up(std::move(text)) : text;
}

std::vector<std::string> written_tokens(const WordPieceDefinition& definition) {
  std::unordered_set<std::string_view> added;
  for (const AddedToken& token : definition.added) added.insert(token.content);
  std::vector<std::string> texts;
  for (const std::string& token : definition.tokens) {
    const bool as_it_is = token.empty() || added.contains(token);
    texts.push_back(as_it_is ? token : written(definition, token, false));
    // Of the token "##" alone nothing is left; but no bytes mean no token.
    if (texts.back().empty()) texts.back() = token;
  }
  return texts;
}

TokenizerParts word_piece_parts(const WordPieceDefinition& definition, std::string_view source) {
  const auto unknown = std::ranges::find(definition.tokens, definition.unknown);
  require(unknown != definition.tokens.end() && !unknown->empty(), ErrorCode::corrupt_data,
          "{}: the unk_token {} is not in the vocabulary", source, in_quotes(definition.unknown));
  std::vector<std::unique_ptr<const NormaliserStep>> steps;
  if (definition.normalisation) steps.push_back(make_bert_step(*definition.normalisation));
  return {.vocabulary = Vocabulary(written_tokens(definition), definition.added, source),
          .normalisation = {.steps = std::make_shared<NormaliserSteps>(std::move(steps))},
          .text_template = definition.text_template,
          .unknown = static_cast<std::int32_t>(unknown - definition.tokens.begin())};
}

enum class WordPart { space, punctuation, letter };

WordPart word_part(const Utf8Character& character) {
  if (!character.valid) return WordPart::letter;
  if (character_class(character.code_point) == CharacterClass::space) return WordPart::space;
  return is_bert_punctuation(character.code_point) ? WordPart::punctuation : WordPart::letter;
}

}  // namespace

WordPieceTokenizer::WordPieceTokenizer(WordPieceDefinition definition, std::string_view source)
    : PartTokenizer(word_piece_parts(definition, source), source),
      definition_(std::move(definition)) {
  require(!definition_.continuation.empty(), ErrorCode::unsupported,
          "{}: 'continuing_subword_prefix' is empty; expected a prefix such as ##", source);
  std::unordered_set<std::string_view> seen;
  std::vector<std::pair<std::string_view, std::int32_t>> beginnings;
  std::vector<std::pair<std::string_view, std::int32_t>> continuations;
  for (std::size_t index = 0; index < definition_.tokens.size(); ++index) {
    std::string_view token = definition_.tokens[index];
    if (token.empty()) continue;
    require(seen.insert(token).second, ErrorCode::corrupt_data, "{}: the token {} has two ids",
            source, in_quotes(token));
    const auto id = static_cast<std::int32_t>(index);
    require_sought_size(token, id, source);
    beginnings.emplace_back(token, id);
    if (token.size() <= definition_.continuation.size()) continue;
    if (!token.starts_with(definition_.continuation)) continue;
    token.remove_prefix(definition_.continuation.size());
    continuations.emplace_back(token, id);
  }
  beginnings_ = TokenTrie(std::move(beginnings));
  continuations_ = TokenTrie(std::move(continuations));
}

void WordPieceTokenizer::append_word(std::string_view part, std::size_t begin, std::size_t end,
                                     std::vector<TokenSpan>& spans) const {
  const std::size_t first = spans.size();
  std::int64_t characters = 0;
  for (std::size_t i = begin; i < end; i += read_utf8(part, i).length) ++characters;
  bool is_known = characters <= definition_.max_characters_a_word;
  for (std::size_t position = begin; position < end && is_known;) {
    const TokenTrie& pieces = position == begin ? beginnings_ : continuations_;
    const auto [id, size] = pieces.longest_prefix(part.substr(position, end - position));
    is_known = id >= 0;
    if (is_known) spans.push_back({id, position, position + size});
    position += size;
  }
  if (is_known) return;
  spans.resize(first);
  spans.push_back({*unknown(), begin, end});
}

void WordPieceTokenizer::append_part(std::string_view part, bool,
                                     std::vector<TokenSpan>& spans) const {
  std::size_t word = 0;  // where the word begins that is being read
  for (std::size_t i = 0; i < part.size();) {
    const Utf8Character character = read_utf8(part, i);
    const std::size_t next = i + character.length;
    const WordPart kind = word_part(character);
    if (kind != WordPart::letter) {
      if (word < i) append_word(part, word, i, spans);
      if (kind == WordPart::punctuation) append_word(part, i, next, spans);
      word = next;
    }
    i = next;
  }
  if (word < part.size()) append_word(part, word, part.size(), spans);
}

bool WordPieceTokenizer::may_cut(std::string_view text, std::size_t position) const {
  // Words may be cut, though parts may not.
  return Tokenizer::may_cut(text, position);  // NOLINT(bugprone-parent-virtual-call)
}

std::string WordPieceTokenizer::decode(std::span<const std::int32_t> ids,
                                       DecodeOptions options) const {
  std::string text;
  bool is_first = true;
  for (const std::int32_t id : ids) {
    const std::string_view bytes = vocabulary().bytes(id);  // checks the id
    const AddedToken* added = vocabulary().find_added(id);
    if (bytes.empty() || (added != nullptr && added->special && !options.special_tokens)) continue;
    text += written(definition_, definition_.tokens[static_cast<std::size_t>(id)], is_first);
    is_first = false;
  }
  return text;
}

}  // namespace heed
