// heed induction: whether a model continues what it has seen, and by which heads.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/table.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "microscope/attention/induction.h"

namespace heed::cli {
namespace {

struct InductionCommandOptions {
  std::string model = "starter";
  std::string metrics;
  InductionOptions measure;
  bool json = false;
};

std::string head_name(const HeadScore& head) {
  return fmt::format("L{}H{}", head.layer, head.head);
}

OrderedJson head_json(const std::optional<HeadScore>& head) {
  return head ? OrderedJson(head_name(*head)) : OrderedJson();
}

OrderedJson loss_json(const std::optional<double>& loss) {
  return loss ? json_number(*loss) : OrderedJson();
}

// What `heed train --measure induction` wrote.
std::vector<ScoreAtStep> read_scores(const std::string& file) {
  std::vector<ScoreAtStep> scores;
  const std::string text = read_text_file(file);
  for (const std::string_view line : text_lines(text)) {
    const Json entry = parse_json(line, file);
    if (!entry.is_object() || !entry.contains("induction_score")) continue;
    const bool is_measurement = entry.contains("step") && entry["step"].is_number_integer() &&
                                entry["induction_score"].is_number();
    require(is_measurement, ErrorCode::corrupt_data, "{}: '{}' is not a measurement", file, line);
    scores.push_back({entry["step"].get<std::int64_t>(), entry["induction_score"].get<double>()});
  }
  require(scores.size() >= 2, ErrorCode::not_found,
          "{} holds fewer than two induction scores; train with --measure induction", file);
  return scores;
}

OrderedJson scores_json(const std::vector<HeadScore>& scores) {
  OrderedJson list = OrderedJson::array();
  for (const HeadScore& head : scores) {
    list.push_back({{"head", head_name(head)},
                    {"score", json_number(head.score)},
                    {"control", json_number(head.control)},
                    {"standard_error", json_number(head.standard_error)},
                    {"significant", head.is_significant}});
  }
  return list;
}

void print_report(const InductionCommandOptions& options, const InductionCircuit& circuit,
                  const std::optional<Jump>& jump, double chance) {
  const InductionMeasure& whole = circuit.whole;
  const Ink ink(standard_output());
  Table table({{"measured", Align::left}, {"", Align::right}, {"", Align::left}});
  const auto add = [&](const char* what, double value, const std::string& note) {
    table.add({what, ink.bold(fmt::format("{:.3f}", value)), ink.quiet(note)});
  };
  const auto add_score = [&](const char* what, const std::optional<HeadScore>& found,
                             const HeadScore& best) {
    const HeadScore& head = found ? *found : best;
    add(what, head.score,
        fmt::format("of {}{} (control {:.3f})", head_name(head), found ? "" : ", not significant",
                    head.control));
  };
  const auto induction = whole.induction_head();
  const auto previous = whole.previous_head();
  add_score("induction score", induction, whole.best_induction());
  add_score("previous-token score", previous, whole.best_previous());
  add("loss, first half", whole.first_half_loss,
      fmt::format("nats per token; chance is {:.3f}", chance));
  add("loss, repeated half", whole.repeated_half_loss, "nats per token");
  if (induction) {
    add("without that head", *circuit.loss_without_induction_head,
        head_name(*induction) + " set to zero");
  }
  if (previous) {
    add("without those edges", *circuit.loss_without_previous_edges,
        head_name(*previous) + " cut from each token to the previous one");
  }
  if (!induction) table.add_line("No head of this model is an induction head.");
  if (!previous) table.add_line("No head of this model is a previous-token head.");
  if (jump) {
    table.add_line(fmt::format("The score rose most from step {} ({:.3f}) to step {} ({:.3f}).",
                               jump->before.step, jump->before.score, jump->after.step,
                               jump->after.score));
  }
  print("\n" + ink.title("Induction") +
        ink.quiet(fmt::format("  {} random sequences of {} tokens, each repeated once\n\n",
                              options.measure.sequences, whole.length)) +
        table.text(ink));
}

void measure(const InductionCommandOptions& options) {
  std::optional<Jump> jump;
  if (!options.metrics.empty()) jump = largest_jump(read_scores(options.metrics));
  const LoadedModel model = load_model(options.model);
  InductionOptions measurement = options.measure;
  measurement.stop = interrupt_flag();
  const InductionCircuit circuit = measure_induction_circuit(model.transformer, measurement);
  const double chance =
      std::log(static_cast<double>(model.transformer.specification().vocabulary_size));
  if (!options.json) return print_report(options, circuit, jump, chance);
  const InductionMeasure& whole = circuit.whole;
  OrderedJson document{
      {"model", model.name},
      {"length", whole.length},
      {"induction_head", head_json(whole.induction_head())},
      {"induction_score", json_number(whole.best_induction().score)},
      {"previous_head", head_json(whole.previous_head())},
      {"previous_score", json_number(whole.best_previous().score)},
      {"chance_loss", json_number(chance)},
      {"first_half_loss", json_number(whole.first_half_loss)},
      {"repeated_half_loss", json_number(whole.repeated_half_loss)},
      {"loss_without_induction_head", loss_json(circuit.loss_without_induction_head)},
      {"loss_without_previous_edges", loss_json(circuit.loss_without_previous_edges)},
      {"induction", scores_json(whole.induction)},
      {"previous", scores_json(whole.previous)}};
  if (jump) {
    document["jump"] = {{"from_step", jump->before.step},
                        {"to_step", jump->after.step},
                        {"from_score", json_number(jump->before.score)},
                        {"to_score", json_number(jump->after.score)}};
  }
  print_json(document);
}

}  // namespace

void add_induction_command(Command app) {
  Command command = add_command(app, "induction", "Find induction and previous-token heads");
  auto options = std::make_shared<InductionCommandOptions>();
  add_model_option(*command, options->model);
  command->add_option("-n,--sequences", options->measure.sequences, "Measure on N random sequences")
      ->capture_default_str()
      ->check(between(1, max_induction_sequences));
  command
      ->add_option("--length", options->measure.length,
                   "Use sequences of N tokens, each repeated once [half the context, at most 64]")
      ->check(at_least(1));
  command->add_option("-s,--seed", options->measure.seed, "Seed the sequences")
      ->check(any_seed())
      ->capture_default_str();
  command
      ->add_option("--metrics", options->metrics,
                   "Report when induction emerged, from a run's metrics.jsonl")
      ->type_name("FILE");
  add_json_option(*command, options->json);
  command->callback([options] { measure(*options); });
}

}  // namespace heed::cli
