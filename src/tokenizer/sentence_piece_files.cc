#include "tokenizer/sentence_piece_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/json_fields.h"
#include "base/tokenizer_config.h"
#include "base/utf8.h"
#include "tokenizer/config_tokens.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/sentence_piece_tokenizer.h"

namespace heed {
namespace {

constexpr std::size_t largest_json = std::size_t{64} << 20;

std::string token_name(const TokenizerConfig& config, const char* key, std::string_view usual) {
  return config.special_token(key).value_or(std::string(usual));
}

std::int32_t find_token(const std::vector<std::string>& tokens, std::string_view text,
                        std::string_view source) {
  const auto found = std::ranges::find(tokens, text);
  require(found != tokens.end(), ErrorCode::corrupt_data,
          "{}: the token {} is not in the vocabulary", source, in_quotes(text));
  return static_cast<std::int32_t>(found - tokens.begin());
}

// Adds tokens to those that are found as a whole.
class AddedTokens {
 public:
  explicit AddedTokens(SentencePieceDefinition& definition) : definition_(definition) {
    for (const AddedToken& token : definition.added) known_.insert(token.content);
  }

  void add(std::size_t id, const std::string& text, bool special) {
    if (!known_.insert(text).second) return;
    definition_.added.push_back(
        {.id = static_cast<std::int32_t>(id), .content = text, .special = special});
  }

  // A special token, which must be there.
  void add_named(const std::string& text, std::string_view source) {
    add(static_cast<std::size_t>(find_token(definition_.tokens, text, source)), text, true);
  }

 private:
  SentencePieceDefinition& definition_;
  std::unordered_set<std::string> known_;
};

std::string extra_id(std::int64_t index) { return fmt::format("<extra_id_{}>", index); }

// Behind the pieces, the last one first: <extra_id_0> has the highest id.
void append_extra_ids(SentencePieceDefinition& definition, AddedTokens& added,
                      const TokenizerConfig& config) {
  constexpr std::int64_t usual = 100;
  constexpr std::int64_t most = 100'000;
  const Json* count = config.find("extra_ids");
  const std::int64_t extra =
      count == nullptr ? usual : json_integer(*count, {config.source() + ": 'extra_ids'"}, 0, most);
  if (std::ranges::find(definition.tokens, extra_id(0)) != definition.tokens.end()) return;
  for (std::int64_t index = extra - 1; index >= 0; --index) {
    added.add(definition.tokens.size(), extra_id(index), true);
    definition.tokens.push_back(extra_id(index));
  }
}

// Those that the configuration lists.
void append_listed_tokens(SentencePieceDefinition& definition, const TokenizerConfig& config) {
  definition.added =
      with_config_tokens(std::move(definition.added), config, find_among(definition.tokens));
  place_added_tokens(definition.tokens, definition.added, config.source());
}

void append_files(std::vector<TokenizerFile>& files, const TokenizerConfig& config) {
  for (const auto& [name, text] : config.texts()) files.push_back({name, text});
}

void check_t5_class(const TokenizerConfig& config) {
  const Json* const name = config.find("tokenizer_class");
  if (name == nullptr) return;
  const std::string& text = json_string(*name, {config.source() + ": 'tokenizer_class'"});
  require(text.find("T5Tokenizer") != std::string::npos, ErrorCode::unsupported,
          "{}: 'tokenizer_class' is {}; of spiece.model only that of T5Tokenizer is supported",
          config.source(), in_quotes(text));
}

// Marian's vocabulary: ids by the text of pieces.
SentencePieceDefinition marian_definition(const MappedFile& model,
                                          const std::filesystem::path& vocabulary_path,
                                          const TokenizerConfig& config) {
  const std::string source = vocabulary_path.string();
  const Json vocabulary = parse_json(read_text_file(vocabulary_path, largest_json), source);
  SentencePieceDefinition definition{.model = model.text(),
                                     .tokens = tokens_by_id(vocabulary, {}, source),
                                     .ids_by_text = true,
                                     .unknown = token_name(config, "unk_token", "<unk>")};
  const std::string end = token_name(config, "eos_token", "</s>");
  append_listed_tokens(definition, config);
  AddedTokens added(definition);
  for (const std::string& name :
       {end, definition.unknown, token_name(config, "pad_token", "<pad>")}) {
    added.add_named(name, source);
  }
  for (std::size_t id = 0; id < definition.tokens.size(); ++id) {
    const std::string& token = definition.tokens[id];
    const bool is_language = token.size() > 4 && token.starts_with(">>") && token.ends_with("<<");
    if (is_language) added.add(id, token, false);
  }
  definition.text_template.after = {find_token(definition.tokens, end, source)};
  return definition;
}

}  // namespace

std::unique_ptr<Tokenizer> load_sentence_piece_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  return std::make_unique<SentencePieceTokenizer>(
      plain_definition(file.text(), path.filename().string(), path.string()), path.string());
}

std::unique_ptr<Tokenizer> load_t5(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "spiece.model";
  const TokenizerConfig config(directory);
  check_t5_class(config);
  const MappedFile file(path);
  SentencePieceDefinition definition =
      plain_definition(file.text(), path.filename().string(), path.string());
  append_listed_tokens(definition, config);
  AddedTokens added(definition);
  append_extra_ids(definition, added, config);
  const std::string end = token_name(config, "eos_token", "</s>");
  added.add_named(end, path.string());
  added.add_named(token_name(config, "pad_token", "<pad>"), path.string());
  definition.text_template.after = {find_token(definition.tokens, end, path.string())};
  append_files(definition.files, config);
  return std::make_unique<SentencePieceTokenizer>(std::move(definition), path.string());
}

MarianTokenizers load_marian(const std::filesystem::path& directory) {
  const TokenizerConfig config(directory);
  const std::filesystem::path source_path = directory / "source.spm";
  const std::filesystem::path target_path = directory / "target.spm";
  const std::filesystem::path vocabulary = directory / "vocab.json";
  std::error_code ignored;
  for (const std::filesystem::path& path : {source_path, target_path, vocabulary}) {
    require(std::filesystem::exists(path, ignored), ErrorCode::not_found,
            "{} holds no Marian tokenizer: '{}' is missing; expected source.spm, target.spm and "
            "vocab.json",
            directory.string(), path.filename().string());
  }
  std::filesystem::path target_vocabulary = directory / "target_vocab.json";
  const bool is_separate = std::filesystem::exists(target_vocabulary, ignored);
  if (!is_separate) target_vocabulary = vocabulary;

  const MappedFile source_model(source_path);
  const MappedFile target_model(target_path);
  std::vector<TokenizerFile> files = {{"source.spm", std::string(source_model.text())},
                                      {"target.spm", std::string(target_model.text())},
                                      {"vocab.json", read_text_file(vocabulary, largest_json)}};
  if (is_separate) {
    files.push_back({"target_vocab.json", read_text_file(target_vocabulary, largest_json)});
  }
  append_files(files, config);

  SentencePieceDefinition source = marian_definition(source_model, vocabulary, config);
  SentencePieceDefinition target = marian_definition(target_model, target_vocabulary, config);
  source.files = files;
  target.files = std::move(files);
  return {std::make_unique<SentencePieceTokenizer>(std::move(source), source_path.string()),
          std::make_unique<SentencePieceTokenizer>(std::move(target), target_path.string())};
}

}  // namespace heed
