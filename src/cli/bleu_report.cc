#include "cli/bleu_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/json.h"
#include "cli/terminal/ink.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

constexpr double significant = 0.05;

// Files without their directories, where that tells them apart.
std::vector<std::string> short_names(const BleuReport& report) {
  std::vector<std::string> names;
  std::set<std::string> distinct;
  for (const std::string& path : report.systems) {
    names.push_back(printable_lines(std::filesystem::path(path).filename().string()));
    distinct.insert(names.back());
  }
  const std::set<std::string> paths(report.systems.begin(), report.systems.end());
  if (distinct.size() == paths.size()) return names;
  std::ranges::transform(report.systems, names.begin(), printable_lines);
  return names;
}

std::string score_cell(const scoring::SystemScore& score, bool has_interval) {
  std::string cell = fmt::format("{:.2f}", score.score);
  if (has_interval) cell += fmt::format(" ± {:.2f}", score.interval.half_width);
  return cell;
}

std::string p_value_cell(const scoring::SystemScore& score) {
  if (!score.p_value) return "";
  return fmt::format("{:.4f} {}", *score.p_value, *score.p_value < significant ? "*" : " ");
}

std::string precisions_cell(const scoring::BleuScore& score) {
  std::string cell;
  for (const double precision : score.precisions) {
    cell += fmt::format("{}{:.1f}", cell.empty() ? "" : "/", precision);
  }
  return cell;
}

// The parts of BLEU stand beside it where there is room: without p-values.
bool shows_parts(const BleuReport& report, const MetricReport& metric) {
  return !metric.details.empty() && !report.compares;
}

std::vector<Table::Column> score_columns(const BleuReport& report) {
  std::vector<Table::Column> columns{{"system", Align::left}};
  for (const MetricReport& metric : report.metrics) {
    columns.push_back({metric.name, Align::right});
    if (report.compares) columns.push_back({"p", Align::right});
    if (!shows_parts(report, metric)) continue;
    columns.push_back({"1-4-grams", Align::right});
    columns.push_back({"penalty", Align::right});
    columns.push_back({"length", Align::right});
  }
  return columns;
}

std::vector<std::string> score_row(const BleuReport& report, std::size_t system,
                                   const std::string& name) {
  std::vector<std::string> cells{name};
  for (const MetricReport& metric : report.metrics) {
    cells.push_back(score_cell(metric.systems[system], report.samples.has_value()));
    if (report.compares) cells.push_back(p_value_cell(metric.systems[system]));
    if (!shows_parts(report, metric)) continue;
    const scoring::BleuScore& details = metric.details[system];
    cells.push_back(precisions_cell(details));
    cells.push_back(fmt::format("{:.3f}", details.brevity_penalty));
    cells.push_back(fmt::format("{:.3f}", details.length_ratio));
  }
  return cells;
}

// What the columns mean, in a line or two.
std::string score_legend(const BleuReport& report, const std::string& baseline) {
  std::string text = fmt::format("  {}, {}", counted(report.sentences, "sentence"),
                                 counted(report.references, "reference"));
  if (report.samples) {
    text += fmt::format("; ± half of the 95 % interval over {}",
                        counted(*report.samples, "bootstrap sample"));
  }
  text += "\n";
  if (report.compares) {
    text += fmt::format("  p of the difference to {}; * below {}\n", baseline, significant);
  }
  return text;
}

OrderedJson system_score_json(const BleuReport& report, const MetricReport& metric,
                              std::size_t system) {
  const scoring::SystemScore& score = metric.systems[system];
  OrderedJson json{{"metric", metric.name}, {"score", json_number(score.score)}};
  if (!metric.details.empty()) {
    const scoring::BleuScore& details = metric.details[system];
    json["precisions"] = details.precisions;
    json["brevity_penalty"] = json_number(details.brevity_penalty);
    json["length_ratio"] = json_number(details.length_ratio);
    json["hypothesis_length"] = details.statistics.hypothesis_length;
    json["reference_length"] = details.statistics.reference_length;
  }
  if (report.samples) {
    json["interval"] = {{"mean", json_number(score.interval.mean)},
                        {"half_width", json_number(score.interval.half_width)}};
  }
  if (report.compares) {
    json["p_value"] = score.p_value ? json_number(*score.p_value) : OrderedJson(nullptr);
  }
  json["signature"] = metric.signature;
  if (!metric.sentences.empty()) json["sentences"] = metric.sentences[system];
  return json;
}

}  // namespace

std::string bleu_report_text(const BleuReport& report) {
  const Ink ink(standard_output());
  Table table(score_columns(report));
  const std::vector<std::string> names = short_names(report);
  for (std::size_t i = 0; i < names.size(); ++i) table.add(score_row(report, i, names[i]));
  std::string text = "\n" + table.text(ink) + "\n" + ink.quiet(score_legend(report, names[0]));
  for (const MetricReport& metric : report.metrics) {
    text += ink.quiet(fmt::format("  {}|{}\n", metric.name, metric.signature));
  }
  return text;
}

std::string bleu_sentence_lines(const BleuReport& report) {
  std::string text;
  for (std::size_t i = 0; i < static_cast<std::size_t>(report.sentences); ++i) {
    for (const MetricReport& metric : report.metrics) {
      text += fmt::format("{}{:.2f}", &metric == &report.metrics[0] ? "" : "\t",
                          metric.sentences[0][i]);
    }
    text += "\n";
  }
  return text;
}

OrderedJson bleu_report_json(const BleuReport& report) {
  OrderedJson systems = OrderedJson::array();
  for (std::size_t i = 0; i < report.systems.size(); ++i) {
    OrderedJson scores = OrderedJson::array();
    for (const MetricReport& metric : report.metrics) {
      scores.push_back(system_score_json(report, metric, i));
    }
    systems.push_back({{"name", report.systems[i]}, {"scores", std::move(scores)}});
  }
  OrderedJson json{{"sentence_count", report.sentences}, {"reference_count", report.references}};
  if (report.samples) json["samples"] = *report.samples;
  json["systems"] = std::move(systems);
  return json;
}

}  // namespace heed::cli
