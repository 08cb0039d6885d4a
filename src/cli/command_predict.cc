// heed predict: the probabilities of the next token.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/json.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/intervention_options.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"
#include "cli/unread.h"
#include "engine/facade.h"
#include "engine/loaded_model.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "heed/heed.h"
#include "heed/intervention.h"

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

// What the model computes, and what it computes with interventions.
struct Logits {
  Array rows;    // (M, V): after every position, or after the last
  Array edited;  // the same; empty without interventions

  static std::span<const float> row(const Array& array, std::int64_t index) {
    const auto width = static_cast<std::size_t>(array.shape().back());
    return std::span<const float>(array).subspan(static_cast<std::size_t>(index) * width, width);
  }
  std::int64_t last() const { return rows.shape().front() - 1; }
};

Array compute_logits(const Model& model, const std::vector<std::int32_t>& tokens,
                     bool all_positions) {
  if (all_positions) return model.all_logits(tokens);
  const Array last = model.logits(tokens);
  return last.reshaped({1, std::ssize(last)});
}

OrderedJson candidates_json(const LoadedModel& model, std::span<const Candidate> candidates) {
  OrderedJson rows = OrderedJson::array();
  for (const Candidate& candidate : candidates) {
    OrderedJson row = token_json(model, candidate.token);
    row.update(candidate_json(model, candidate));
    row.erase("token");  // the text, under another name
    rows.push_back(std::move(row));
  }
  return rows;
}

// Written piece by piece: a context of logits is too much for a document in memory.
void print_logits(const Array& logits, bool all_positions) {
  if (all_positions) print("[");
  for (std::int64_t row = 0; row < logits.shape().front(); ++row) {
    std::string text = row == 0 ? "[" : ",[";
    for (const float logit : Logits::row(logits, row)) {
      if (!text.ends_with('[')) text += ',';
      append_json_number(text, logit);
    }
    print(text + "]");
  }
  if (all_positions) print("]");
}

void print_prediction_json(const PredictOptions& options, const Model& model,
                           const std::vector<std::int32_t>& tokens, const Logits& logits) {
  const auto candidates = [&](const Array& array, std::int64_t row) {
    const auto history =
        std::span(tokens).first(tokens.size() - static_cast<std::size_t>(logits.last() - row));
    const auto all = trace_candidates(Logits::row(array, row), options.sampling, history);
    return candidates_json(ModelAccess::loaded(model),
                           std::span(all).first(std::min(all.size(), options.top)));
  };
  OrderedJson document{{"model", model.name()},
                       {"tokens", tokens_json(ModelAccess::loaded(model), tokens)}};
  add_reading(document, ModelAccess::loaded(model), tokens);
  document["temperature"] = options.sampling.temperature;
  document["candidates"] = candidates(logits.rows, logits.last());
  if (!logits.edited.empty()) document["edited"] = candidates(logits.edited, logits.last());
  if (options.all_positions) {
    OrderedJson positions = OrderedJson::array();
    for (std::int64_t row = 0; row <= logits.last(); ++row) {
      positions.push_back({{"position", row}, {"candidates", candidates(logits.rows, row)}});
    }
    document["positions"] = std::move(positions);
  }
  if (!options.full) return print_json(document);
  std::string beginning = json_text(document);
  beginning.pop_back();  // the closing brace
  print(beginning + ",\"logits\":");
  print_logits(logits.rows, options.all_positions);
  print("}\n");
}

std::string fate(const Model::Next& next, const Ink& ink) {
  if (next.filtered.empty()) return percent(next.drawn);
  if (next.filtered == "temperature") return ink.quiet("not the most likely");
  return ink.quiet("removed by " + std::string(next.filtered));
}

void print_candidates(std::span<const Model::Next> candidates, const Ink& ink, int width) {
  const int bar_width = std::clamp(width - 68, 10, 30);
  Table table({{"rank", Align::right},
               {"token", Align::left},
               {"id", Align::right},
               {"logit", Align::right},
               {"÷ temp", Align::right},
               {"probability", Align::right},
               {"", Align::left},
               {"drawn", Align::left}});
  const double largest = candidates.empty() ? 1.0 : candidates.front().probability;
  for (const Model::Next& next : candidates) {
    const bool kept = next.filtered.empty();
    const std::string name = fit(visible(next.text), 16);
    const std::string drawn = bar(next.probability / std::max(largest, 1e-12), bar_width);
    table.add({std::to_string(next.rank), kept ? ink.bold(name) : ink.quiet(name),
               std::to_string(next.token), fmt::format("{:.2f}", next.logit),
               fmt::format("{:.2f}", next.scaled_logit), percent(next.probability),
               ink.paint(drawn, kept ? colour::blue : colour::grey), fate(next, ink)});
  }
  print(table.text(ink));
}

