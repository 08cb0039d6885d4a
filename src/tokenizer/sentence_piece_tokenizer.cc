#include "tokenizer/sentence_piece_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/tokenizer_config.h"
#include "base/utf8.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/vocabulary.h"

namespace heed {
namespace {

TokenizerParts sentence_piece_parts(const SentencePieceDefinition& definition,
                                    const SentencePieceModel& model, std::string_view source) {
  const auto unknown = std::ranges::find(definition.tokens, definition.unknown);
  require(unknown != definition.tokens.end() && !unknown->empty(), ErrorCode::corrupt_data,
          "{}: the unknown token {} is not in the vocabulary", source,
          in_quotes(definition.unknown));
  return {.vocabulary = Vocabulary(metaspace_token_bytes({.tokens = definition.tokens,
                                                          .added = definition.added,
                                                          .byte_fallback = model.byte_fallback}),
                                   definition.added, source),
          .normalisation = {},
          .text_template = definition.text_template,
          .unknown = static_cast<std::int32_t>(unknown - definition.tokens.begin())};
}

constexpr std::size_t max_json = std::size_t{64} << 20;

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

// After the pieces, the last one first: <extra_id_0> has the highest id.
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

// Of a directory whose tokenizer is the file `model`: other classes put other tokens around texts.
void check_class(const TokenizerConfig& config, const char* model, std::string_view supported) {
  const Json* const name = config.find("tokenizer_class");
  if (name == nullptr) return;
  const std::string& text = json_string(*name, {config.source() + ": 'tokenizer_class'"});
  require(text.find(supported) != std::string::npos, ErrorCode::unsupported,
          "{}: 'tokenizer_class' is {}; of {} only that of {} is supported", config.source(),
          in_quotes(text), model, supported);
}

// Marian's vocabulary: ids by the text of pieces.
SentencePieceDefinition marian_definition(const MappedFile& model,
                                          const std::filesystem::path& vocabulary_path,
                                          const TokenizerConfig& config) {
  const std::string source = vocabulary_path.string();
  const Json vocabulary = parse_json(read_text_file(vocabulary_path, max_json), source);
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

SentencePieceTokenizer::SentencePieceTokenizer(const SentencePieceDefinition& definition,
                                               std::string_view source)
    : SentencePieceTokenizer(definition, read_sentence_piece_model(definition.model, source),
                             source) {}

SentencePieceTokenizer::SentencePieceTokenizer(SentencePieceDefinition definition,
                                               SentencePieceModel model, std::string_view source)
    : PartTokenizer(sentence_piece_parts(definition, model, source), source),
      encoder_(std::move(model)),
      tokens_(std::move(definition.tokens)),
      files_(std::move(definition.files)),
      ids_by_text_(definition.ids_by_text) {
  require(ids_by_text_ || tokens_.size() >= encoder_.model().pieces.size(), ErrorCode::corrupt_data,
          "{}: {} tokens for {} pieces", source, tokens_.size(), encoder_.model().pieces.size());
  for (std::size_t id = 0; id < tokens_.size() && ids_by_text_; ++id) {
    if (!tokens_[id].empty()) ids_.emplace(tokens_[id], static_cast<std::int32_t>(id));
  }
}

std::int32_t SentencePieceTokenizer::id_of(const SentencePieceEncoder::Token& token) const {
  if (!ids_by_text_) return token.piece;
  const auto found = ids_.find(token.text);
  return found == ids_.end() ? *unknown() : found->second;
}

void SentencePieceTokenizer::append_part(std::string_view part, PartPlace place,
                                         std::vector<TokenSpan>& spans) const {
  if (part.empty()) return;
  require(part.size() < INT32_MAX, ErrorCode::invalid_argument,
          "a text of {} bytes for a SentencePiece model; expected fewer than {}", part.size(),
          INT32_MAX);
  std::size_t begin = 0;
  const bool has_prefix = place != PartPlace::continuation || model().remove_extra_whitespaces;
  const auto prefix =
      has_prefix ? SentencePieceEncoder::Prefix::of_model : SentencePieceEncoder::Prefix::none;
  encoder_.encode(part, prefix, [&](const SentencePieceEncoder::Token& token) {
    const std::size_t end = std::clamp(token.end, begin, part.size());
    spans.push_back({id_of(token), begin, end});
    begin = end;
  });
}

// As the library does: the space before the first token is left out, and all spaces at the
// beginning where the model never makes two.
std::string SentencePieceTokenizer::decode(std::span<const std::int32_t> ids,
                                           DecodeOptions options) const {
  const SentencePieceModel& model = encoder_.model();
  const bool strips = model.add_dummy_prefix || model.remove_extra_whitespaces;
  std::string text;
  bool is_first = true;
  for (const std::int32_t id : ids) {
    std::string_view bytes = vocabulary().bytes(id);
    const AddedToken* added = vocabulary().find_added(id);
    if (added != nullptr && added->special && !options.special_tokens) continue;
    const bool at_beginning = model.remove_extra_whitespaces ? text.empty() : is_first;
    if (added == nullptr && strips && at_beginning && bytes.starts_with(' ')) {
      bytes.remove_prefix(1);
    }
    text += bytes;
    is_first = false;
  }
  return text;
}

std::string SentencePieceTokenizer::to_json() const {
  fail(ErrorCode::unsupported,
       "a SentencePiece model is saved as it is, in '{}', and not as tokenizer.json",
       files_.empty() ? "" : files_.front().name);
}

SentencePieceDefinition plain_definition(std::string_view model, std::string_view file_name,
                                         std::string_view source) {
  SentencePieceDefinition definition{.model = model};
  const SentencePieceModel read = read_sentence_piece_model(model, source);
  for (const SentencePiece& piece : read.pieces) {
    const auto id = static_cast<std::int32_t>(definition.tokens.size());
    definition.tokens.push_back(piece.text);
    if (piece.kind == PieceKind::unknown) definition.unknown = piece.text;
    if (piece.kind == PieceKind::control || piece.kind == PieceKind::unknown) {
      definition.added.push_back({.id = id, .content = piece.text});
    }
  }
  definition.files = {{std::string(file_name), std::string(model)}};
  return definition;
}

std::unique_ptr<Tokenizer> load_sentence_piece_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  return std::make_unique<SentencePieceTokenizer>(
      plain_definition(file.text(), path.filename().string(), path.string()), path.string());
}

std::unique_ptr<Tokenizer> load_t5(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "spiece.model";
  const TokenizerConfig config(directory);
  check_class(config, "spiece.model", "T5Tokenizer");
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

std::unique_ptr<Tokenizer> load_llama(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / llama_pieces_name;
  const TokenizerConfig config(directory);
  check_class(config, llama_pieces_name, "LlamaTokenizer");
  const MappedFile file(path);
  SentencePieceDefinition definition =
      plain_definition(file.text(), llama_pieces_name, path.string());
  append_listed_tokens(definition, config);
  const FindToken find = find_among(definition.tokens);
  TextTemplate around;
  if (const auto begin = find(token_name(config, "bos_token", "<s>"))) around.before = {*begin};
  definition.text_template = with_config_template(std::move(around), config, find);
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
                                      {"vocab.json", read_text_file(vocabulary, max_json)}};
  if (is_separate) {
    files.push_back({"target_vocab.json", read_text_file(target_vocabulary, max_json)});
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
