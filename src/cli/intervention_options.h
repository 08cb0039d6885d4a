// The options by which a command changes the passes that it runs, the same for every command.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "microscope/intervention.h"

namespace heed::cli {

struct InterventionOptions {
  std::vector<std::string> ablate;  // places, see microscope/intervention_text.h
  std::vector<std::string> mean;
  std::vector<std::string> scale;
  std::vector<std::string> cut;
  std::string mean_text;  // empty: the text that is read
  bool renormalise = false;

  bool any() const { return !(ablate.empty() && mean.empty() && scale.empty() && cut.empty()); }
};

void add_intervention_options(CLI::App& command, InterventionOptions& options);

// What they ask for, first changing positions from `first_position` on; null when they ask for
// nothing. Throws Error{invalid_argument} for a place that there is not.
std::unique_ptr<Interventions> make_interventions(const InterventionOptions& options,
                                                  const LoadedModel& model,
                                                  std::span<const std::int32_t> tokens,
                                                  std::int64_t first_position = 0);

}  // namespace heed::cli
