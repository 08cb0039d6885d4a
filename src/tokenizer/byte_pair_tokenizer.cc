#include "tokenizer/byte_pair_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <unordered_set>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/piecewise.h"
#include "tokenizer/words.h"

namespace heed {
namespace {

std::array<std::int32_t, 256> find_byte_tokens(const std::vector<std::string>& tokens,
                                               std::string_view source) {
  std::array<std::int32_t, 256> ids;
  ids.fill(-1);
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].size() != 1) continue;
    std::int32_t& known = ids[static_cast<unsigned char>(tokens[id][0])];
    if (known < 0) known = static_cast<std::int32_t>(id);
  }
  for (int byte = 0; byte < 256; ++byte) {
    require(ids[byte] >= 0, ErrorCode::corrupt_data,
            "{}: the vocabulary has no token for the byte 0x{:02X} alone; byte-level BPE needs all "
            "256",
            source, byte);
  }
  return ids;
}

void check_merges(const BytePairDefinition& definition, std::string_view source) {
  PairMap<char> seen(definition.merges.size());
  const auto count = static_cast<std::int64_t>(definition.tokens.size());
  for (std::size_t rank = 0; rank < definition.merges.size(); ++rank) {
    const auto [left, right, result] = definition.merges[rank];
    for (const std::int32_t id : {left, right, result}) {
      require(id >= 0 && id < count, ErrorCode::corrupt_data,
              "{}: merge {} names the token {}; the vocabulary has {}", source, rank, id, count);
    }
    if (definition.tokens[left] + definition.tokens[right] != definition.tokens[result]) {
      fail(ErrorCode::corrupt_data, "{}: merge {} joins {} and {} into {}", source, rank,
           in_quotes(definition.tokens[left]), in_quotes(definition.tokens[right]),
           in_quotes(definition.tokens[result]));
    }
    if (!seen.insert({left, right}).second) {
      fail(ErrorCode::corrupt_data, "{}: merge {} of {} and {} is listed twice", source, rank,
           in_quotes(definition.tokens[left]), in_quotes(definition.tokens[right]));
    }
  }
}

const BytePairDefinition& checked(const BytePairDefinition& definition, std::string_view source) {
  check_merges(definition, source);
  return definition;
}

constexpr char32_t first_substitute = 0x100;
constexpr int substitutes = 68;

bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr const char* pre_tokenizer_key = "pre_tokenizer";
constexpr const char* known_steps =
    "ByteLevel, alone, after Digits, or after a Split by the pattern of LLaMA 3, Qwen2, GPT-4o "
    "or "
    "Mistral NeMo; or the steps of Falcon";

constexpr std::string_view byte_level =
    R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";
constexpr std::string_view byte_level_alone =
    R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false})";

// A Split whose pieces are the matches of a known pattern, which match everything.
WordPattern read_split(const Json& step, std::string_view source) {
  const Json& pattern = json_member(step, "pattern", source);
  const Json* expression = find_json_member(pattern, "Regex");
  require(expression != nullptr && expression->is_string(), ErrorCode::unsupported,
          "{}: the pre_tokenizer splits by {}; only known regular expressions are supported",
          source, shown_in_quotes(pattern));
  const auto& text = expression->get_ref<const std::string&>();
  const std::optional<WordPattern> known = find_word_pattern(text);
  require(
      known.has_value(), ErrorCode::unsupported,
      "{}: the pre_tokenizer splits by the pattern '{}', which is none of the known ones: those "
      "of GPT-2, LLaMA 3, Qwen2, GPT-4o (o200k) and Mistral NeMo (tekken)",
      source, printable(text));
  const std::string& behavior = json_string_member(step, "behavior", source);
  const bool invert = json_boolean_member(step, "invert", false, source);
  require(behavior == "Isolated" || (behavior == "Removed" && invert), ErrorCode::unsupported,
          "{}: the pre_tokenizer splits with 'behavior' {} and 'invert' {}; supported is Isolated, "
          "and Removed with 'invert' true",
          source, in_quotes(behavior), invert);
  return *known;
}

// Digits (Unicode's numbers) apart, each alone or in runs. GPT-2's words, which ByteLevel finds,
// are cut from the text between them.
WordPattern read_digits(const Json& step, std::string_view source) {
  return json_boolean_member(step, "individual_digits", false, source) ? WordPattern::gpt2_digits
                                                                       : WordPattern::gpt2_numbers;
}

