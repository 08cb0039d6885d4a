// --out FILE: the result of a command as a figure or as arrays.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "engine/loaded_model.h"
#include "microscope/figures/figure.h"
#include "microscope/files/array_files.h"

namespace heed::cli {

void add_out_option(Command command, std::string& path);

// Before the work starts. Throws Error{invalid_argument} for an unknown extension.
void check_out(const std::string& path);

// `draw` is called for a figure only.
struct Result {
  FigureText text;
  std::function<Figure(const FigureText&)> draw;
  std::vector<NamedArray> arrays;
};

// By the extension; nothing for an empty path.
void write_result(const std::string& path, const Result& result);

// "Model starter. Text: “A fluffy blue …”. Changed: ablate L2H3.": the beginning of a caption.
// Of a translator, `tokens` are its target. `changes` are those of InterventionOptions::summary().
std::string figure_caption(const LoadedModel& model, std::span<const std::int32_t> tokens,
                           const std::string& changes = "");

// Tokens as people see them on an axis, spaces as ␣.
std::vector<std::string> axis_labels(const LoadedModel& model,
                                     std::span<const std::int32_t> tokens);
std::vector<std::string> numbered(const std::string& before, std::int64_t count);

}  // namespace heed::cli
