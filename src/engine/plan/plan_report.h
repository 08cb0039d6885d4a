// A scaling plan with all that a reader asks of it, for the command line and the server.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "engine/plan/scaling_plan.h"

namespace heed {

struct PlanRequest {
  std::string name;  // of the config
  TrainSettings settings;
  Cluster cluster;
  Distribution distribution;
  TrainingRates rates;
  double tokens = 0;  // to train on
};

struct PlanReport {
  std::string name;
  ScalingPlan plan;
  TrainingRates rates;
  std::optional<std::int64_t> min_nodes;
  TrainingBill bill;
  std::vector<ScalingPlan> sweep;
  std::string limit;  // a sentence: what limits, and what would help
};

// Throws what plan_scaling() throws.
PlanReport make_plan_report(const PlanRequest& request);

OrderedJson plan_report_json(const PlanReport& report);

// The settings of a preset's run, of a JSON file of settings (as `heed train --config` takes), or
// of a shape: a config.json or model directory. Throws Error{not_found} with the names of the
// presets.
TrainSettings planned_settings(const std::string& name_or_path);

// What a config is trained on unless something else is said: the 300 billion tokens of GPT-3 for
// its shapes (Brown et al. 2020, table 2.1), else the steps of its settings.
double usual_tokens(const std::string& name, const TrainSettings& settings);

}  // namespace heed
