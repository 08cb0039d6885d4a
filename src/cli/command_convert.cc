// heed convert: writes a model in another weight format, as a directory or a GGUF file.
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
#include "formats/gguf_files.h"

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

// A file with the model's tokenizer and chat template.
void write_gguf(const ConvertOptions& options) {
  require(!options.embedding && !options.compute_f32, ErrorCode::invalid_argument,
          "--embedding and --compute-f32 are options of model directories, not of GGUF files");
  const GgufWeights weights = parse_gguf_weights(options.dtype);
  require(options.force || !fs::exists(options.out), ErrorCode::conflict,
          "'{}' is already there: choose another --out, or replace it with --force",
          options.out.string());
  const std::string left_out = convert_to_gguf(options.model, options.out, weights);
  const auto bytes = static_cast<std::int64_t>(fs::file_size(options.out));
  if (options.json) {
    OrderedJson document = {
        {"model", options.out.string()}, {"dtype", options.dtype}, {"bytes", bytes}};
    if (!left_out.empty()) document["left_out"] = left_out;
    return print_json(document);
  }
  print(fmt::format("{} in {}, {}\n", options.out.string(), options.dtype,
                    short_bytes(static_cast<double>(bytes))));
  if (!left_out.empty()) print(fmt::format("left out: {}\n", left_out));
}

void convert(const ConvertOptions& options) {
  if (is_gguf_path(options.out)) return write_gguf(options);
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
                   "Convert this model directory, GGUF file, pulled or built-in model")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--dtype", options->dtype,
                   "Store matrices in f32, bf16, int8 or int4 (GGUF: see below)")
      ->required()
      ->type_name("DTYPE");
  command->add_option("-o,--out", options->out, "Write to this directory, or GGUF file NAME.gguf")
      ->required()
      ->type_name("DIR");
  command->add_flag("--embedding", options->embedding,
                    "Store embeddings too: tokens in DTYPE, positions in bf16");
  command->add_flag("--compute-f32", options->compute_f32,
                    "Mark the model to be computed in f32 with the stored numbers");
  command->add_flag("--force", options->force, "Replace an existing model");
  add_json_option(*command, options->json);
  command->footer(
      "With --out NAME.gguf, DTYPE is f32, f16, bf16, q8_0, q4_0 or q4_k_m; the file has the "
      "tokenizer and chat template, too.");
  command->callback([options] { convert(*options); });
}

}  // namespace heed::cli
