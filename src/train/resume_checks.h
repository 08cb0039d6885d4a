// What a run that is resumed must share with its beginning.
#pragma once

#include <optional>
#include <string>

#include "train/run_directory.h"
#include "train/trainer.h"

namespace heed {

// Throws Error{conflict} naming the settings that differ.
void require_same_settings(const RunRecord& before, const TrainSettings& now,
                           const RunDirectory& directory);

// Throws Error{conflict} where the training or validation tokens are others.
void require_same_text(const RunRecord& before, const RunRecord& now, const TrainRequest& request,
                       const RunDirectory& directory);

// The same error, of a text that can no longer be read as the run read it; `why` says what is
// wrong.
[[noreturn]] void fail_on_other_text(const TrainRequest& request, const RunDirectory& directory,
                                     const std::string& why);

// Throws Error{conflict} where a run has done more steps than its settings now ask for.
void require_steps_left(const RunPosition& position, const TrainSettings& settings);

// What the user should know where the number of threads is another: the order of sums depends on
// it.
std::optional<std::string> thread_notice(const RunRecord& before);

}  // namespace heed
