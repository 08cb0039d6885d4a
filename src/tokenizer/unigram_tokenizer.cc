#include "tokenizer/unigram_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/character_class.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/metaspace_tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace heed {
namespace {

// How much less likely than the least likely token a character is that has none.
constexpr double unknown_penalty = 10;

TokenizerParts unigram_parts(const UnigramDefinition& definition, std::string_view source) {
  const auto count = static_cast<std::int32_t>(definition.tokens.size());
  require(definition.unknown >= 0 && definition.unknown < count, ErrorCode::corrupt_data,
          "{}: 'unk_id' is {}; expected a token, 0 to {}", source, definition.unknown, count - 1);
  return {
      .vocabulary = Vocabulary(metaspace_token_bytes({.tokens = definition.tokens,
                                                      .added = definition.added,
                                                      .byte_fallback = definition.byte_fallback}),
                               definition.added, source),
      .normalisation = {.steps = definition.steps},
      .text_template = definition.text_template,
      .unknown = definition.unknown};
}

// Walks through a stretch and the word that was made of it, where U+2581 stands for each space.
class StretchOffsets {
 public:
  // `prepended` bytes of the word stand before the stretch.
  StretchOffsets(std::string_view stretch, std::size_t prepended)
      : stretch_(stretch), in_word_(prepended) {}

  // Where in the stretch is what stands at `position` of the word; positions ascend.
  std::size_t at(std::size_t position) {
    while (in_word_ < position) {
      in_word_ += stretch_[in_stretch_] == ' ' ? metaspace_character.size() : 1;
      ++in_stretch_;
    }
    return in_stretch_;
  }

