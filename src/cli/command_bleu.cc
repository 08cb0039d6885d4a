// heed bleu: how close translations are to references.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "base/files.h"
#include "base/json.h"
#include "cli/bleu_report.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/number_option.h"
#include "cli/output.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/text.h"
#include "scoring/chrf.h"
#include "scoring/metric.h"

namespace heed::cli {
namespace {

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