// 'use_regex' of ByteLevel is for texts that no Split has cut by a pattern.
void check_byte_level_pattern(bool use_regex, const std::optional<WordPattern>& before,
                              std::string_view source) {
  const bool is_digits = before && sets_digits_apart(*before);
  require(!is_digits || use_regex, ErrorCode::unsupported,
          "{}: 'use_regex' of ByteLevel is false after the step 'Digits'; expected true", source);
  require(is_digits || use_regex != before.has_value(), ErrorCode::unsupported,
          "{}: 'use_regex' of ByteLevel is {} {} a Split; expected the contrary", source, use_regex,
          before ? "after" : "without");
}

constexpr std::string_view falcon_steps =
    R"({"type": "Sequence", "pretokenizers": [{"type": "Punctuation", "behavior": "Contiguous"}, )"
    R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}, )"
    R"({"type": "Digits", "individual_digits": false}, )"
    R"({"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated", )"
    R"("invert": false}]})";

bool is_falcon(const Json& document) {
  const Json* const step = find_json_member(document, pre_tokenizer_key);
  return step != nullptr && *step == Json::parse(falcon_steps);
}

WordPattern read_pre_tokenizer(const Json& document, std::string_view source) {
  if (is_falcon(document)) return WordPattern::falcon;
  const auto steps = read_steps(document, pre_tokenizer_key, "pretokenizers", source);
  require(!steps.empty(), ErrorCode::unsupported,
          "{}: the pre_tokenizer is missing; supported is {}", source, known_steps);
  std::optional<WordPattern> before;  // of the step before ByteLevel
  bool encodes_bytes = false;
  for (const Json* step : steps) {
    const std::string& type = step_type(*step);
    if ((type == "Split" || type == "Digits") && !before && !encodes_bytes) {
      before = type == "Split" ? read_split(*step, source) : read_digits(*step, source);
      continue;
    }
    if (type != "ByteLevel" || encodes_bytes) {
      refuse_step(*step, pre_tokenizer_key, known_steps, source);
    }
    encodes_bytes = true;
    require(!json_boolean_member(*step, "add_prefix_space", true, source), ErrorCode::unsupported,
            "{}: the pre_tokenizer adds a space before the text (add_prefix_space); only false is "
            "supported",
            source);
    check_byte_level_pattern(json_boolean_member(*step, "use_regex", true, source), before, source);
  }
  require(encodes_bytes, ErrorCode::unsupported,
          "{}: the pre_tokenizer has no step of type ByteLevel; supported is {}", source,
          known_steps);
  return before.value_or(WordPattern::gpt2);
}

// Whether texts are brought to normalisation form C.
bool read_nfc(const Json& document, std::string_view source) {
  bool nfc = false;
  for (const Json* step : read_steps(document, "normalizer", "normalizers", source)) {
    if (step_type(*step) != "NFC") {
      refuse_step(*step, "normalizer", "NFC before ByteLevel", source);
    }
    nfc = true;
  }
  return nfc;
}

// A decoder of type ByteLevel puts the bytes together again; any other may change them.
void check_decoder(const Json& document, std::string_view source) {
  for (const Json* step : read_steps(document, "decoder", "decoders", source)) {
    if (step_type(*step) != "ByteLevel") refuse_step(*step, "decoder", "ByteLevel", source);
  }
}

std::string pre_tokenizer_text(WordPattern pattern) {
  if (pattern == WordPattern::gpt2) return std::string(byte_level);
  if (pattern == WordPattern::falcon) return std::string(falcon_steps);
  if (sets_digits_apart(pattern)) {
    return fmt::format(
        R"({{"type": "Sequence", "pretokenizers": [{{"type": "Digits", "individual_digits": {}}}, )"
        R"({}]}})",
        pattern == WordPattern::gpt2_digits, byte_level);
  }
  return fmt::format(
      R"({{"type": "Sequence", "pretokenizers": [{{"type": "Split", "pattern": {{"Regex": {}}}, )"
      R"("behavior": "Isolated", "invert": false}}, {}]}})",
      json_quoted(word_pattern_text(pattern)), byte_level_alone);
}

}  // namespace