 private:
  std::string_view stretch_;
  std::size_t in_word_;
  std::size_t in_stretch_ = 0;
};

constexpr const char* known_normaliser_steps =
    "Precompiled, Strip, Lowercase, and Replace of a string or of the regular expression ' {2,}'";

std::unique_ptr<const NormaliserStep> read_replace_step(const Json& step, std::string_view source) {
  const Json& pattern = json_member(step, "pattern", source);
  const std::string& to = json_string_member(step, "content", source);
  const Json* from = find_json_member(pattern, "String");
  if (from != nullptr && from->is_string() && !from->get_ref<const std::string&>().empty()) {
    return make_replace_step(from->get<std::string>(), to);
  }
  const Json* expression = find_json_member(pattern, "Regex");
  if (expression == nullptr || *expression != " {2,}") {
    refuse_step(step, "normalizer", known_normaliser_steps, source);
  }
  return make_collapse_step(to);
}

std::unique_ptr<const NormaliserStep> read_unigram_step(const Json& step, std::string_view source) {
  const std::string& type = step_type(step);
  const std::string where = fmt::format("{}: {}", source, type);
  if (type == "Precompiled") {
    return make_precompiled_step(json_string_member(step, "precompiled_charsmap", where), where);
  }
  if (type == "Strip") {
    return make_strip_step({.left = json_boolean_member(step, "strip_left", true, where),
                            .right = json_boolean_member(step, "strip_right", true, where)});
  }
  if (type == "Replace") return read_replace_step(step, source);
  if (type == "Lowercase") return make_lowercase_step();
  refuse_step(step, "normalizer", known_normaliser_steps, source);
}

// Whether the published library loses where a text begins when it replaces its beginning. It does
// for strings of several characters.
bool replaces_several(const Json& step) {
  if (step_type(step) != "Replace") return false;
  const Json* pattern = find_json_member(step, "pattern");
  const Json* from = pattern == nullptr ? nullptr : find_json_member(*pattern, "String");
  if (from == nullptr || !from->is_string()) return false;
  const auto& text = from->get_ref<const std::string&>();
  return !text.empty() && read_utf8(text, 0).length < text.size();
}

void check_prepend_scheme(const Json& document, PrependScheme scheme, std::string_view source) {
  if (scheme != PrependScheme::first) return;
  for (const Json* step : read_steps(document, "normalizer", "normalizers", source)) {
    require(
        !replaces_several(*step), ErrorCode::unsupported,
        "{}: 'prepend_scheme' is first, and the normalizer replaces several characters at once; "
        "supported is one of these",
        source);
  }
}

std::shared_ptr<const NormaliserSteps> read_unigram_normaliser(const Json& document,
                                                               std::string_view source) {
  std::vector<std::unique_ptr<const NormaliserStep>> steps;
  for (const Json* step : read_steps(document, "normalizer", "normalizers", source)) {
    steps.push_back(read_unigram_step(*step, source));
  }
  return std::make_shared<NormaliserSteps>(std::move(steps));
}

void read_unigram_pre_tokenizer(const Json& document, UnigramDefinition& definition,
                                std::string_view source) {
  constexpr const char* known = "Metaspace, alone or after a WhitespaceSplit";
  bool has_metaspace = false;
  for (const Json* step : read_steps(document, "pre_tokenizer", "pretokenizers", source)) {
    if (step_type(*step) == "WhitespaceSplit" && !has_metaspace) {
      definition.splits_at_white_space = true;
    } else if (step_type(*step) == "Metaspace" && !has_metaspace) {
      definition.prepend = read_prepend_scheme(*step, source);
      definition.splits_words = json_boolean_member(*step, "split", true, source);
      has_metaspace = true;
    } else {
      refuse_step(*step, "pre_tokenizer", known, source);
    }
  }
  require(has_metaspace, ErrorCode::unsupported,
          "{}: the pre_tokenizer of this Unigram model has no step of type Metaspace; supported is "
          "{}",
          source, known);
}

void read_unigram_decoder(const Json& document, UnigramDefinition& definition,
                          std::string_view source) {
  const auto steps = read_steps(document, "decoder", "decoders", source);
  definition.strips_first_word = steps.empty() && definition.prepend != PrependScheme::never;
  bool has_bytes = steps.empty();
  for (const Json* step : steps) {
    const std::string& type = step_type(*step);
    if (type == "Metaspace") {
      definition.strips_first_word = read_prepend_scheme(*step, source) != PrependScheme::never;
    } else if (type == "ByteFallback") {
      has_bytes = true;
    } else if (type == "Strip") {
      require_json_value(*step, "content", {" "}, source);
      require_json_value(*step, "start", {1}, source);
      require_json_value(*step, "stop", {0}, source);
      definition.strips_first_space = true;
    } else if (type == "Replace") {
      const std::string where = fmt::format("{}: Replace of the decoder", source);
      require_json_value(*step, "pattern", {Json({{"String", metaspace_character}})}, where);
      require_json_value(*step, "content", {" "}, where);
    } else if (type != "Fuse") {
      refuse_step(*step, "decoder",
                  "Metaspace, Replace of '▁' by ' ', ByteFallback, Fuse and Strip", source);
    }
  }
  require(has_bytes || !definition.byte_fallback, ErrorCode::unsupported,
          "{}: 'byte_fallback' is true, but the decoder has no step of type ByteFallback", source);
}

// The list of pairs of tokens and scores; a token's index is its id.
void read_unigram_vocabulary(const Json& model, UnigramDefinition& definition,
                             std::string_view source) {
  for (const Json& entry : json_array_member(model, "vocab", source)) {
    const std::size_t id = definition.tokens.size();
    require(entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number(),
            ErrorCode::corrupt_data,
            "{}: the token {} of 'vocab' is {}; expected a text and a score", source, id,
            shown_in_quotes(entry));
    definition.tokens.push_back(entry[0].get<std::string>());
    definition.scores.push_back(entry[1].get<double>());
    require(!definition.tokens.back().empty(), ErrorCode::corrupt_data,
            "{}: the token with the id {} is ''", source, id);
  }
  require(!definition.tokens.empty(), ErrorCode::corrupt_data, "{}: 'vocab' is empty", source);
  place_added_tokens(definition.tokens, definition.added, source);
}

}  // namespace

UnigramTokenizer::UnigramTokenizer(UnigramDefinition definition, std::string_view source)
    : PartTokenizer(unigram_parts(definition, source), source), definition_(std::move(definition)) {
  byte_ids_.fill(-1);
  double least = std::numeric_limits<double>::infinity();
  std::unordered_set<std::string_view> seen;
  std::vector<std::pair<std::string_view, std::int32_t>> texts;
  check(definition_.scores.size() <= definition_.tokens.size(), "scores are of tokens");
  for (std::size_t id = 0; id < definition_.tokens.size(); ++id) {
    const std::string& token = definition_.tokens[id];
    if (token.empty()) continue;
    require(seen.insert(token).second, ErrorCode::corrupt_data, "{}: the token {} has two ids",
            source, in_quotes(token));
    if (id >= definition_.scores.size()) continue;
    require_sought_size(token, static_cast<std::int64_t>(id), source);
    const double score = definition_.scores[id];
    require(std::isfinite(score), ErrorCode::corrupt_data, "{}: the score of the token {} is {}",
            source, in_quotes(token), score);
    least = std::min(least, score);
    texts.emplace_back(token, static_cast<std::int32_t>(id));
    for (int byte = 0; byte < 256 && token.starts_with("<0x"); ++byte) {
      if (token == byte_token_text(byte)) byte_ids_[byte] = static_cast<std::int32_t>(id);
    }
  }
  unknown_score_ = least - unknown_penalty;
  trie_ = TokenTrie(std::move(texts));
}

