// The options by which a command changes the passes that it runs, the same for every command.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "microscope/intervention.h"

namespace CLI {
class App;
}

namespace heed::cli {

struct InterventionOptions {
  // Places (see microscope/intervention_text.h), some with a value or edges behind them.
  std::vector<std::string> ablate;
  std::vector<std::string> mean;
  std::vector<std::string> scale;
  std::vector<std::string> add;
  std::vector<std::string> steer;
  std::vector<std::string> replace;
  std::vector<std::string> freeze;
  std::vector<std::string> cut;
  // Texts that they take values of; empty: the text that is read.
  std::string mean_text;
  std::string steer_to;
  std::string steer_from;
  std::string replace_text;
  std::string freeze_text;
  bool renormalise = false;

  bool any() const;
  // "ablate L2H3, cut L1H0:7>3", as captions and documents say it; empty for none.
  std::string summary() const;
};

void add_intervention_options(CLI::App& command, InterventionOptions& options);

// What they ask for, first changing positions from `first_position` on; null when they ask for
// nothing. Throws what EditedModel throws, and Error{invalid_argument} for
// options that lack something.
std::unique_ptr<Interventions> make_interventions(const InterventionOptions& options,
                                                  const LoadedModel& model,
                                                  std::span<const std::int32_t> tokens,
                                                  std::int64_t first_position = 0);

}  // namespace heed::cli
