// heed convert: writes a model in another weight format.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/terminal/text.h"
#include "engine/embedded_files.h"
#include "engine/loaded_model.h"
#include "engine/loaded_translator.h"
#include "formats/model_files.h"

namespace heed::cli {
namespace {

using kernels::WeightFormat;
namespace fs = std::filesystem;

struct ConvertOptions {
  std::string model;
  std::string dtype;
  fs::path out;
  bool embedding = false;
  bool compute_f32 = false;
  bool force = false;
  bool json = false;
};

SourceFiles files_of(const std::string& model) {
  const auto embedded = embedded_model(model);
  if (!embedded) return read_source_files(model_path(model));
  SourceFiles files({{tokenizer_file_name, std::string(embedded->tokenizer)},
                     {reading_file_name, std::string(embedded->reading)}});
  files.config = parse_ordered_config(embedded->config, model + ": " + config_file_name);
  return files;
}

// Loaded as it is stored: saving rounds it, and says which tensor it cannot round.
void write_model(const ConvertOptions& options, WeightFormat format) {
  SavedAs as = format;
  if (options.embedding) as.embedding = SavedAs::Embedding::rounded;
  if (options.compute_f32) as.arithmetic = SavedAs::Arithmetic::f32;
  const SourceFiles files = files_of(options.model);
  if (is_translator(options.model)) {
    const LoadedTranslator translator = load_translator(options.model, {}, TokenizerNeed::optional);
    require_rounded_once(translator.model.parameters(), format, options.model);
    return save_transformer(translator.model, options.out, files, as);
  }
  const LoadedModel model = load_model(options.model);
  require_rounded_once(model.transformer.parameters(), format, options.model);
  save_transformer(model.transformer, options.out, files, as);
}

void convert(const ConvertOptions& options) {
  const WeightFormat format = kernels::parse_weight_format(options.dtype);
  require(options.force || !fs::exists(options.out / config_file_name), ErrorCode::conflict,
          "'{}' already holds a model: choose another --out, or replace it with --force",
          options.out.string());
  write_model(options, format);
  const auto bytes = static_cast<std::int64_t>(fs::file_size(options.out / weights_file_name));
  if (options.json) {
    return print_json({{"model", options.out.string()},
                       {"dtype", kernels::weight_format_name(format)},
                       {"bytes", bytes}});
  }
  print(fmt::format("{} in {}, {} of weights\n", options.out.string(),
                    kernels::weight_format_name(format), short_bytes(static_cast<double>(bytes))));
}

}  // namespace

void add_convert_command(Command app) {
  Command command = add_command(app, "convert", "Write a model's weights in another format");
  auto options = std::make_shared<ConvertOptions>();
  command
      ->add_option("model", options->model,
                   "Convert this model directory, pulled or built-in model")
      ->required()
      ->type_name("DIR");
  command
      ->add_option(
          "--dtype", options->dtype,
          "Store matrices in f32, bf16, int8 or int4; embeddings, norms and biases stay f32")
      ->required()
      ->type_name("DTYPE");
  command->add_option("-o,--out", options->out, "Write the model to this directory")
      ->required()
      ->type_name("DIR");
  command->add_flag("--embedding", options->embedding, "Store the token embedding in DTYPE too");
  command->add_flag("--compute-f32", options->compute_f32,
                    "Mark the model to be computed in f32 with the stored numbers");
  command->add_flag("--force", options->force, "Replace an existing model");
  add_json_option(*command, options->json);
  command->callback([options] { convert(*options); });
}

}  // namespace heed::cli