// All characters of an unknown stretch are bytes, or one unknown token.
void UnigramTokenizer::append_unknown(std::string_view text, std::size_t begin,
                                      std::vector<TokenSpan>& spans) const {
  const auto [id, size] = trie_.longest_prefix(text);
  if (id >= 0 && size == text.size()) {  // as the published encoders look it up once more
    spans.push_back({id, begin, begin + size});
    return;
  }
  const auto id_of = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  const bool has_bytes = std::ranges::all_of(text, [&](char byte) { return id_of(byte) >= 0; });
  if (!definition_.byte_fallback || !has_bytes) {
    spans.push_back({definition_.unknown, begin, begin + text.size()});
    return;
  }
  for (const char byte : text) {
    spans.push_back({id_of(byte), begin, begin + 1});
    ++begin;
  }
}

// The best way to every position, from left to right (Viterbi); the first of equals.
void UnigramTokenizer::append_word(std::string_view word, std::vector<TokenSpan>& spans) const {
  struct Best {
    double score = 0;
    std::size_t begin = SIZE_MAX;  // of the last token; SIZE_MAX: no way leads here
    std::int32_t id = 0;
  };
  std::vector<Best> best(word.size() + 1);
  for (std::size_t begin = 0; begin < word.size();) {
    const double before = best[begin].score;
    const std::size_t character = read_utf8(word, begin).length;
    const auto offer = [&](std::int32_t id, std::size_t size, double score) {
      Best& end = best[begin + size];
      if (end.begin != SIZE_MAX && before + score <= end.score) return;
      end = {before + score, begin, id};
    };
    bool has_character = false;
    trie_.for_each_prefix(word.substr(begin), [&](std::int32_t id, std::size_t size) {
      offer(id, size, definition_.scores[static_cast<std::size_t>(id)]);
      has_character = has_character || size == character;
    });
    if (!has_character) offer(definition_.unknown, character, unknown_score_);
    begin += character;
  }
  std::vector<TokenSpan> path;  // backwards, unknown characters in a row as one
  for (std::size_t end = word.size(); end > 0; end = best[end].begin) {
    const auto& [score, begin, id] = best[end];
    const bool joins = id == definition_.unknown && !path.empty() && path.back().id == id;
    if (joins) {
      path.back().begin = begin;
    } else {
      path.push_back({id, begin, end});
    }
  }
  for (auto token = path.rbegin(); token != path.rend(); ++token) {
    if (token->id == definition_.unknown) {
      append_unknown(word.substr(token->begin, token->end - token->begin), token->begin, spans);
    } else {
      spans.push_back(*token);
    }
  }
}

void UnigramTokenizer::append_stretch(std::string_view stretch, PartPlace place,
                                      std::vector<TokenSpan>& spans) const {
  if (stretch.empty()) return;
  std::string word = with_metaspaces(stretch);
  const bool may_prepend =
      definition_.prepend == PrependScheme::always ||
      (definition_.prepend == PrependScheme::first && place != PartPlace::later);
  const bool prepends = may_prepend && !word.starts_with(metaspace_character);
  if (prepends) word.insert(0, metaspace_character);
  StretchOffsets offsets(stretch, prepends ? metaspace_character.size() : 0);
  for (std::size_t begin = 0; begin < word.size();) {
    std::size_t end = word.size();
    if (definition_.splits_words) end = std::min(word.find(metaspace_character, begin + 1), end);
    const std::size_t first = spans.size();
    append_word(std::string_view(word).substr(begin, end - begin), spans);
    for (std::size_t i = first; i < spans.size(); ++i) {
      spans[i].begin = offsets.at(begin + spans[i].begin);
      spans[i].end = offsets.at(begin + spans[i].end);
    }
    begin = end;
  }
}

void UnigramTokenizer::append_part(std::string_view part, PartPlace place,
                                   std::vector<TokenSpan>& spans) const {
  if (!definition_.splits_at_white_space) return append_stretch(part, place, spans);
  const auto append = [&](std::size_t begin, std::size_t end) {
    const std::size_t first = spans.size();
    append_stretch(part.substr(begin, end - begin), begin == 0 ? place : PartPlace::later, spans);
    for (std::size_t i = first; i < spans.size(); ++i) {
      spans[i].begin += begin;
      spans[i].end += begin;
    }
  };
  std::size_t word = 0;
  for (std::size_t i = 0; i < part.size();) {
    const Utf8Character character = read_utf8(part, i);
    const bool is_space =
        character.valid && character_class(character.code_point) == CharacterClass::space;
    if (is_space) {
      append(word, i);
      word = i + character.length;
    }
    i += character.length;
  }
  append(word, part.size());
}

