// heed predict: the probabilities of the next token.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/json.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/intervention_options.h"
#include "cli/model_options.h"
#include "cli/number_option.h"
#include "cli/output.h"
#include "cli/sampling_options.h"
#include "cli/terminal/bar.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"
#include "engine/documents.h"
#include "engine/token_json.h"
#include "generate/session.h"

namespace heed::cli {
namespace {

struct PredictOptions {
  std::string model = "starter";
  std::string dtype;
  std::string cache_type = "f32";
  TextOptions text;
  InterventionOptions interventions;
  SamplingOptions sampling;
  std::size_t top = 10;
  bool full = false;
  bool all_positions = false;
  bool json = false;
};

// Rows (M, V) of logits: of every position, or of the last.
Tensor<float> compute_logits(const PredictOptions& options, const LoadedModel& model,
                             const std::vector<std::int32_t>& tokens, Editor* editor) {
  Session session(model.gpt, std::min(std::ssize(tokens), model.gpt.config().context),
                  kernels::parse_cache_type(options.cache_type));
  session.set_editor(editor);
  if (options.all_positions) return session.feed_for_all_positions(tokens);
  const std::span<const float> last = session.feed(tokens);
  Tensor<float> logits(Shape{1, std::ssize(last)});
  std::ranges::copy(last, logits.data());
  return logits;
}

std::vector<Candidate> candidates_of(const PredictOptions& options, View<const float> logits,
                                     std::span<const std::int32_t> history) {
  std::vector<Candidate> candidates = trace_candidates(logits.span(), options.sampling, history);
  candidates.resize(std::min(candidates.size(), options.top));
  return candidates;
}

OrderedJson candidates_json(const LoadedModel& model, const std::vector<Candidate>& candidates) {
  OrderedJson rows = OrderedJson::array();
  for (const Candidate& candidate : candidates) {
    OrderedJson row = token_json(model, candidate.token);
    const OrderedJson described = candidate_json(model, candidate);
    for (const auto& [name, value] : described.items()) {
      if (name != "id" && name != "token") row[name] = value;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// Written piece by piece: a context of logits is too much for a document in memory.
void print_logits(View<const float> logits, bool all_positions) {
  if (all_positions) print("[");
  for (std::int64_t row = 0; row < logits.extent(0); ++row) {
    std::string text = row == 0 ? "[" : ",[";
    for (std::int64_t token = 0; token < logits.extent(1); ++token) {
      if (token > 0) text += ',';
      append_json_number(text, logits(row, token));
    }
    print(text + "]");
  }
  if (all_positions) print("]");
}

void print_prediction_json(const PredictOptions& options, const LoadedModel& model,
                           const std::vector<std::int32_t>& tokens, View<const float> logits,
                           View<const float> edited) {
  const std::int64_t last = logits.extent(0) - 1;
  OrderedJson document{{"model", model.name}, {"tokens", tokens_json(model, tokens)}};
  document["temperature"] = options.sampling.temperature;
  document["candidates"] = candidates_json(model, candidates_of(options, logits[last], tokens));
  if (edited.present()) {
    document["edited"] = candidates_json(model, candidates_of(options, edited[last], tokens));
  }
  if (options.all_positions) {
    OrderedJson positions = OrderedJson::array();
    for (std::int64_t row = 0; row <= last; ++row) {
      const auto history = std::span(tokens).first(row + 1);
      positions.push_back(
          {{"position", row},
           {"candidates", candidates_json(model, candidates_of(options, logits[row], history))}});
    }
    document["positions"] = std::move(positions);
  }
  if (!options.full) return print_json(document);
  std::string beginning = json_text(document);
  beginning.pop_back();  // the closing brace
  print(beginning + ",\"logits\":");
  print_logits(logits, options.all_positions);
  print("}\n");
}

std::string fate(const Candidate& candidate, const Ink& ink) {
  if (candidate.kept()) return percent(candidate.probability(SamplingStage::temperature));
  if (candidate.removed_by == SamplingStage::temperature) return ink.quiet("not the most likely");
  return ink.quiet(std::string("removed by ") + sampling_stage_name(candidate.removed_by));
}

void print_candidates(const LoadedModel& model, const std::vector<Candidate>& candidates,
                      const Ink& ink, int width) {
  const int bar_width = std::clamp(width - 68, 10, 30);
  Table table({{"rank", Align::right},
               {"token", Align::left},
               {"id", Align::right},
               {"logit", Align::right},
               {"÷ temp", Align::right},
               {"probability", Align::right},
               {"", Align::left},
               {"drawn", Align::left}});
  const double largest =
      candidates.empty() ? 1.0 : candidates.front().probability(SamplingStage::model);
  for (const Candidate& candidate : candidates) {
    const double probability = candidate.probability(SamplingStage::model);
    const std::string name = fit(visible(model.token_bytes(candidate.token)), 16);
    const std::string drawn = bar(probability / std::max(largest, 1e-12), bar_width);
    table.add({std::to_string(candidate.rank), candidate.kept() ? ink.bold(name) : ink.quiet(name),
               std::to_string(candidate.token), fmt::format("{:.2f}", candidate.logit),
               fmt::format("{:.2f}", candidate.scaled_logit), percent(probability),
               ink.paint(drawn, candidate.kept() ? colour::blue : colour::grey),
               fate(candidate, ink)});
  }
  print(table.text(ink));
}

// "1,024 tokens → top-k 40 → top-p 12 → min-p 6"
std::string filter_summary(const std::vector<Candidate>& all) {
  std::string text = grouped(std::ssize(all)) + " tokens";
  std::int64_t left = std::ssize(all);
  for (const SamplingStage stage :
       {SamplingStage::top_k, SamplingStage::top_p, SamplingStage::min_p}) {
    left -= std::ranges::count(all, stage, &Candidate::removed_by);
    text += fmt::format(" → {} leaves {}", sampling_stage_name(stage), grouped(left));
  }
  return text;
}

void print_every_position(const PredictOptions& options, const LoadedModel& model,
                          const std::vector<std::int32_t>& tokens, View<const float> logits,
                          const Ink& ink) {
  Table table({{"", Align::right},
               {"after", Align::left},
               {"likeliest next", Align::left},
               {"", Align::right},
               {"what came", Align::left},
               {"", Align::right},
               {"rank", Align::right}});
  for (std::int64_t row = 0; row < logits.extent(0); ++row) {
    const auto history = std::span(tokens).first(row + 1);
    const auto all = trace_candidates(logits[row].span(), options.sampling, history);
    const auto name = [&](std::int32_t token) {
      return fit(visible(model.token_bytes(token)), 14);
    };
    const auto chance = [](const Candidate& c) {
      return percent(c.probability(SamplingStage::model));
    };
    std::vector<std::string> cells{std::to_string(row), name(tokens[row]),
                                   ink.bold(name(all.front().token)), chance(all.front())};
    if (row + 1 < std::ssize(tokens)) {
      const auto came = std::ranges::find(all, tokens[row + 1], &Candidate::token);
      cells.insert(cells.end(), {name(came->token), chance(*came), std::to_string(came->rank)});
    }
    table.add(std::move(cells));
  }
  print(table.text(ink));
}

void print_prediction(const PredictOptions& options, const LoadedModel& model,
                      const std::vector<std::int32_t>& tokens, View<const float> logits) {
  const Terminal terminal = standard_output();
  const Ink ink(terminal);
  if (options.all_positions) print_every_position(options, model, tokens, logits, ink);
  const std::int64_t last = logits.extent(0) - 1;
  const std::vector<Candidate> all =
      trace_candidates(logits[last].span(), options.sampling, tokens);
  const std::vector<Candidate> shown(
      all.begin(),
      all.begin() + std::min(std::ssize(all), static_cast<std::ptrdiff_t>(options.top)));
  print("\n" + ink.title("Next token") +
        ink.quiet(fmt::format("  after {}\n\n", counted(std::ssize(tokens), "token"))));
  print_candidates(model, shown, ink, terminal.width);
  double rest = 1.0;
  for (const Candidate& candidate : shown) rest -= candidate.probability(SamplingStage::model);
  if (shown.size() < all.size()) {
    print(ink.quiet(fmt::format("  … and {} more tokens, {} together\n",
                                grouped(std::ssize(all) - std::ssize(shown)),
                                percent(std::max(rest, 0.0)))));
  }
  print("\n");
  for (const std::string& line : wrap(filter_summary(all), terminal.width - 2)) {
    print("  " + ink.quiet(line) + "\n");
  }
}

// The likeliest tokens of a pass and of one with interventions, side by side.
void print_side_by_side(const PredictOptions& options, const LoadedModel& model,
                        View<const float> logits, View<const float> edited) {
  const Ink ink(standard_output());
  const auto all = trace_candidates(logits.span(), {.temperature = 1.0}, {});
  const auto all_edited = trace_candidates(edited.span(), {.temperature = 1.0}, {});
  const auto name = [&](const Candidate& candidate) {
    return ink.bold(fit(visible(model.token_bytes(candidate.token)), 16));
  };
  const auto chance = [](const Candidate& candidate) {
    return percent(candidate.probability(SamplingStage::model));
  };
  Table table({{"rank", Align::right},
               {"before", Align::left},
               {"", Align::right},
               {"after", Align::left},
               {"", Align::right},
               {"was", Align::right}});
  for (std::size_t i = 0; i < std::min(all.size(), options.top); ++i) {
    const auto was = std::ranges::find(all, all_edited[i].token, &Candidate::token);
    table.add({std::to_string(i + 1), name(all[i]), chance(all[i]), name(all_edited[i]),
               chance(all_edited[i]), ink.quiet(chance(*was))});
  }
  print("\n" + ink.title("Next token before and after interventions") + "\n\n" + table.text(ink));
}

void predict(const PredictOptions& options) {
  options.sampling.validate();
  if (options.full && !options.json) fail_usage("--full needs --json");
  const LoadedModel model = load_model_as(options.model, options.dtype);
  const std::vector<std::int32_t> tokens = read_tokens(options.text, model);
  const auto editor = make_interventions(options.interventions, model, tokens);
  const Tensor<float> logits = compute_logits(options, model, tokens, nullptr);
  Tensor<float> edited;
  if (editor != nullptr) edited = compute_logits(options, model, tokens, editor.get());
  if (options.json) return print_prediction_json(options, model, tokens, logits, edited);
  if (editor != nullptr) {
    const std::int64_t last = logits.shape()[0] - 1;
    return print_side_by_side(options, model, logits.view()[last], edited.view()[last]);
  }
  print_prediction(options, model, tokens, logits);
}

}  // namespace

void add_predict_command(Command app) {
  Command command = add_command(app, "predict", "Show the probabilities of the next token");
  auto options = std::make_shared<PredictOptions>();
  add_model_option(*command, options->model);
  add_dtype_option(*command, options->dtype);
  add_cache_type_option(*command, options->cache_type);
  add_text_options(*command, options->text);
  command->add_option("--top", options->top, "Show N candidate tokens")
      ->capture_default_str()
      ->check(at_least(1));
  command->add_flag("--all-positions", options->all_positions, "Predict at every position");
  command->add_flag("--full", options->full, "Include all logits in --json");
  add_json_option(*command, options->json);
  add_sampling_options(*command, options->sampling);
  add_intervention_options(*command, options->interventions);
  command->callback([options] { predict(*options); });
}

}  // namespace heed::cli
