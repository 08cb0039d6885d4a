#include "tokenizer/tokenizer_files.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/byte_pair_json.h"
#include "tokenizer/character_json.h"
#include "tokenizer/config_tokens.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/metaspace_json.h"
#include "tokenizer/sentence_piece_files.h"
#include "tokenizer/unigram_json.h"
#include "tokenizer/word_piece_json.h"

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
      std::initializer_list<const char*>{tokenizer_file_name, "spiece.model", "source.spm",
                                         "vocab.txt", "vocab.json"},
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
  if (exists("source.spm")) return load_marian(path).source;
  if (exists("vocab.txt")) return load_word_pieces(path);
  require(exists("vocab.json") && exists("merges.txt"), ErrorCode::not_found,
          "{} holds no tokenizer: expected tokenizer.json, spiece.model, source.spm, vocab.txt, or "
          "vocab.json and merges.txt{}",
          path.string(),
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

}  // namespace heed
