#include <fmt/format.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/number_option.h"
#include "cli/pair_command.h"
#include "engine/embedded_models.h"
#include "microscope/intervene/pair_intervention_text.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"

namespace heed::cli {
namespace {

constexpr const char* changes_group = "Changes in a translator";

std::int64_t positions_of(const Point& point, const Texts& tokens) {
  return std::ssize(has_source_rows(point) ? tokens.source : tokens.target);
}

}  // namespace

std::string PairOptions::summary() const {
  std::string text;
  const auto add = [&](const char* verb, const std::string& what) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", verb, what);
  };
  for (const std::string& each : ablate) add("ablate ", each);
  for (const std::string& each : scale) add("scale ", each);
  for (const std::string& each : cut) add("cut ", each);
  if (causal_encoder) add("causal encoder", "");
  return text;
}

void add_target_options(Command command, PairOptions& options) {
  command
      .add_option_function<std::string>(
          "--target", [&options](const std::string& text) { options.target = text; },
          "Translator: the target text [the model's translation]")
      ->type_name("TEXT");
  add_list_option(command, "--target-tokens", options.target_tokens,
                  "Translator: give the target as token ids, its start first")
      ->type_name("ID,…");
}

void add_pair_change_options(Command command, PairOptions& options) {
  add_list_option(command, "--ablate", options.ablate,
                  "Set these to zero: cross.L1H2, encoder.L0H3, decoder.L1.mlp")
      ->type_name("POINT,…")
      ->group(changes_group);
  add_list_option(command, "--scale", options.scale, "Multiply these: cross.L1H2=0.5", '=')
      ->type_name("POINT=X,…")
      ->group(changes_group);
  add_list_option(command, "--cut", options.cut,
                  "Cut edges from queries to keys: cross.L1H2:3>4, cross:3>4", ':')
      ->type_name("HEAD:Q>K,…")
      ->group(changes_group);
  command
      .add_flag("--renormalise", options.renormalise,
                "Let the rest of a row with cut edges sum to one")
      ->group(changes_group);
  command
      .add_flag("--causal-encoder", options.causal_encoder,
                "Hide later source words from earlier ones")
      ->group(changes_group);
}

void choose_pair_model(Command command, std::string& model) {
  if (command.count("--model") == 0) model = embedded_translator_name;
}

void require_no_pair_options(const PairOptions& options, const std::string& model) {
  if (!options.any()) return;
  fail_usage(
      fmt::format("'{}' has one stack: --target and changes of encoder, decoder or cross "
                  "need a translator",
                  model));
}

PairTexts read_pair(const TextOptions& text, const PairOptions& options, const PairModel& model) {
  if (options.target && !options.target_tokens.empty()) {
    fail_usage("give one of --target and --target-tokens, not both");
  }
  const bool has_ids = !text.tokens.empty() && !text.text && text.file.empty();
  std::vector<std::int32_t> source =
      has_ids ? parse_token_ids(text.tokens) : model.encode_source(read_text(text));
  if (!options.target && options.target_tokens.empty()) {
    return translated_pair(model, std::move(source), interrupt_flag());
  }
  PairTexts texts;
  texts.tokens.source = std::move(source);
  texts.tokens.target = options.target ? model.encode_target(*options.target)
                                       : parse_token_ids(options.target_tokens);
  require_texts_fit(model.architecture(), texts.tokens);
  return texts;
}

std::shared_ptr<Interventions> make_pair_interventions(const PairOptions& options,
                                                       const PairModel& model,
                                                       const Texts& tokens) {
  const Architecture& architecture = model.architecture();
  if (options.renormalise && options.cut.empty()) fail_usage("--renormalise needs --cut");
  std::vector<Intervention> interventions;
  const auto add = [&](const std::string& where, const Change& change) {
    for (const InterventionPoint& point : parse_pair_points(architecture, where)) {
      require_positions(point.where, positions_of(point.point, tokens), where);
      interventions.push_back({point.point, point.where, change});
    }
  };
  for (const std::string& where : options.ablate) add(where, SetZero{});
  for (const std::string& option : options.scale) {
    const auto [where, factor] = parse_assignment(option, "--scale cross.L1H2=0.5");
    add(where, ScaleBy{parse_factor(factor)});
  }
  for (const std::string& option : options.cut) {
    const PairEdges edges = parse_pair_edges(architecture, option);
    for (const InterventionPoint& pattern : edges.patterns) {
      const AttentionSite kind = site_of_pattern(pattern.point);
      const auto queries = std::ssize(kind == encoder_site ? tokens.source : tokens.target);
      const auto keys = std::ssize(kind == decoder_site ? tokens.target : tokens.source);
      for (const CutEdges::Edge& edge : edges.edges) {
        require(edge.query < queries && edge.key < keys, ErrorCode::invalid_argument,
                "'{}': the edge {}>{} lies outside {} queries and {} keys", option, edge.query,
                edge.key, queries, keys);
      }
      interventions.push_back(
          {pattern.point, pattern.where,
           CutEdges{edges.edges,
                    options.renormalise ? CutEdges::Rest::renormalised : CutEdges::Rest::kept}});
    }
  }
  if (options.causal_encoder) {
    for (Intervention& hidden : causal_encoder(architecture)) {
      interventions.push_back(std::move(hidden));
    }
  }
  if (interventions.empty()) return nullptr;
  return std::make_shared<Interventions>(architecture, std::move(interventions));
}

PairOptions pair_changes(PairOptions options, const InterventionOptions& interventions) {
  if (!interventions.only_pairs()) {
    fail_usage("a translator takes the interventions --ablate, --scale and --cut");
  }
  options.ablate = interventions.ablate;
  options.scale = interventions.scale;
  options.cut = interventions.cut;
  options.renormalise = interventions.renormalise;
  return options;
}

}  // namespace heed::cli
