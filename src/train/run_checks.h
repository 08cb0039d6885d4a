// What a run takes from its request, and checks before its first step: what all processes of a
// group, and a run that is resumed and its beginning, have in common.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "comm/group.h"
#include "train/run_directory.h"
#include "train/trainer.h"

namespace heed {

// Throws AgreedError{conflict} unless every process of the group trains the same: run directory,
// settings, text, tokenizer, position, and this version of heed.
void require_same_run(Group& group, const RunDirectory& directory, const RunRecord& record,
                      const RunPosition& position);

// Throws AgreedError{diverged} with `message` and the first process whose own number is not finite;
// alone Error{diverged}.
[[noreturn]] void fail_diverged(Group& group, double own, const std::string& message);

// Of a run that is resumed, as the next ones. Throws Error{conflict} naming the settings that
// differ.
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

// The group of the request, or one of this process alone.
Group& group_of(const TrainRequest& request);

// The observer of the first process; one that ignores everything for the others.
TrainObserver& observer_of(const TrainRequest& request, const Group& group);

// A process of a group cannot leave a step that the others go on with: it is stopped between them.
TrainRequest without_stop(TrainRequest request);

// With an absolute path of the tokenizer, as runs are resumed from anywhere, and without a preset's
// end-of-text token, as the tokenizer has its own.
TrainSettings settings_of(const TrainRequest& request);

// Paths as runs record them: runs are resumed from anywhere.
inline std::string absolute_text(const std::filesystem::path& path) {
  return path.empty() ? "" : std::filesystem::absolute(path).string();
}

}  // namespace heed
