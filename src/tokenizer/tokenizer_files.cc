#include "tokenizer/tokenizer_files.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "tokenizer/byte_pair_json.h"
#include "tokenizer/character_json.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/utf8.h"

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

std::unique_ptr<Tokenizer> load_json(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_tokenizer_json(file.text(), path.string());
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view text, std::string_view source) {
  const Json document = parse_json(text, source);
  if (!document.is_object()) {
    fail(ErrorCode::corrupt_data, "{}: {}; expected a JSON object", source, in_quotes(text));
  }
  require_json_value(document, "normalizer", {}, source);
  const Json& model = json_member(document, "model", source);
  const std::string& type = json_string_member(model, "type", source);
  if (type == "BPE") return read_byte_pair_json(document, source);
  if (type == "WordLevel") return read_character_json(document, source);
  fail(ErrorCode::unsupported,
       "{}: the model is of type {}; supported are BPE and, for characters, WordLevel", source,
       in_quotes(type));
}

std::unique_ptr<Tokenizer> parse_vocabulary_and_merges(const VocabularyAndMerges& files) {
  const Json vocabulary = parse_json(files.vocabulary, files.vocabulary_source);
  BytePairTexts texts;
  texts.tokens = tokens_by_id(vocabulary, {}, files.vocabulary_source);
  const auto end_of_text = std::find(texts.tokens.begin(), texts.tokens.end(), end_of_text_name);
  if (end_of_text != texts.tokens.end()) {
    const auto id = static_cast<std::int32_t>(end_of_text - texts.tokens.begin());
    texts.added.push_back({.id = id, .content = *end_of_text});
  }
  texts.merges = read_merge_lines(files.merges, files.merges_source);
  const std::string source(files.merges_source);
  return std::make_unique<BytePairTokenizer>(read_byte_letters(texts, source), source);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto exists = [&](const char* name) {
    return std::filesystem::exists(path / name, ignored);
  };
  if (!std::filesystem::is_directory(path, ignored)) return load_json(path);
  if (exists(tokenizer_file_name)) return load_json(path / tokenizer_file_name);
  require(exists("vocab.json") && exists("merges.txt"), ErrorCode::not_found,
          "{} holds no tokenizer: expected tokenizer.json, or vocab.json and merges.txt{}",
          path.string(),
          exists("vocab.json")   ? " (merges.txt is missing)"
          : exists("merges.txt") ? " (vocab.json is missing)"
                                 : "");
  const std::filesystem::path vocabulary_path = path / "vocab.json";
  const std::filesystem::path merges_path = path / "merges.txt";
  const MappedFile vocabulary(vocabulary_path);
  const MappedFile merges(merges_path);
  return parse_vocabulary_and_merges({.vocabulary = vocabulary.text(),
                                      .merges = merges.text(),
                                      .vocabulary_source = vocabulary_path.string(),
                                      .merges_source = merges_path.string()});
}

}  // namespace heed
