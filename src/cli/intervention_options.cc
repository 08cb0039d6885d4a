#include "cli/intervention_options.h"

#include <algorithm>

#include "cli/command.h"
#include "microscope/intervention_text.h"

namespace heed::cli {

void add_intervention_options(CLI::App& command, InterventionOptions& options) {
  const auto add = [&command](const char* name, std::vector<std::string>& texts, const char* type,
                              const char* description) {
    command.add_option(name, texts, description)
        ->type_name(type)
        ->allow_extra_args(false)
        ->group("Interventions");
  };
  add("--ablate", options.ablate, "WHERE",
      "Set to zero: L2H3 a head, L2N17 a neuron, L2, L2.attn, L2.mlp, or a point by name; "
      "@5, @3-7 or @4- chooses positions; may be repeated");
  add("--mean", options.mean, "WHERE", "Set to the mean over --mean-text");
  add("--scale", options.scale, "WHERE=X", "Multiply, such as L2H3=0.5");
  add("--cut", options.cut, "EDGES",
      "Cut a head's edges from query to key positions, such as 'L1H0:7>3'");
  command
      .add_option("--mean-text", options.mean_text,
                  "The text whose mean --mean takes [the text that is read]")
      ->type_name("TEXT")
      ->group("Interventions");
  command
      .add_flag("--renormalise", options.renormalise,
                "What is left of a row after --cut sums to one again")
      ->group("Interventions");
}

std::unique_ptr<Interventions> make_interventions(const InterventionOptions& options,
                                                  const LoadedModel& model,
                                                  std::span<const std::int32_t> tokens,
                                                  std::int64_t first_position) {
  if (!options.any()) return nullptr;
  const GptConfig& config = model.gpt.config();
  std::vector<Intervention> all;
  const auto add = [&](InterventionPlace place, Change change) {
    Intervention& added = all.emplace_back();
    added.site = place.site;
    added.where = std::move(place.where);
    added.change = std::move(change);
  };
  for (const std::string& text : options.ablate) {
    for (InterventionPlace& place : parse_places(config, text)) add(std::move(place), SetZero{});
  }
  std::vector<std::vector<std::int32_t>> set{{tokens.begin(), tokens.end()}};
  if (!options.mean_text.empty()) set[0] = model.encode(options.mean_text);
  for (const std::string& text : options.mean) {
    for (InterventionPlace& place : parse_places(config, text)) {
      const Site site = place.site;
      add(std::move(place), SetRow{mean_row(model.gpt, site, set)});
    }
  }
  for (const std::string& text : options.scale) {
    for (Intervention& scale : parse_scale(config, text)) all.push_back(std::move(scale));
  }
  for (const std::string& text : options.cut) {
    all.push_back(parse_cut(
        config, text, options.renormalise ? CutEdges::Rest::renormalised : CutEdges::Rest::kept));
  }
  for (Intervention& intervention : all) {
    Selection& where = intervention.where;
    where.first_position = std::max(where.first_position, first_position);
    where.last_position = std::max(where.last_position, where.first_position);
  }
  return std::make_unique<Interventions>(config, std::move(all));
}

}  // namespace heed::cli