// With a normaliser, what becomes of a text may depend on where it ends.
bool UnigramTokenizer::may_cut(std::string_view text, std::size_t position) const {
  const bool are_apart = definition_.splits_words && definition_.steps->empty() &&
                         definition_.prepend == PrependScheme::always;
  if (!are_apart) return PartTokenizer::may_cut(text, position);
  // Words that are apart may be cut, though parts may not.
  return Tokenizer::may_cut(text, position);  // NOLINT(bugprone-parent-virtual-call)
}

std::string UnigramTokenizer::decode(std::span<const std::int32_t> ids,
                                     DecodeOptions options) const {
  std::string text;
  bool is_first = true;
  for (const std::int32_t id : ids) {
    std::string bytes(vocabulary().bytes(id));
    const AddedToken* added = vocabulary().find_added(id);
    if (added != nullptr && added->special && !options.special_tokens) continue;
    if (is_first && added == nullptr && definition_.strips_first_word) std::erase(bytes, ' ');
    is_first = false;
    text += bytes;
  }
  if (definition_.strips_first_space && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::unique_ptr<Tokenizer> read_unigram_json(const Json& document, std::string_view source) {
  const Json& model = json_member(document, "model", source);
  UnigramDefinition definition;
  definition.steps = read_unigram_normaliser(document, source);
  read_unigram_pre_tokenizer(document, definition, source);
  check_prepend_scheme(document, definition.prepend, source);
  definition.byte_fallback = json_boolean_member(model, "byte_fallback", false, source);
  read_unigram_decoder(document, definition, source);
  definition.text_template = read_text_template(document, source);
  definition.added = read_added_tokens(document, source);
  read_unigram_vocabulary(model, definition, source);
  const Json* unknown = find_json_member(model, "unk_id");
  require(unknown != nullptr, ErrorCode::unsupported,
          "{}: the Unigram model has no 'unk_id': characters without a token would be errors",
          source);
  definition.unknown = static_cast<std::int32_t>(
      json_integer(*unknown, {fmt::format("{}: 'unk_id'", source)}, 0,
                   static_cast<std::int64_t>(definition.scores.size()) - 1));
  return std::make_unique<UnigramTokenizer>(std::move(definition), source);
}

std::string UnigramTokenizer::to_json() const {
  const auto token_text = [this](std::int32_t id) {
    return definition_.tokens[static_cast<std::size_t>(id)];
  };
  std::string vocabulary_text;
  for (std::size_t id = 0; id < definition_.scores.size(); ++id) {
    vocabulary_text +=
        fmt::format("{}\n      [{}, {}]", id == 0 ? "" : ",", json_quoted(definition_.tokens[id]),
                    Json(definition_.scores[id]).dump());
  }
  const std::string model = fmt::format(
      "{{\n"
      "    \"type\": \"Unigram\",\n"
      "    \"unk_id\": {},\n"
      "    \"byte_fallback\": {},\n"
      "    \"vocab\": [{}\n    ]\n"
      "  }}",
      definition_.unknown, definition_.byte_fallback, vocabulary_text);
  const auto metaspace = [&](PrependScheme scheme) {
    return fmt::format(
        R"({{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "{}", "split": {}}})",
        prepend_scheme_name(scheme), definition_.splits_words);
  };
  std::string pre_tokenizer = metaspace(definition_.prepend);
  if (definition_.splits_at_white_space) {
    pre_tokenizer = fmt::format(
        R"({{"type": "Sequence", "pretokenizers": [{{"type": "WhitespaceSplit"}}, {}]}})",
        pre_tokenizer);
  }
  const std::string decoder = fmt::format(
      R"({{"type": "Sequence", "decoders": [{}, {{"type": "ByteFallback"}}, {{"type": "Fuse"}}{}]}})",
      metaspace(definition_.strips_first_word ? PrependScheme::always : PrependScheme::never),
      definition_.strips_first_space
          ? R"(, {"type": "Strip", "content": " ", "start": 1, "stop": 0})"
          : "");
  const std::string normalizer = parts().normalisation.steps->json();
  const std::string post_processor = write_post_processor(text_template(), {}, token_text);
  return write_tokenizer_json({.added = added_tokens(),
                               .normalizer = normalizer,
                               .pre_tokenizer = pre_tokenizer,
                               .post_processor = post_processor,
                               .decoder = decoder,
                               .model = model});
}

}  // namespace heed
