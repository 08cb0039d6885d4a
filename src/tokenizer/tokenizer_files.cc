#include "tokenizer/tokenizer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/byte_pair_tokenizer.h"
#include "tokenizer/character_tokenizer.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/metaspace_tokenizer.h"
#include "tokenizer/sentence_piece_tokenizer.h"
#include "tokenizer/unigram_tokenizer.h"
#include "tokenizer/word_piece_tokenizer.h"

namespace heed {
namespace {

std::vector<std::pair<std::string, std::string>> read_merge_lines(std::string_view text,
                                                                  std::string_view source) {
  std::vector<std::pair<std::string, std::string>> merges;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos) {
      fail(ErrorCode::corrupt_data,
           "{}: line {} is {}; expected two tokens and a space between them", source, number,
           in_quotes(line));
    }
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

std::unique_ptr<Tokenizer> load_json(const std::filesystem::path& path,
                                     const TokenizerConfig& config) {
  const MappedFile file(path);
  return parse_tokenizer_json(file.text(), path.string(), config);
}

std::unique_ptr<Tokenizer> load_vocabulary_and_merges(const std::filesystem::path& directory) {
  const std::filesystem::path vocabulary_path = directory / "vocab.json";
  const std::filesystem::path merges_path = directory / "merges.txt";
  const MappedFile vocabulary(vocabulary_path);
  const MappedFile merges(merges_path);
  return parse_vocabulary_and_merges({.vocabulary = vocabulary.text(),
                                      .merges = merges.text(),
                                      .vocabulary_source = vocabulary_path.string(),
                                      .merges_source = merges_path.string(),
                                      .config = TokenizerConfig(directory)});
}

// The id of a token that no merge makes; nothing where there is none.
std::optional<std::int32_t> find_whole_token(const BytePairTexts& texts, std::string_view token) {
  const auto found = std::ranges::find(texts.tokens, token);
  if (found == texts.tokens.end()) return std::nullopt;
  const bool is_merged = std::ranges::any_of(
      texts.merges, [&](const auto& merge) { return merge.first + merge.second == token; });
  if (is_merged) return std::nullopt;
  return static_cast<std::int32_t>(found - texts.tokens.begin());
}

// The special tokens of RoBERTa and BART, whose texts stand between <s> and </s>; nothing for other
// vocabularies. <mask> takes along the space before it.
std::optional<TextTemplate> add_roberta_tokens(BytePairTexts& texts) {
  const auto begin = find_whole_token(texts, "<s>"), end = find_whole_token(texts, "</s>");
  if (!begin || !end) return std::nullopt;
  for (const char* name : {"<s>", "<pad>", "</s>", "<unk>", "<mask>"}) {
    const auto id = find_whole_token(texts, name);
    if (!id) continue;
    texts.added.push_back(
        {.id = *id, .content = name, .strip_left = std::string_view(name) == "<mask>"});
  }
  return TextTemplate{.before = {*begin}, .after = {*end}};
}

// GPT-2's one special token, which stands around no text.
void add_gpt2_token(BytePairTexts& texts) {
  const auto found = std::ranges::find(texts.tokens, end_of_text_name);
  if (found == texts.tokens.end()) return;
  texts.added.push_back({.id = static_cast<std::int32_t>(found - texts.tokens.begin()),
                         .content = std::string(end_of_text_name)});
}

std::unique_ptr<Tokenizer> load_word_pieces(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "vocab.txt";
  const MappedFile file(path);
  return read_word_piece_lines(file.text(), TokenizerConfig(directory), path.string());
}

constexpr const char* decoder_key = "added_tokens_decoder";

// Added tokens by content, in the order in which they came.
class AddedTokenList {
 public:
  explicit AddedTokenList(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) places_.emplace(tokens_[i].content, i);
  }

  AddedToken* find(const std::string& content) {
    const auto found = places_.find(content);
    return found == places_.end() ? nullptr : &tokens_[found->second];
  }

  void add(AddedToken token) {
    places_.emplace(token.content, tokens_.size());
    tokens_.push_back(std::move(token));
  }

  std::vector<AddedToken> take() { return std::move(tokens_); }

