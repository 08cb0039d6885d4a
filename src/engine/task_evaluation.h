// A model's answers to the questions of a task.
#pragma once

#include <string_view>

#include "engine/loaded_model.h"
#include "heed/evaluate.h"
#include "scoring/task.h"

namespace heed {

// As evaluate_task() does, of a file's text that `source` names in messages.
TaskEvaluation evaluate_task(const LoadedModel& model, std::string_view text,
                             std::string_view source, const TaskOptions& options);

}  // namespace heed
