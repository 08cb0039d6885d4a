#include "engine/loaded_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "engine/embedded_files.h"
#include "engine/pull.h"
#include "engine/special_tokens.h"
#include "formats/config_file.h"
#include "formats/gguf_files.h"
#include "formats/gguf_tokenizer.h"
#include "formats/text_ends.h"
#include "generate/generator.h"
#include "microscope/intervene/pair_effects.h"
#include "model/presets.h"
#include "tokenizer/tokenizer_files.h"
#include "train/run_directory.h"
#include "train/settings.h"

namespace heed {
namespace {

std::unique_ptr<Tokenizer> embedded_tokenizer(const EmbeddedModel& files) {
  return parse_tokenizer_json(files.tokenizer, "the built-in model's tokenizer.json");
}

LoadedModel built_in_model(const std::string& name, const EmbeddedModel& files) {
  LoadedModel model{.name = name,
                    .transformer = load_transformer(StacksWanted::any,
                                                    ModelBytes{name, files.config, files.weights}),
                    .tokenizer = embedded_tokenizer(files),
                    .embedded_name = name,
                    .reading = reading_of(files)};
  if (model.is_translator()) model.source_tokenizer = model.tokenizer;
  return model;
}

void load_tokenizers(LoadedModel& model, TokenizerNeed need) {
  if (model.is_translator()) {
    if (need == TokenizerNeed::optional && !holds_tokenizer(model.directory)) return;
    TranslationTokenizers both = load_translation_tokenizers(model.directory);
    model.source_tokenizer = std::move(both.source);
    model.tokenizer = std::move(both.target);
    return;
  }
  model.tokenizer = need == TokenizerNeed::optional ? find_tokenizer(model.directory)
                                                    : require_tokenizer(model.directory);
}

// The tokens that end a text and the one that begins it.
void name_ends(LoadedModel& model, const ConfigFields& fields, const TokenizerConfig& config) {
  const std::int64_t vocabulary = model.transformer.specification().vocabulary_size;
  model.named_end_tokens = named_end_tokens(fields, config, vocabulary, model.tokenizer.get());
  model.named_beginning = read_beginning_of_text(fields, vocabulary);
}

// All of it from one reading of the file's header.
LoadedModel read_gguf_model(const std::string& name_or_path, const std::filesystem::path& file,
                            StacksWanted stacks, TokenizerNeed need) {
  const GgufModel opened = open_gguf_model(file);
  const bool has_two = opened.architecture.is_encoder_decoder();
  require_stacks(stacks, has_two ? StacksWanted::two : StacksWanted::one, name_or_path);
  // First, since it takes memory for a while that the weights can have then.
  std::shared_ptr<const Tokenizer> tokenizer = read_gguf_tokenizer(opened.metadata());
  require(need == TokenizerNeed::optional || tokenizer != nullptr, ErrorCode::not_found,
          "'{}' holds no tokenizer", file.string());
  opened.tensors->release_pages();
  return_free_memory();
  LoadedModel model{.name = model_name(name_or_path),
                    .transformer = load_transformer(stacks, opened),
                    .tokenizer = std::move(tokenizer)};
  model.directory = file;
  model.reading = reading_of(file);
  if (has_two) {
    model.source_tokenizer = model.tokenizer;
    return model;
  }
  name_ends(model, {opened.config, opened.source},
            TokenizerConfig::of(gguf_tokenizer_config(opened.metadata())));
  opened.tensors->release_pages();
  return model;
}

LoadedModel read_model(const std::string& name_or_path, StacksWanted stacks, TokenizerNeed need) {
  const bool is_built_in_translator = name_or_path == embedded_translator_name;
  if (is_built_in_translator || is_embedded_decoder(name_or_path)) {
    require_stacks(stacks, is_built_in_translator ? StacksWanted::two : StacksWanted::one,
                   name_or_path);
  }
  if (const auto files = embedded_model(name_or_path)) return built_in_model(name_or_path, *files);
  const std::filesystem::path path = model_path(name_or_path);
  require(!std::filesystem::is_directory(path) || std::filesystem::exists(path / config_file_name),
          ErrorCode::not_found, "'{}' is not a model: it has no {}", path.string(),
          config_file_name);
  const std::filesystem::path directory = model_directory(path);
  if (is_gguf_path(directory)) return read_gguf_model(name_or_path, directory, stacks, need);
  require_stacks(stacks, is_encoder_decoder_directory(path) ? StacksWanted::two : StacksWanted::one,
                 name_or_path);
  LoadedModel model{.name = model_name(name_or_path),
                    .transformer = load_transformer(stacks, path)};
  model.directory = directory;
  load_tokenizers(model, need);
  model.reading = reading_of(model.directory);
  if (model.is_translator()) return model;
  const bool has_tokenizer = model.tokenizer != nullptr;
  name_ends(model, read_model_fields(model.directory),
            has_tokenizer ? read_tokenizer_config(model.directory) : TokenizerConfig());
  return model;
}

}  // namespace

void require_stacks(StacksWanted wanted, StacksWanted has, const std::string& name) {
  require(wanted != StacksWanted::one || has == wanted, ErrorCode::unsupported,
          "'{}' is a translator (an encoder and a decoder): `heed translate -m {}` runs it", name,
          name);
  require(wanted != StacksWanted::two || has == wanted, ErrorCode::unsupported,
          "'{}' has no encoder, so it does not translate; `heed generate -m {}` continues a text",
          name, name);
}

const StackSpecification& LoadedModel::stack(PairSide side) const {
  if (!is_translator()) return transformer.specification();
  return side == PairSide::source ? architecture().encoder() : architecture().decoder();
}

LoadedModel LoadedModel::with_editor(std::shared_ptr<Editor> editor) const {
  return {.name = name,
          .transformer = transformer.with_editor(std::move(editor)),
          .tokenizer = tokenizer,
          .source_tokenizer = source_tokenizer,
          .embedded_name = embedded_name,
          .cache_type = cache_type,
          .directory = directory,
          .named_end_tokens = named_end_tokens,
          .named_beginning = named_beginning,
          .reading = reading};
}

std::vector<std::int32_t> LoadedModel::end_tokens() const {
  return all_end_tokens(transformer.specification(), tokenizer.get(), named_end_tokens);
}

std::optional<std::int32_t> LoadedModel::beginning_of_text() const {
  if (named_beginning >= 0) return static_cast<std::int32_t>(named_beginning);
  if (tokenizer != nullptr && tokenizer->beginning_of_text()) return tokenizer->beginning_of_text();
  const std::int64_t end = transformer.specification().end_of_text;
  if (end >= 0) return static_cast<std::int32_t>(end);
  return tokenizer != nullptr ? tokenizer->end_of_text() : std::nullopt;
}

const Tokenizer& LoadedModel::require_tokenizer(PairSide side) const {
  const Tokenizer* const own = tokenizer_of(side);
  require(own != nullptr, ErrorCode::not_found,
          "'{}' has no tokenizer (tokenizer.json, or vocab.json and merges.txt); give token ids "
          "instead of text",
          name);
  return *own;
}

std::vector<std::int32_t> LoadedModel::encode(std::string_view text) const {
  // An encoder reads a text between the tokens around it; a decoder goes on with it.
  std::vector<std::int32_t> ids =
      require_tokenizer().encode(text, {.add_beginning = true, .add_ending = is_encoder()});
  require(!text.empty() && !ids.empty(), ErrorCode::invalid_argument, "the text is empty");
  return ids;
}

std::vector<std::int32_t> LoadedModel::encode_source(std::string_view text,
                                                     std::string_view what) const {
  return heed::encode_source(architecture(), require_tokenizer(PairSide::source), text, what);
}

std::vector<std::int32_t> LoadedModel::encode_target(std::string_view text) const {
  require(text.find_first_not_of(" \t\r\n\v\f") != std::string_view::npos,
          ErrorCode::invalid_argument, "the target is empty");
  require(is_valid_utf8(text), ErrorCode::invalid_argument, "the target is not UTF-8");
  const std::vector<std::int32_t> tokens =
      require_tokenizer().encode(text, {.add_beginning = true});
  const bool has_start = !tokens.empty() && tokens.front() == architecture().decoder_start;
  return decoder_input(architecture(), std::span(tokens).subspan(has_start ? 1 : 0));
}

std::vector<std::int32_t> LoadedModel::encode_part(std::string_view text, PairSide side) const {
  if (is_translator()) return require_tokenizer(side).encode(text, {});
  std::vector<std::int32_t> ids = require_tokenizer().encode(text, {.continues = true});
  require(!ids.empty(), ErrorCode::invalid_argument, "the text is empty");
  return ids;
}

std::string LoadedModel::token_bytes(std::int32_t id, PairSide side) const {
  const Tokenizer* const own = tokenizer_of(side);
  const bool is_known = own != nullptr && id >= 0 && id < own->vocabulary_size();
  std::string bytes = is_known ? own->token_bytes(id) : "";
  const bool is_named = !is_known || (is_translator() && bytes.empty());
  return is_named ? fmt::format("#{}", id) : bytes;
}

std::vector<std::string> LoadedModel::token_bytes(std::span<const std::int32_t> ids,
                                                  PairSide side) const {
  std::vector<std::string> bytes;
  bytes.reserve(ids.size());
  for (const std::int32_t id : ids) bytes.push_back(token_bytes(id, side));
  return bytes;
}

std::vector<std::string> LoadedModel::text_pieces(std::span<const std::int32_t> ids) const {
  std::vector<std::string> pieces = token_bytes(ids);
  if (tokenizer == nullptr) return pieces;
  const std::vector<std::int32_t>& before = tokenizer->text_template().before;
  std::size_t first = 0;
  while (first < ids.size() && first < before.size() && ids[first] == before[first]) {
    pieces[first++].clear();
  }
  const bool known =
      first < ids.size() && ids[first] >= 0 && ids[first] < tokenizer->vocabulary_size();
  if (known) pieces[first] = tokenizer->decode(ids.subspan(first, 1));
  return pieces;
}

std::string LoadedModel::target_text(std::span<const std::int32_t> tokens) const {
  if (tokenizer != nullptr) return decode_target(*tokenizer, tokens);
  return fmt::format("{}", fmt::join(token_bytes(tokens), " "));
}

std::vector<std::vector<TokenHypothesis>> LoadedModel::translate(const SourceTokens& sources,
                                                                 BeamOptions options) const {
  options.cache_type = cache_type;
  return translate_tokens(transformer, require_tokenizer(), sources, std::move(options));
}

ModelTexts translated_pair(const LoadedModel& translator, std::vector<std::int32_t> source,
                           StopFlag stop) {
  // The decoder reads all but the last token that it writes.
  const Architecture& architecture = translator.architecture();
  const GreedyTranslation translation =
      translate_greedily(translator.transformer, source,
                         {.max_length = architecture.decoder().context - 1, .stop = stop});
  ModelTexts texts{.tokens = {}, .is_translation = true};
  texts.tokens.target = decoder_input(architecture, translation.tokens);
  texts.tokens.source = std::move(source);
  return texts;
}

std::shared_ptr<const ReadingRecord> reading_of(const std::filesystem::path& directory) {
  std::optional<ReadingRecord> reading = find_reading(directory);
  return reading ? std::make_shared<const ReadingRecord>(*std::move(reading)) : nullptr;
}

std::shared_ptr<const ReadingRecord> reading_of(const EmbeddedModel& files) {
  return std::make_shared<const ReadingRecord>(
      parse_reading(files.reading, "the built-in model's reading.json"));
}

std::unique_ptr<Tokenizer> load_model_tokenizer(const std::string& name_or_path) {
  if (const auto files = embedded_model(name_or_path)) return embedded_tokenizer(*files);
  // The file of a model's weights stands for its directory.
  const std::filesystem::path path = model_path(name_or_path);
  const bool is_weights = path.extension() == ".safetensors" || is_gguf_path(path);
  return is_weights ? require_tokenizer(path) : load_tokenizer(path);
}

std::filesystem::path model_path(const std::filesystem::path& path) {
  const RunDirectory run(path);
  const bool is_model = std::filesystem::exists(path / config_file_name);
  if (!is_model && run.holds_a_run()) return run.result();
  if (std::filesystem::exists(path)) return path;
  const std::string name = path.string();
  if (auto pulled = find_pulled_model(name)) return *std::move(pulled);
  require(
      !may_be_pulled(name), ErrorCode::not_found,
      "there is no model '{0}'; if it is published under this name, `heed pull {0}` downloads it",
      name);
  return path;
}

std::string model_name(const std::string& name_or_path) {
  if (is_embedded_name(name_or_path)) return name_or_path;
  const std::filesystem::path directory =
      std::filesystem::canonical(model_directory(model_path(name_or_path)));
  if (std::string pulled = pulled_model_name(directory); !pulled.empty()) return pulled;
  if (is_gguf_path(directory)) return gguf_model_name(directory);
  std::string own = directory.filename().string();
  for (const std::filesystem::path& above :
       {directory.parent_path(), directory.parent_path().parent_path()}) {
    const RunDirectory run(above);
    const bool is_checkpoint = directory == run.last() || directory == run.best() ||
                               directory == run.average() ||
                               directory.parent_path() == run.checkpoints();
    if (!is_checkpoint || !run.holds_a_run()) continue;
    std::string name = above.filename().string();
    return directory == run.last() ? name : name + "@" + own;
  }
  return own;
}

void pack_for_prompts(LoadedModel& model) {
  if (!model.transformer.device().is_cpu()) return;
  std::int64_t bytes = 0;
  for (const StackSpecification& stack : model.architecture().stacks) {
    bytes += Parameters::packed_bytes(stack);
  }
  const std::optional<std::int64_t> available = available_memory();
  if (!available || bytes <= *available / 4) model.transformer.parameters().pack();
}

namespace {

using kernels::WeightFormat;

WeightFormat weight_format(WeightType type) {
  switch (type) {
    case WeightType::as_stored:
    case WeightType::f32: return WeightFormat::f32;
    case WeightType::bf16: return WeightFormat::bf16;
    case WeightType::int8: return WeightFormat::int8;
    case WeightType::int4: return WeightFormat::int4;
  }
  fail(ErrorCode::invalid_argument, "there is no type of weights {}", static_cast<int>(type));
}

}  // namespace

CacheType cache_type_of(KeyValueType type) {
  switch (type) {
    case KeyValueType::f32: return CacheType::f32;
    case KeyValueType::bf16: return CacheType::bf16;
    case KeyValueType::int8: return CacheType::int8;
  }
  fail(ErrorCode::invalid_argument, "there is no type of keys and values {}",
       static_cast<int>(type));
}

void prepare_weights(Parameters& parameters, WeightType type, const std::string& name) {
  if (type == WeightType::as_stored) return;
  const WeightFormat wanted = weight_format(type);
  require_rounded_once(parameters, wanted, name);
  if (wanted != parameters.prepared_format()) parameters.prepare(wanted);
}

void require_rounded_once(const Parameters& parameters, WeightFormat wanted,
                          const std::string& name) {
  const WeightFormat stored = parameters.prepared_format();
  require(stored == WeightFormat::f32 || wanted == WeightFormat::f32 || wanted == stored,
          ErrorCode::unsupported,
          "'{}' is stored in {} and would be rounded twice in {}: use the model that it was "
          "converted from",
          name, kernels::weight_format_name(stored), kernels::weight_format_name(wanted));
}

WeightType parse_weight_type(std::string_view name) {
  if (name.empty()) return WeightType::as_stored;
  const WeightFormat format = kernels::parse_weight_format(name);
  for (const WeightType type : {WeightType::f32, WeightType::bf16, WeightType::int8}) {
    if (weight_format(type) == format) return type;
  }
  return WeightType::int4;
}

KeyValueType parse_key_value_type(std::string_view name) {
  switch (kernels::parse_cache_type(name)) {
    case CacheType::f32: return KeyValueType::f32;
    case CacheType::bf16: return KeyValueType::bf16;
    case CacheType::int8: break;
  }
  return KeyValueType::int8;
}

namespace {

LoadedModel load_as(const std::string& name_or_path, const LoadOptions& options,
                    StacksWanted stacks, TokenizerNeed need) {
  weight_format(options.weights);  // refused before anything is read
  const Device device = options.device.empty() ? default_device() : open_device(options.device);
  const CacheType cache = cache_type_of(options.cache);
  LoadedModel loaded = read_model(name_or_path, stacks, need);
  loaded.cache_type = cache;
  prepare_weights(loaded.transformer.parameters(), options.weights, name_or_path);
  loaded.transformer.place(device);
  if (options.pack || loaded.is_translator()) pack_for_prompts(loaded);
  return loaded;
}

}  // namespace

LoadedModel load_model(const std::string& name_or_path, const LoadOptions& options,
                       StacksWanted stacks) {
  return load_as(name_or_path, options, stacks, TokenizerNeed::optional);
}

LoadedModel load_translator(const std::string& name_or_path, const LoadOptions& options,
                            TokenizerNeed need) {
  return load_as(name_or_path, options, StacksWanted::two, need);
}

bool is_translator(const std::string& name_or_path) {
  if (is_embedded_decoder(name_or_path)) return false;
  return name_or_path == embedded_translator_name ||
         is_encoder_decoder_directory(model_path(name_or_path));
}

namespace {

// The config.json of a model that is on disk, or its GGUF file; nothing for a name that no model
// there has.
std::optional<std::filesystem::path> find_config_file(const std::string& name_or_path) {
  const std::filesystem::path path = name_or_path;
  if (std::filesystem::is_directory(path) || path.extension() == ".safetensors") {
    return model_directory(model_path(path)) / config_file_name;
  }
  if (std::filesystem::exists(path)) return path;
  const auto pulled = find_pulled_model(name_or_path);
  if (!pulled || is_gguf_path(*pulled)) return pulled;
  return *pulled / config_file_name;
}

}  // namespace

StackSpecification find_stack_config(const std::string& name_or_path) {
  if (is_model_preset(name_or_path)) return model_preset(name_or_path).config;
  if (const auto file = find_config_file(name_or_path)) {
    return is_gguf_path(*file) ? read_architecture(*file).decoder() : read_stack_config(*file);
  }
  return model_preset(name_or_path).config;  // fails with the names there are
}

Architecture find_translator_architecture(const std::string& name_or_path) {
  const std::filesystem::path path = name_or_path;
  Architecture found;
  const bool is_file = is_gguf_path(path) && std::filesystem::exists(path);
  if (is_file || std::filesystem::is_directory(path) || find_pulled_model(name_or_path)) {
    const std::filesystem::path model = model_path(path);
    found = is_gguf_path(model) || is_encoder_decoder_directory(model)
                ? read_architecture(model)
                : Architecture{
                      .stacks = {read_stack_config(model_directory(model) / config_file_name)}};
  } else {
    found = find_architecture(name_or_path);
  }
  require(found.is_encoder_decoder(), ErrorCode::unsupported,
          "'{}' has no encoder and decoder: expected a translator, such as multi30k-en-de, "
          "translator-tiny or transformer-base",
          name_or_path);
  return found;
}

Architecture find_architecture(const std::string& name_or_path) {
  if (const auto* preset = find_architecture_preset(name_or_path)) return preset->architecture;
  if (is_model_preset(name_or_path)) return {.stacks = {model_preset(name_or_path).config}};
  if (const auto file = find_config_file(name_or_path)) {
    if (is_gguf_path(*file)) return read_architecture(*file);
    return architecture_from_json(read_config_document(*file), file->string());
  }
  require(is_run_preset(name_or_path), ErrorCode::not_found,
          "there is no config named '{}'; expected one of {}, {}", name_or_path, run_preset_names(),
          model_preset_names());
  const TrainSettings settings = train_preset(name_or_path);
  if (settings.task == Task::pairs) return pair_architecture(settings);
  return {.stacks = {settings.model}};
}

}  // namespace heed
