// A scaling plan as tables.
#pragma once

#include "engine/plan/plan_report.h"

namespace heed::cli {

void print_plan(const PlanReport& report);

}  // namespace heed::cli
