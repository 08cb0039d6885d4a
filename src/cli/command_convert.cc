// heed convert: writes a model in another weight format.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/terminal/text.h"
#include "engine/convert.h"
#include "formats/config_file.h"

namespace heed::cli {
namespace {

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

SavedAs saved_as(const ConvertOptions& options) {
  SavedAs as = kernels::parse_weight_format(options.dtype);
  if (options.embedding) as.embedding = SavedAs::Embedding::rounded;
  if (options.compute_f32) as.arithmetic = SavedAs::Arithmetic::f32;
  return as;
}

void convert(const ConvertOptions& options) {
  const SavedAs as = saved_as(options);
  require(options.force || !fs::exists(options.out / config_file_name), ErrorCode::conflict,
          "'{}' already holds a model: choose another --out, or replace it with --force",
          options.out.string());
  convert_model(options.model, options.out, as);
  const auto bytes = static_cast<std::int64_t>(fs::file_size(options.out / weights_file_name));
  if (options.json) {
    return print_json({{"model", options.out.string()},
                       {"dtype", kernels::weight_format_name(as.format)},
                       {"bytes", bytes}});
  }
  print(fmt::format("{} in {}, {} of weights\n", options.out.string(),
                    kernels::weight_format_name(as.format),
                    short_bytes(static_cast<double>(bytes))));
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
