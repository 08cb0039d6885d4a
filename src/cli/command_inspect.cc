// heed inspect: what a file of weights holds.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "base/json.h"
#include "base/utf8.h"
#include "checkpoint/file_inspection.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

struct InspectCommandOptions {
  std::string path;
  bool statistics = false;
  bool json = false;
};

OrderedJson statistics_json(const TensorStatistics& found) {
  return {{"min", found.minimum},   {"max", found.maximum}, {"mean", found.mean},
          {"std", found.deviation}, {"zeros", found.zeros}, {"not_finite", found.not_finite}};
}

OrderedJson inspection_json(const InspectedFile& file) {
  OrderedJson metadata = OrderedJson::object();
  for (const auto& [key, value] : file.metadata) metadata[key] = value;
  OrderedJson tensors = OrderedJson::array();
  for (const InspectedTensor& tensor : file.tensors) {
    OrderedJson one = {
        {"name", tensor.name},
        {"type", tensor.type},
        {"shape", OrderedJson(std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end()))},
        {"bytes", tensor.bytes}};
    if (tensor.statistics) one["statistics"] = statistics_json(*tensor.statistics);
    tensors.push_back(std::move(one));
  }
  return {{"format", file.format}, {"files", file.files},  {"numbers", file.numbers()},
          {"bytes", file.bytes()}, {"metadata", metadata}, {"tensors", tensors}};
}

// "f16 74, q8_0 12": how many tensors are of which type, the most frequent first.
std::string counted_types(const InspectedFile& file) {
  std::vector<std::pair<std::string_view, std::int64_t>> counts;
  for (const InspectedTensor& tensor : file.tensors) {
    const auto known =
        std::ranges::find(counts, tensor.type, &std::pair<std::string_view, std::int64_t>::first);
    if (known == counts.end()) {
      counts.emplace_back(tensor.type, 1);
    } else {
      ++known->second;
    }
  }
  std::ranges::stable_sort(counts, std::greater{},
                           &std::pair<std::string_view, std::int64_t>::second);
  std::string text;
  for (const auto& [type, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", type, count);
  }
  return text;
}

void print_metadata(const InspectedFile& file, const Ink& ink) {
  if (file.metadata.empty()) return;
  Table table({{"key", Align::left}, {"value", Align::left}});
  for (const auto& [key, value] : file.metadata) {
    table.add({escape_controls(key), ink.quiet(fit(escape_controls(value), 72))});
  }
  print(table.text(ink) + "\n");
}

std::string remark(const InspectedTensor& tensor) {
  const TensorStatistics& found = *tensor.statistics;
  if (found.not_finite > 0) return fmt::format("{} not finite", grouped(found.not_finite));
  if (found.zeros == tensor.shape.size()) return "all zero";
  if (found.minimum == found.maximum) return "all equal";
  return "";
}

void print_tensors(const InspectedFile& file, bool statistics, const Ink& ink) {
  std::vector<Table::Column> columns = {{"tensor", Align::left},
                                        {"type", Align::left},
                                        {"shape", Align::left},
                                        {"size", Align::right}};
  if (statistics) {
    for (const char* title : {"min", "mean", "max", "std"})
      columns.push_back({title, Align::right});
    columns.push_back({"", Align::left});
  }
  Table table(std::move(columns));
  for (const InspectedTensor& tensor : file.tensors) {
    std::vector<std::string> cells = {escape_controls(tensor.name), std::string(tensor.type),
                                      ink.quiet(tensor.shape.text()),
                                      short_bytes(static_cast<double>(tensor.bytes))};
    if (statistics && tensor.statistics) {
      const TensorStatistics& found = *tensor.statistics;
      for (const double number : {found.minimum, found.mean, found.maximum, found.deviation}) {
        cells.push_back(fmt::format("{:.4g}", number));
      }
      cells.push_back(ink.bold(remark(tensor)));
    } else if (statistics) {
      cells.insert(cells.end(), {"", "", "", "", ink.quiet("integers")});
    }
    table.add(std::move(cells));
  }
  print(table.text(ink));
}

void inspect(const InspectCommandOptions& options) {
  using Statistics = InspectOptions::Statistics;
  ProgressLine line;
  const InspectedFile file = inspect_file(
      options.path, {.statistics = options.statistics ? Statistics::all : Statistics::none,
                     .progress = line.callback(),
                     .stop = options.statistics ? interrupt_flag() : nullptr});
  line.clear();
  if (options.json) return print_json(inspection_json(file));
  const Ink ink(standard_output());
  print("\n" + ink.title(fit(escape_controls(options.path), 60)) +
        ink.quiet(fmt::format(
            "  {}{}, {}, {} numbers, {}", file.format,
            file.files.size() == 1 ? "" : fmt::format(" in {} files", file.files.size()),
            counted(static_cast<std::int64_t>(file.tensors.size()), "tensor"),
            short_count(static_cast<double>(file.numbers())),
            short_bytes(static_cast<double>(file.bytes())))) +
        "\n" + ink.quiet("  " + counted_types(file)) + "\n\n");
  print_metadata(file, ink);
  print_tensors(file, options.statistics, ink);
}

}  // namespace

void add_inspect_command(Command app) {
  Command command =
      add_command(app, "inspect", "List the tensors and metadata of a file of weights");
  auto options = std::make_shared<InspectCommandOptions>();
  command
      ->add_option("path", options->path,
                   "safetensors or GGUF file, an index or part of several, or a model's directory")
      ->type_name("FILE|DIR")
      ->required();
  command->add_flag("--statistics", options->statistics,
                    "Read every tensor: least, mean and largest number, standard deviation");
  add_json_option(*command, options->json);
  command->footer("Every check of the format is made before anything is listed.");
  command->callback([options] { inspect(*options); });
}

}  // namespace heed::cli
