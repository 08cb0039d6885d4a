#include "tokenizer/word_piece_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/character_class.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/words.h"

namespace heed {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

// A token after a space, as decoders clean it up: in this order, and each token for itself.
std::string cleaned_up(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> replacements[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : replacements) replace_all(text, from, to);
  return text;
}

// A token as decode() writes it: after other tokens, or first.
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

constexpr std::string_view bert_specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
constexpr std::string_view bert_pre_tokenizer = R"({"type": "BertPreTokenizer"})";

std::optional<BertNormalisation> read_bert_normaliser(const Json& document,
                                                      std::string_view source) {
  const auto steps = read_steps(document, "normalizer", "normalizers", source);
  if (steps.empty()) return std::nullopt;
  for (const Json* step : steps) {
    if (step_type(*step) != "BertNormalizer" || steps.size() > 1) {
      refuse_step(*step, "normalizer", "one of type BertNormalizer", source);
    }
  }
  const Json& step = *steps.front();
  const std::string where = fmt::format("{}: BertNormalizer", source);
  BertNormalisation result;
  result.clean_text = json_boolean_member(step, "clean_text", true, where);
  result.handle_chinese_chars = json_boolean_member(step, "handle_chinese_chars", true, where);
  result.lowercase = json_boolean_member(step, "lowercase", true, where);
  result.strip_accents = json_boolean_member(step, "strip_accents", result.lowercase, where);
  return result;
}

void check_bert_pre_tokenizer(const Json& document, std::string_view source) {
  const auto steps = read_steps(document, "pre_tokenizer", "pretokenizers", source);
  require(!steps.empty(), ErrorCode::unsupported,
          "{}: the pre_tokenizer of this WordPiece model is missing; supported is {}", source,
          bert_pre_tokenizer);
  for (const Json* step : steps) {
    if (step_type(*step) != "BertPreTokenizer") {
      refuse_step(*step, "pre_tokenizer", bert_pre_tokenizer, source);
    }
  }
}

// Whether decode() takes spaces before punctuation back.
bool read_cleanup(const Json& document, std::string_view continuation, std::string_view source) {
  const auto steps = read_steps(document, "decoder", "decoders", source);
  if (steps.empty()) return true;
  for (const Json* step : steps) {
    if (step_type(*step) != "WordPiece" || steps.size() > 1) {
      refuse_step(*step, "decoder", "one of type WordPiece", source);
    }
  }
  const std::string where = fmt::format("{}: the decoder", source);
  require_json_value(*steps.front(), "prefix", {Json(continuation)}, where);
  return json_boolean_member(*steps.front(), "cleanup", true, where);
}

std::vector<std::string> read_token_lines(std::string_view text, std::string_view source) {
  std::vector<std::string> tokens;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    require(!line.empty(), ErrorCode::corrupt_data, "{}: line {} is empty; expected a token",
            source, tokens.size() + 1);
    if (!is_valid_utf8(line)) {
      fail(ErrorCode::corrupt_data, "{}: line {} is {}; expected UTF-8", source, tokens.size() + 1,
           in_quotes(line));
    }
    tokens.emplace_back(line);
  }
  return tokens;
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

void WordPieceTokenizer::append_part(std::string_view part, PartPlace,
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

std::unique_ptr<Tokenizer> read_word_piece_json(const Json& document, std::string_view source) {
  const Json& model = json_member(document, "model", source);
  WordPieceDefinition definition;
  definition.normalisation = read_bert_normaliser(document, source);
  check_bert_pre_tokenizer(document, source);
  definition.unknown = json_string_member(model, "unk_token", source);
  if (find_json_member(model, "continuing_subword_prefix") != nullptr) {
    definition.continuation = json_string_member(model, "continuing_subword_prefix", source);
  }
  if (const Json* longest = find_json_member(model, "max_input_chars_per_word")) {
    definition.max_characters_a_word =
        json_integer(*longest, {fmt::format("{}: 'max_input_chars_per_word'", source)}, 0);
  }
  definition.cleans_up = read_cleanup(document, definition.continuation, source);
  definition.text_template = read_text_template(document, source);
  definition.added = read_added_tokens(document, source);
  definition.tokens = tokens_by_id(json_member(model, "vocab", source), definition.added, source);
  return std::make_unique<WordPieceTokenizer>(std::move(definition), source);
}

std::unique_ptr<Tokenizer> read_word_piece_lines(std::string_view text,
                                                 const TokenizerConfig& config,
                                                 std::string_view source) {
  WordPieceDefinition definition;
  BertNormalisation& normalisation = *definition.normalisation;
  normalisation.lowercase = config.boolean("do_lower_case").value_or(true);
  normalisation.strip_accents = config.boolean("strip_accents").value_or(normalisation.lowercase);
  normalisation.handle_chinese_chars = config.boolean("tokenize_chinese_chars").value_or(true);
  definition.tokens = read_token_lines(text, source);
  for (std::size_t id = 0; id < definition.tokens.size(); ++id) {
    const std::string& token = definition.tokens[id];
    if (std::ranges::find(bert_specials, token) == std::end(bert_specials)) continue;
    definition.added.push_back({.id = static_cast<std::int32_t>(id), .content = token});
    if (token == "[CLS]") definition.text_template.before.push_back(static_cast<std::int32_t>(id));
    if (token == "[SEP]") definition.text_template.after.push_back(static_cast<std::int32_t>(id));
  }
  definition.added =
      with_config_tokens(std::move(definition.added), config, find_among(definition.tokens));
  place_added_tokens(definition.tokens, definition.added, config.source());
  definition.text_template = with_config_template(std::move(definition.text_template), config,
                                                  find_among(definition.tokens));
  return std::make_unique<WordPieceTokenizer>(std::move(definition), source);
}

std::string WordPieceTokenizer::to_json() const {
  const auto token_text = [this](std::int32_t id) {
    return definition_.tokens[static_cast<std::size_t>(id)];
  };
  std::string vocabulary_text;
  for (const std::string& token : definition_.tokens) {
    const std::ptrdiff_t id = &token - definition_.tokens.data();
    if (token.empty()) continue;
    vocabulary_text +=
        fmt::format("{}\n      {}: {}", vocabulary_text.empty() ? "" : ",", json_quoted(token), id);
  }
  const std::string model = fmt::format(
      "{{\n"
      "    \"type\": \"WordPiece\",\n"
      "    \"unk_token\": {},\n"
      "    \"continuing_subword_prefix\": {},\n"
      "    \"max_input_chars_per_word\": {},\n"
      "    \"vocab\": {{{}\n    }}\n"
      "  }}",
      json_quoted(definition_.unknown), json_quoted(definition_.continuation),
      definition_.max_characters_a_word, vocabulary_text);
  const std::string normalizer = parts().normalisation.steps->json();
  const std::string post_processor = write_post_processor(text_template(), {}, token_text);
  const std::string decoder =
      fmt::format(R"({{"type": "WordPiece", "prefix": {}, "cleanup": {}}})",
                  json_quoted(definition_.continuation), definition_.cleans_up);
  return write_tokenizer_json({.added = added_tokens(),
                               .normalizer = normalizer,
                               .pre_tokenizer = bert_pre_tokenizer,
                               .post_processor = post_processor,
                               .decoder = decoder,
                               .model = model});
}

}  // namespace heed
