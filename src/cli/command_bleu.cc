// heed bleu: how close translations are to references.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/json_fwd.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/table.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "scoring/bleu.h"
#include "scoring/bootstrap.h"
#include "scoring/chrf.h"
#include "scoring/metric.h"

namespace heed::cli {
namespace {

struct MetricReport {
  std::string name;
  std::string signature;
  std::vector<scoring::SystemScore> systems;   // intervals only where samples were drawn
  std::vector<scoring::BleuScore> details;     // of each system; none of other metrics than BLEU
  std::vector<std::vector<double>> sentences;  // of each system, if asked for
};

struct BleuReport {
  std::int64_t sentences = 0;
  std::int64_t references = 0;
  std::optional<std::int64_t> samples;  // of the bootstrap
  bool compares = false;                // p-values against the first system
  std::vector<std::string> systems;     // their names
  std::vector<MetricReport> metrics;
};

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

// One line for each sentence: a score of each metric, separated by tabs. For one system.
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

struct BleuCallOptions {
  std::vector<std::string> references;
  std::vector<std::string> inputs;
  std::vector<std::string> metrics{"bleu"};
  std::string tokenization = "13a";
  bool lowercase = false;
  bool sentence = false;
  bool confidence = false;
  bool paired = false;
  scoring::BootstrapOptions bootstrap;
  bool json = false;