BytePairDefinition read_byte_letters(const BytePairTexts& texts, std::string_view source) {
  BytePairDefinition definition;
  definition.added = texts.added;
  std::unordered_map<std::string_view, std::int32_t> ids;
  ids.reserve(texts.tokens.size());
  std::unordered_set<std::string_view> added;
  for (const AddedToken& token : texts.added) added.insert(token.content);
  for (std::size_t id = 0; id < texts.tokens.size(); ++id) {
    const std::string& text = texts.tokens[id];
    if (text.empty()) {
      definition.tokens.emplace_back();
      continue;
    }
    if (!ids.emplace(text, static_cast<std::int32_t>(id)).second) {
      fail(ErrorCode::corrupt_data, "{}: the token {} has two ids", source, in_quotes(text));
    }
    if (added.contains(text)) {
      definition.tokens.push_back(text);
      continue;
    }
    auto bytes = letters_to_bytes(text);
    if (!bytes) {
      fail(ErrorCode::corrupt_data,
           "{}: the token {} ({}) is not written in the letters of byte-level BPE", source, id,
           in_quotes(text));
    }
    definition.tokens.push_back(std::move(*bytes));
  }
  const auto find = [&](std::string_view token, std::size_t rank, std::string_view role) {
    const auto found = ids.find(token);
    if (found == ids.end()) {
      fail(ErrorCode::corrupt_data, "{}: merge {} ({} {}): the {} {} is not in the vocabulary",
           source, rank, in_quotes(texts.merges[rank].first), in_quotes(texts.merges[rank].second),
           role, in_quotes(token));
    }
    return found->second;
  };
  for (std::size_t rank = 0; rank < texts.merges.size(); ++rank) {
    const auto& [left, right] = texts.merges[rank];
    definition.merges.push_back({find(left, rank, "left part"), find(right, rank, "right part"),
                                 find(left + right, rank, "result")});
  }
  return definition;
}

BytePairTokenizer::BytePairTokenizer(BytePairDefinition definition, std::string_view source)
    : Tokenizer(
          {.vocabulary = Vocabulary(checked(definition, source).tokens, definition.added, source),
           .normalisation = {.nfc = definition.nfc},
           .text_template = std::move(definition.text_template),
           .unknown = std::nullopt},
          source),
      pattern_(definition.pattern),
      merges_(std::move(definition.merges)),
      merger_(find_byte_tokens(definition.tokens, source), merges_),
      ignore_merges_(definition.ignore_merges) {
  if (!ignore_merges_) return;
  for (std::int32_t id = 0; id < vocabulary_size(); ++id) {
    const std::string_view bytes = vocabulary().bytes(id);
    if (!bytes.empty() && vocabulary().find_added(id) == nullptr) whole_words_.emplace(bytes, id);
  }
}

std::string BytePairTokenizer::token_letters(std::int32_t id) const {
  const AddedToken* added = vocabulary().find_added(id);
  return added != nullptr ? added->content : bytes_to_letters(vocabulary().bytes(id));
}

void BytePairTokenizer::append_word(std::string_view word,
                                    std::vector<std::int32_t>& tokens) const {
  if (ignore_merges_) {
    const auto whole = whole_words_.find(word);
    if (whole != whole_words_.end()) {
      tokens.push_back(whole->second);
      return;
    }
  }
  merger_.append_tokens(word, tokens);
}

template <class Words>
void BytePairTokenizer::append_words(std::string_view text, WordCache& cache,
                                     std::vector<std::int32_t>& tokens) const {
  for_each_word<Words>(text, [&](std::size_t begin, std::size_t end) {
    append_cached(text.substr(begin, end - begin), cache, tokens,
                  [&](std::string_view word) { append_word(word, tokens); });
  });
}

BytePairTokenizer::AppendWords BytePairTokenizer::append_words_of(WordPattern pattern) {
  switch (pattern) {
    case WordPattern::gpt2: return &BytePairTokenizer::append_words<Gpt2Words>;
    case WordPattern::llama3: return &BytePairTokenizer::append_words<Llama3Words>;
    case WordPattern::qwen2: return &BytePairTokenizer::append_words<Qwen2Words>;
    case WordPattern::o200k: return &BytePairTokenizer::append_words<O200kWords>;
    case WordPattern::tekken: return &BytePairTokenizer::append_words<TekkenWords>;
    case WordPattern::gpt2_digits: return &BytePairTokenizer::append_words<Gpt2DigitWords>;
    case WordPattern::gpt2_numbers: return &BytePairTokenizer::append_words<Gpt2NumberWords>;
    case WordPattern::falcon: return &BytePairTokenizer::append_words<FalconWords>;
  }
  fail(ErrorCode::internal, "word pattern {}", static_cast<int>(pattern));
}