 private:
  std::vector<AddedToken> tokens_;
  std::unordered_map<std::string, std::size_t> places_;
};

std::int64_t id_of_key(const std::string& key, std::string_view source) {
  std::int64_t id = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  const bool is_id = error == std::errc() && end == key.data() + key.size() && id >= 0;
  require(is_id, ErrorCode::corrupt_data, "{}: '{}' has the id {}; expected a number", source,
          decoder_key, in_quotes(key));
  return id;
}

// The tokens that the configuration calls special, as it has them: strings or objects.
std::vector<const Json*> special_entries(const TokenizerConfig& config) {
  std::vector<const Json*> entries;
  const auto add = [&](const Json* entry) {
    if (entry != nullptr && !entry->is_null()) entries.push_back(entry);
  };
  for (const char* const key : special_token_keys) add(config.find_special(key));
  for (const char* const key : {"additional_special_tokens", "extra_special_tokens"}) {
    const Json* const list = config.find_special(key);
    if (list == nullptr || !list->is_structured()) continue;
    for (const Json& entry : *list) add(&entry);  // of a list, or the values of an object
  }
  return entries;
}

std::string special_label(const TokenizerConfig& config) {
  return config.source() + ": a special token";
}

std::unordered_set<std::string> special_names(const TokenizerConfig& config) {
  std::unordered_set<std::string> names;
  for (const Json* const entry : special_entries(config)) {
    names.insert(special_token_text(*entry, special_label(config)));
  }
  return names;
}

// By ascending id.
void add_listed_tokens(const Json& listed, const TokenizerConfig& config, const FindToken& find,
                       AddedTokenList& added) {
  const std::string& source = config.source();
  require(listed.is_object(), ErrorCode::corrupt_data, "{}: '{}' is {}; expected an object", source,
          decoder_key, shown_in_quotes(listed));
  const std::unordered_set<std::string> special = special_names(config);
  std::map<std::int64_t, const Json*> by_id;
  for (const auto& [key, entry] : listed.items()) by_id[id_of_key(key, source)] = &entry;
  for (const auto& [id, entry] : by_id) {
    AddedToken token = read_added_token(*entry, id, source);
    if (token.content.empty()) continue;
    token.special = token.special || special.contains(token.content);
    AddedToken* const known = added.find(token.content);
    if (known != nullptr) {
      token.id = known->id;
      *known = std::move(token);
    } else {
      token.id = find(token.content).value_or(token.id);
      added.add(std::move(token));
    }
  }
}

AddedToken special_token_of(const Json& entry, std::int32_t id, const std::string& source) {
  if (entry.is_string()) return {.id = id, .content = entry.get<std::string>()};
  AddedToken token = read_added_token(entry, id, source);
  token.special = true;
  token.normalized = json_boolean_member(entry, "normalized", false, source);
  return token;
}

void add_old_tokens(const TokenizerConfig& config, const FindToken& find, AddedTokenList& added) {
  const std::string& source = config.added_tokens_source();
  const std::unordered_set<std::string> special = special_names(config);
  std::map<std::int64_t, std::string> by_id;
  for (const auto& [content, id] : config.added_tokens().items()) {
    by_id[json_integer(id, {fmt::format("{}: the id of {}", source, in_quotes(content))}, 0,
                       INT32_MAX - 1)] = content;
  }
  for (const auto& [id, content] : by_id) {
    if (content.empty() || added.find(content) != nullptr) continue;
    const bool is_special = special.contains(content);
    added.add({.id = find(content).value_or(static_cast<std::int32_t>(id)),
               .content = content,
               .special = is_special,
               .normalized = !is_special});
  }
}

// The ids of a vocabulary: an object from texts to ids or, of Unigram, a list of texts and scores.
FindToken find_in_document(const Json& document, std::string_view source) {
  const Json& vocabulary = json_member(json_member(document, "model", source), "vocab", source);
  if (vocabulary.is_object()) {
    return [&vocabulary](const std::string& text) -> std::optional<std::int32_t> {
      const auto found = vocabulary.find(text);
      if (found == vocabulary.end() || !found->is_number_integer()) return std::nullopt;
      return found->get<std::int32_t>();
    };
  }
  std::unordered_map<std::string, std::int32_t> ids;
  std::int32_t id = 0;
  for (const Json& entry : vocabulary) {
    const bool is_token = entry.is_array() && !entry.empty() && entry[0].is_string();
    if (is_token) ids.emplace(entry[0].get<std::string>(), id);
    ++id;
  }
  return [ids = std::move(ids)](const std::string& text) -> std::optional<std::int32_t> {
    const auto found = ids.find(text);
    if (found == ids.end()) return std::nullopt;
    return found->second;
  };
}

// The token `key` at the side of a text where it belongs, if it is to be there.
void set_token(const TokenizerConfig& config, const char* wanted_key, const char* key,
               const FindToken& find, std::vector<std::int32_t>& ids) {
  const std::optional<bool> wanted = config.boolean(wanted_key);
  if (!wanted) return;
  const std::optional<std::string> text = config.special_token(key);
  const std::optional<std::int32_t> id = text ? find(*text) : std::nullopt;
  require(id.has_value() || !*wanted, ErrorCode::corrupt_data,
          "{}: '{}' is true, but '{}' is {}; expected a token of the tokenizer", config.source(),
          wanted_key, key, text ? in_quotes(*text) : "absent");
  if (!id) return;
  const bool is_there = std::ranges::find(ids, *id) != ids.end();
  if (*wanted && !is_there) {
    ids.insert(std::string_view(key) == "bos_token" ? ids.begin() : ids.end(), *id);
  } else if (!*wanted && is_there) {
    std::erase(ids, *id);
  }
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view text, std::string_view source,
                                                const TokenizerConfig& config) {
  Json document = parse_json(text, source);
  if (!document.is_object()) {
    fail(ErrorCode::corrupt_data, "{}: {}; expected a JSON object", source, in_quotes(text));
  }
  apply_tokenizer_config(document, config, source);
  const Json& model = json_member(document, "model", source);
  const std::string& type = json_string_member(model, "type", source);
  if (type == "BPE") {
    return is_metaspace_json(document, source) ? read_metaspace_json(document, source)
                                               : read_byte_pair_json(document, source);
  }
  if (type == "WordPiece") return read_word_piece_json(document, source);
  if (type == "Unigram") return read_unigram_json(document, source);
  if (type == "WordLevel") return read_character_json(document, source);
  fail(ErrorCode::unsupported,
       "{}: the model is of type {}; supported are BPE, WordPiece, Unigram "
       "and, for characters, WordLevel",
       source, in_quotes(type));
}

std::unique_ptr<Tokenizer> parse_vocabulary_and_merges(const VocabularyAndMerges& files) {
  const Json vocabulary = parse_json(files.vocabulary, files.vocabulary_source);
  BytePairTexts texts;
  texts.tokens = tokens_by_id(vocabulary, {}, files.vocabulary_source);
  texts.merges = read_merge_lines(files.merges, files.merges_source);
  const std::optional<TextTemplate> around = add_roberta_tokens(texts);
  if (!around) add_gpt2_token(texts);
  texts.added = with_config_tokens(std::move(texts.added), files.config, find_among(texts.tokens));
  place_added_tokens(texts.tokens, texts.added, files.config.source());
  const std::string source(files.merges_source);
  BytePairDefinition definition = read_byte_letters(texts, source);
  definition.text_template =
      with_config_template(around.value_or(TextTemplate{}), files.config, find_among(texts.tokens));
  return std::make_unique<BytePairTokenizer>(std::move(definition), source);
}

bool holds_tokenizer(const std::filesystem::path& directory) {
  std::error_code ignored;
  return std::ranges::any_of(
      std::initializer_list<const char*>{tokenizer_file_name, "spiece.model", llama_pieces_name,
                                         "source.spm", "vocab.txt", "vocab.json"},
      [&](const char* name) { return std::filesystem::exists(directory / name, ignored); });
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto exists = [&](const char* name) {
    return std::filesystem::exists(path / name, ignored);
  };
  if (!std::filesystem::is_directory(path, ignored)) {
    const bool is_model = path.extension() == ".model" || path.extension() == ".spm";
    return is_model ? load_sentence_piece_file(path) : load_json(path, {});
  }
  if (exists(tokenizer_file_name)) {
    return load_json(path / tokenizer_file_name, TokenizerConfig(path));
  }
  if (exists("spiece.model")) return load_t5(path);
  if (exists(llama_pieces_name)) return load_llama(path);
  if (exists("source.spm")) return load_marian(path).source;
  if (exists("vocab.txt")) return load_word_pieces(path);
  require(
      exists("vocab.json") && exists("merges.txt"), ErrorCode::not_found,
      "{} holds no tokenizer: expected tokenizer.json, spiece.model, {}, source.spm, vocab.txt, "
      "or vocab.json and merges.txt{}",
      path.string(), llama_pieces_name,
      exists("vocab.json")   ? " (merges.txt is missing)"
      : exists("merges.txt") ? " (vocab.json is missing)"
                             : "");
  return load_vocabulary_and_merges(path);
}

TranslationTokenizers load_translation_tokenizers(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool is_marian = !std::filesystem::exists(path / tokenizer_file_name, ignored) &&
                         !std::filesystem::exists(path / "spiece.model", ignored) &&
                         std::filesystem::exists(path / "source.spm", ignored);
  if (is_marian) {
    MarianTokenizers loaded = load_marian(path);
    return {std::move(loaded.source), std::move(loaded.target)};
  }
  const std::shared_ptr<const Tokenizer> both = load_tokenizer(path);
  return {both, both};
}

FindToken find_among(const std::vector<std::string>& tokens) {
  std::unordered_map<std::string_view, std::int32_t> ids;
  ids.reserve(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (!tokens[id].empty()) ids.emplace(tokens[id], static_cast<std::int32_t>(id));
  }
  return [ids = std::move(ids)](const std::string& text) -> std::optional<std::int32_t> {
    const auto found = ids.find(text);
    if (found == ids.end()) return std::nullopt;
    return found->second;
  };
}

std::vector<AddedToken> with_config_tokens(std::vector<AddedToken> added,
                                           const TokenizerConfig& config, const FindToken& find) {
  AddedTokenList list(std::move(added));
  if (const Json* const listed = config.find(decoder_key)) {
    add_listed_tokens(*listed, config, find, list);
  } else if (!config.added_tokens().is_null()) {
    add_old_tokens(config, find, list);
  }
  for (const Json* const entry : special_entries(config)) {
    const std::string& text = special_token_text(*entry, special_label(config));
    if (text.empty() || list.find(text) != nullptr) continue;
    if (const auto id = find(text)) list.add(special_token_of(*entry, *id, config.source()));
  }
  return list.take();
}

TextTemplate with_config_template(TextTemplate around, const TokenizerConfig& config,
                                  const FindToken& find) {
  set_token(config, "add_bos_token", "bos_token", find, around.before);
  set_token(config, "add_eos_token", "eos_token", find, around.after);
  return around;
}

void apply_tokenizer_config(Json& document, const TokenizerConfig& config,
                            std::string_view source) {
  if (config.empty()) return;
  const FindToken find = find_in_document(document, source);
  const std::vector<AddedToken> added =
      with_config_tokens(read_added_tokens(document, source), config, find);
  Json list = Json::array();
  for (const AddedToken& token : added) list.push_back(added_token_json(token));
  const bool has_template =
      config.boolean("add_bos_token").has_value() || config.boolean("add_eos_token").has_value();
  if (has_template) {
    std::unordered_map<std::string, std::int32_t> ids;
    std::unordered_map<std::int32_t, std::string> texts;
    for (const AddedToken& token : added) {
      ids.emplace(token.content, token.id);
      texts.emplace(token.id, token.content);
    }
    const auto find_added = [&](const std::string& text) -> std::optional<std::int32_t> {
      const auto found = ids.find(text);
      if (found == ids.end()) return std::nullopt;
      return found->second;
    };
    const TextTemplate around =
        with_config_template(read_text_template(document, source), config, find_added);
    document["post_processor"] = Json::parse(write_post_processor(around, {}, [&](std::int32_t id) {
      const auto text = texts.find(id);
      return text == texts.end() ? fmt::format("<{}>", id) : text->second;
    }));
  }
  document["added_tokens"] = std::move(list);
}

}  // namespace heed