  bool resamples() const { return confidence || paired; }
};

struct NamedSentences {
  std::string name;
  std::vector<std::string> sentences;
};

NamedSentences sentences_of_file(const std::string& path) {
  return {path, scoring::read_sentences(MappedFile(path).text(), "'" + path + "'")};
}

std::vector<NamedSentences> systems_of(const BleuCallOptions& options) {
  if (options.inputs.empty()) {
    const std::string text = read_standard_input(
        "there are no translations: give --input FILE or a pipe, one sentence a line");
    return {{"standard input", scoring::read_sentences(text, "standard input")}};
  }
  std::vector<NamedSentences> systems;
  for (const std::string& path : options.inputs) systems.push_back(sentences_of_file(path));
  return systems;
}

void check_bleu_call(const BleuCallOptions& options) {
  if (options.paired && options.inputs.size() < 2) {
    fail_usage(fmt::format(
        "--paired-bs compares systems with the first one: expected --input BASELINE,SYSTEM, not {}",
        counted(static_cast<long long>(options.inputs.size()), "file")));
  }
  if (!options.sentence) return;
  if (options.resamples()) fail_usage("--sentence goes with neither --confidence nor --paired-bs");
  if (options.inputs.size() > 1) {
    fail_usage(fmt::format("--sentence scores one system, not {}", options.inputs.size()));
  }
}

void check_line_counts(const NamedSentences& reference, const std::vector<NamedSentences>& others) {
  for (const NamedSentences& other : others) {
    if (other.sentences.size() == reference.sentences.size()) continue;
    fail_usage(
        fmt::format("{} has {}, and the reference {} has {}; expected a translation of "
                    "each line",
                    other.name, counted(std::ssize(other.sentences), "line"), reference.name,
                    counted(std::ssize(reference.sentences), "line")));
  }
}

std::unique_ptr<scoring::Metric> metric_named(const std::string& name,
                                              const scoring::BleuOptions& bleu) {
  if (name == "bleu") return std::make_unique<scoring::Bleu>(bleu);
  const int word_order = name == "chrf++" ? 2 : 0;
  if (name == "chrf" || name == "chrf++") {
    return std::make_unique<scoring::Chrf>(
        scoring::ChrfOptions{.word_order = word_order, .lowercase = bleu.lowercase});
  }
  fail_usage(fmt::format("there is no metric '{}'; expected bleu, chrf or chrf++", name));
}

std::vector<std::unique_ptr<scoring::Metric>> metrics_of(const BleuCallOptions& options) {
  const scoring::BleuOptions bleu{
      .tokenization = scoring::bleu_tokenization_from_name(options.tokenization),
      .lowercase = options.lowercase,
      .effective_order = options.sentence};
  std::vector<std::unique_ptr<scoring::Metric>> metrics;
  for (const std::string& name : options.metrics) metrics.push_back(metric_named(name, bleu));
  return metrics;
}

std::vector<double> sentence_scores(const scoring::Metric& metric,
                                    const scoring::SentenceStatistics& statistics) {
  std::vector<double> scores;
  for (std::int64_t i = 0; i < statistics.sentences(); ++i) {
    scores.push_back(metric.score(statistics.of(i)));
  }
  return scores;
}

std::vector<scoring::SystemScore> system_scores(
    const BleuCallOptions& options, const scoring::Metric& metric,
    const std::vector<scoring::SentenceStatistics>& systems) {
  if (!options.resamples()) {
    std::vector<scoring::SystemScore> scores;
    for (const auto& system : systems) scores.push_back({.score = metric.score(system.sum())});
    return scores;
  }
  ProgressLine line;
  scoring::BootstrapOptions bootstrap = options.bootstrap;
  bootstrap.progress = line.callback();
  bootstrap.stop = interrupt_flag();
  return scoring::paired_bootstrap(metric, systems, bootstrap);
}

MetricReport metric_report(const BleuCallOptions& options, const scoring::Metric& metric,
                           const std::vector<NamedSentences>& systems,
                           const std::vector<std::vector<std::string>>& references) {
  scoring::SignatureContext context{.references = std::ssize(references)};
  if (options.resamples()) {
    context.bootstrap_samples = options.bootstrap.samples;
    context.seed = options.bootstrap.seed;
  }
  MetricReport report{.name = metric.name(), .signature = metric.signature(context)};
  const auto* const bleu = dynamic_cast<const scoring::Bleu*>(&metric);
  std::vector<scoring::SentenceStatistics> statistics;
  for (const NamedSentences& system : systems) {
    statistics.push_back(metric.statistics({system.sentences, references}));
    if (bleu != nullptr) report.details.push_back(bleu->details(statistics.back().sum()));
    if (options.sentence) report.sentences.push_back(sentence_scores(metric, statistics.back()));
  }
  report.systems = system_scores(options, metric, statistics);
  return report;
}

void score_translations(const BleuCallOptions& options) {
  check_bleu_call(options);
  const auto metrics = metrics_of(options);
  std::vector<NamedSentences> references;
  for (const std::string& path : options.references) references.push_back(sentences_of_file(path));
  check_line_counts(references[0], references);
  const std::vector<NamedSentences> systems = systems_of(options);
  check_line_counts(references[0], systems);

  std::vector<std::vector<std::string>> texts;
  for (NamedSentences& reference : references) texts.push_back(std::move(reference.sentences));
  BleuReport report{.sentences = std::ssize(texts[0]), .references = std::ssize(texts)};
  report.compares = options.paired;
  if (options.resamples()) report.samples = options.bootstrap.samples;
  for (const NamedSentences& system : systems) report.systems.push_back(system.name);
  for (const auto& metric : metrics) {
    report.metrics.push_back(metric_report(options, *metric, systems, texts));
  }
  if (options.json) return print_json(bleu_report_json(report));
  print(options.sentence ? bleu_sentence_lines(report) : bleu_report_text(report));
}

}  // namespace

void add_bleu_command(Command app) {
  Command command = add_command(app, "bleu", "Score translations as sacreBLEU does");
  auto options = std::make_shared<BleuCallOptions>();
  command
      ->add_option("REFERENCE", options->references,
                   "Compare with these files, one sentence a line, each a set of references")
      ->required()
      ->type_name("REFERENCE…");
  add_list_option(*command, "-i,--input", options->inputs,
                  "Score the translations in these files [standard input]")
      ->type_name("FILE,…");
  add_list_option(*command, "--metrics", options->metrics, "Compute bleu, chrf or chrf++")
      ->default_str("bleu")
      ->type_name("NAME,…");
  command
      ->add_option("--tokenize", options->tokenization,
                   "Split words for BLEU: 13a, none, char, intl or zh")
      ->capture_default_str()
      ->check(one_of(scoring::bleu_tokenization_names()))
      ->type_name("NAME");
  command->add_flag("--lowercase", options->lowercase, "Ignore case");
  command->add_flag("--sentence", options->sentence, "Score each sentence, one a line");
  command->add_flag("--confidence", options->confidence,
                    "Estimate a 95 % interval by bootstrap resampling");
  command->add_flag("--paired-bs", options->paired,
                    "Test each system's difference to the first one, too");
  command->add_option("--samples", options->bootstrap.samples, "Draw N bootstrap samples")
      ->capture_default_str()
      ->check(between(1, 1000000));
  command->add_option("-s,--seed", options->bootstrap.seed, "Seed the samples")
      ->capture_default_str()
      ->check(any_seed());
  add_json_option(*command, options->json);
  command->footer(
      "With equal options, scores, samples and p-values are those of sacreBLEU. Report a score "
      "with its signature.");
  command->callback([options] { score_translations(*options); });
}

}  // namespace heed::cli
