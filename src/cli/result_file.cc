#include "cli/result_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/terminal/text.h"

namespace heed::cli {

void add_out_option(Command command, std::string& path) {
  command
      .add_option("-o,--out", path,
                  "Write a figure (.svg, .png, .html) or arrays (.npz, .safetensors, .json, .csv)")
      ->type_name("FILE");
}

void check_out(const std::string& path) {
  if (path.empty() || is_figure_file(path)) return;
  const std::string extension = std::filesystem::path(path).extension().string();
  for (const char* known : {".npz", ".safetensors", ".json", ".csv"}) {
    if (extension == known) return;
  }
  fail_usage(
      fmt::format("--out '{}' has no known format: end it in .svg, .png or .html for a figure, "
                  "in .npz, .safetensors, .json or .csv for arrays",
                  path));
}

void write_result(const std::string& path, const Result& result) {
  if (path.empty()) return;
  if (is_figure_file(path)) return write_figure(path, result.draw(result.text));
  write_arrays(path, result.arrays,
               {{"title", result.text.title}, {"caption", result.text.caption}});
}

std::string figure_caption(const LoadedModel& model, std::span<const std::int32_t> tokens,
                           const std::string& changes) {
  constexpr std::size_t max_characters = 240;
  std::string text;
  if (model.is_translator()) {
    text = model.target_text(tokens);
  } else {
    for (const std::string& bytes : model.token_bytes(tokens)) text += bytes;
  }
  std::string shown = printable(text);
  if (shown.size() > max_characters) shown = fit(shown, max_characters);
  const kernels::WeightFormat format = model.transformer.parameters().prepared_format();
  return fmt::format("Model {}{}. {}: “{}”.{}", model.name,
                     format == kernels::WeightFormat::f32
                         ? ""
                         : fmt::format(" in {}", kernels::weight_format_name(format)),
                     model.is_translator() ? "Target" : "Text", shown,
                     changes.empty() ? "" : fmt::format(" Changed: {}.", printable(changes)));
}

std::vector<std::string> axis_labels(const LoadedModel& model,
                                     std::span<const std::int32_t> tokens) {
  std::vector<std::string> labels;
  for (const std::string& bytes : model.token_bytes(tokens)) labels.push_back(visible(bytes));
  return labels;
}

std::vector<std::string> numbered(const std::string& before, std::int64_t count) {
  std::vector<std::string> labels;
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(before + std::to_string(i));
  return labels;
}

}  // namespace heed::cli