std::vector<std::int32_t> BytePairTokenizer::encode_prepared(const PreparedText& text,
                                                             StopFlag stop) const {
  PieceEncoder encoder;
  encoder.is_boundary = [this](std::string_view whole, std::size_t position) {
    return is_word_boundary(pattern_, whole, position);
  };
  const AppendWords append = append_words_of(pattern_);
  encoder.append_tokens = [this, append](std::string_view part, WordCache& cache,
                                         std::vector<std::int32_t>& tokens) {
    (this->*append)(part, cache, tokens);
  };
  return encode_in_pieces(text, encoder, caches_, stop);
}

bool BytePairTokenizer::may_cut(std::string_view text, std::size_t position) const {
  return Tokenizer::may_cut(text, position) && is_word_boundary(pattern_, text, position);
}

const std::array<char32_t, 256>& byte_letters() {
  static const std::array<char32_t, 256> letters = [] {
    std::array<char32_t, 256> table{};
    char32_t next = first_substitute;
    for (int byte = 0; byte < 256; ++byte) {
      table[byte] = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
    }
    return table;
  }();
  return letters;
}

const std::array<unsigned char, 256>& bytes_by_letter() {
  static const std::array<unsigned char, 256> order = [] {
    std::array<unsigned char, 256> bytes{};
    std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
    std::sort(bytes.begin(), bytes.end(), [](unsigned char left, unsigned char right) {
      return byte_letters()[left] < byte_letters()[right];
    });
    return bytes;
  }();
  return order;
}

std::string bytes_to_letters(std::string_view bytes) {
  std::string letters;
  letters.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    append_utf8(letters, byte_letters()[static_cast<unsigned char>(byte)]);
  }
  return letters;
}

std::optional<std::string> letters_to_bytes(std::string_view letters) {
  static const auto byte_of_letter = [] {
    std::array<std::int16_t, first_substitute + substitutes> table{};
    table.fill(-1);
    for (int byte = 0; byte < 256; ++byte) {
      table[byte_letters()[byte]] = static_cast<std::int16_t>(byte);
    }
    return table;
  }();
  std::string bytes;
  bytes.reserve(letters.size());
  for (std::size_t i = 0; i < letters.size();) {
    const Utf8Character letter = read_utf8(letters, i);
    if (!letter.valid || letter.code_point >= byte_of_letter.size()) return std::nullopt;
    const int byte = byte_of_letter[letter.code_point];
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    i += letter.length;
  }
  return bytes;
}

std::unique_ptr<Tokenizer> read_byte_pair_json(const Json& document, std::string_view source) {
  const Json& model = json_member(document, "model", source);
  check_bpe_model(model, source);
  const WordPattern pattern = read_pre_tokenizer(document, source);
  require_json_value(model, "byte_fallback", {false}, source);
  const bool nfc = read_nfc(document, source);
  check_decoder(document, source);

  BytePairTexts texts;
  texts.added = read_added_tokens(document, source);
  texts.tokens = tokens_by_id(json_member(model, "vocab", source), texts.added, source);
  texts.merges = read_merges(model, source);
  BytePairDefinition definition = read_byte_letters(texts, source);
  definition.pattern = pattern;
  definition.nfc = nfc;
  definition.ignore_merges = json_boolean_member(model, "ignore_merges", false, source);
  definition.text_template = read_text_template(document, source);
  return std::make_unique<BytePairTokenizer>(std::move(definition), source);
}

std::string BytePairTokenizer::to_json() const {
  const auto token_text = [this](std::int32_t id) { return token_letters(id); };
  const std::string pre_tokenizer = pre_tokenizer_text(pattern_);
  const std::string post_processor = write_post_processor(text_template(), byte_level, token_text);
  const std::string model = write_bpe_model({.vocabulary_size = vocabulary_size(),
                                             .merges = merges_,
                                             .token_text = token_text,
                                             .ignore_merges = ignore_merges_});
  return write_tokenizer_json(
      {.added = added_tokens(),
       .normalizer = parts().normalisation.nfc ? R"({"type": "NFC"})" : "null",
       .pre_tokenizer = pre_tokenizer,
       .post_processor = post_processor,
       .decoder = byte_level,
       .model = model});
}

}  // namespace heed