// "1,024 tokens → top-k leaves 40 → top-p leaves 12 → min-p leaves 6"
std::string filter_summary(const std::vector<Model::Next>& all, const SamplingOptions& sampling) {
  std::string text = grouped(std::ssize(all)) + " tokens";
  std::int64_t left = std::ssize(all);
  for (std::size_t i = 0; i < sampling_stage_count; ++i) {
    const auto stage = static_cast<SamplingStage>(i);
    const bool filters = stage > SamplingStage::penalties && stage < SamplingStage::temperature;
    if (!filters || !is_active(stage, sampling)) continue;
    left -= std::ranges::count(all, sampling_stage_name(stage), &Model::Next::filtered);
    text += fmt::format(" → {} leaves {}", sampling_stage_name(stage), grouped(left));
  }
  return text;
}

void print_every_position(const PredictOptions& options, const Model& model,
                          const std::vector<std::int32_t>& tokens, const Array& logits,
                          const Ink& ink) {
  Table table({{"", Align::right},
               {"after", Align::left},
               {"likeliest next", Align::left},
               {"", Align::right},
               {"what came", Align::left},
               {"", Align::right},
               {"rank", Align::right}});
  const auto name = [](const std::string& text) { return fit(visible(text), 14); };
  for (std::int64_t row = 0; row < logits.shape().front(); ++row) {
    const auto history = std::span(tokens).first(static_cast<std::size_t>(row) + 1);
    const auto all = model.rank(Logits::row(logits, row), history, options.sampling, 0);
    const std::string after = ModelAccess::loaded(model).token_bytes(history.back());
    std::vector<std::string> cells{std::to_string(row), name(after),
                                   ink.bold(name(all.front().text)),
                                   percent(all.front().probability)};
    if (row + 1 < std::ssize(tokens)) {
      const auto came =
          std::ranges::find(all, tokens[static_cast<std::size_t>(row) + 1], &Model::Next::token);
      cells.insert(cells.end(),
                   {name(came->text), percent(came->probability), std::to_string(came->rank)});
    }
    table.add(std::move(cells));
  }
  print(table.text(ink));
}

void print_prediction(const PredictOptions& options, const Model& model,
                      const std::vector<std::int32_t>& tokens, const Logits& logits) {
  const Terminal terminal = standard_output();
  const Ink ink(terminal);
  if (options.all_positions) print_every_position(options, model, tokens, logits.rows, ink);
  const std::vector<Model::Next> all =
      model.rank(Logits::row(logits.rows, logits.last()), tokens, options.sampling, 0);
  const auto shown = std::span(all).first(std::min(all.size(), options.top));
  print("\n" + ink.title("Next token") +
        ink.quiet(fmt::format("  after {}\n\n", counted(std::ssize(tokens), "token"))));
  print_candidates(shown, ink, terminal.width);
  double rest = 1.0;
  for (const Model::Next& next : shown) rest -= next.probability;
  if (shown.size() < all.size()) {
    print(ink.quiet(fmt::format("  … and {} more tokens, {} together\n",
                                grouped(std::ssize(all) - std::ssize(shown)),
                                percent(std::max(rest, 0.0)))));
  }
  print("\n");
  for (const std::string& line : wrap(filter_summary(all, options.sampling), terminal.width - 2)) {
    print("  " + ink.quiet(line) + "\n");
  }
}

// The likeliest tokens of a pass and of one with interventions, side by side.
void print_side_by_side(const PredictOptions& options, const Model& model, const Logits& logits) {
  const Ink ink(standard_output());
  const Model::Sampling plain{.temperature = 1.0};
  const auto all = model.rank(Logits::row(logits.rows, logits.last()), {}, plain, 0);
  const auto all_edited = model.rank(Logits::row(logits.edited, logits.last()), {}, plain, 0);
  const auto name = [&](const Model::Next& next) { return ink.bold(fit(visible(next.text), 16)); };
  Table table({{"rank", Align::right},
               {"before", Align::left},
               {"", Align::right},
               {"after", Align::left},
               {"", Align::right},
               {"was", Align::right}});
  for (std::size_t i = 0; i < std::min(all.size(), options.top); ++i) {
    const auto was = std::ranges::find(all, all_edited[i].token, &Model::Next::token);
    table.add({std::to_string(i + 1), name(all[i]), percent(all[i].probability),
               name(all_edited[i]), percent(all_edited[i].probability),
               ink.quiet(percent(was->probability))});
  }
  print("\n" + ink.title("Next token before and after interventions") + "\n\n" + table.text(ink));
}

void predict(const PredictOptions& options) {
  if (options.full && !options.json) fail_usage("--full needs --json");
  const Model model =
      Model::load(options.model, {.weights = parse_weight_type(options.dtype),
                                  .cache = parse_key_value_type(options.cache_type)});
  const LoadedModel& loaded = ModelAccess::loaded(model);
  const std::vector<std::int32_t> tokens = read_tokens(options.text, loaded);
  Logits logits{.rows = compute_logits(model, tokens, options.all_positions)};
  const std::vector<Edit> edits =
      make_edits(options.interventions, loaded, {.source = {}, .target = tokens});
  if (!edits.empty()) {
    logits.edited = compute_logits(EditedModel(model, edits), tokens, options.all_positions);
  }
  if (options.json) return print_prediction_json(options, model, tokens, logits);
  tell_of_unread(loaded, tokens);
  if (!edits.empty()) return print_side_by_side(options, model, logits);
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
