#include "train/resume_checks.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/threads.h"

namespace heed {

void require_same_settings(const RunRecord& before, const TrainSettings& now,
                           const RunDirectory& directory) {
  const auto differences = settings_differences(before.settings, now);
  require(differences.empty(), ErrorCode::conflict,
          "'{}' was started with other settings ({}): resume it without changes, or start a new "
          "run from it with --from '{}'",
          directory.root().string(), fmt::join(differences, "; "), directory.last().string());
}

void require_same_text(const RunRecord& before, const RunRecord& now, const TrainRequest& request,
                       const RunDirectory& directory) {
  if (before.data_key != now.data_key || before.tokenizer_key != now.tokenizer_key) {
    fail_on_other_text(request, directory, "");
  }
  require(before.validation_key.empty() || before.validation_key == now.validation_key,
          ErrorCode::conflict,
          "'{}' was started with other validation text than '{}' gives now: restore it, or start "
          "a new run from it with --from '{}'",
          directory.root().string(),
          request.validation.empty() ? request.data.back().string() : request.validation.string(),
          directory.last().string());
}

void fail_on_other_text(const TrainRequest& request, const RunDirectory& directory,
                        const std::string& why) {
  fail(ErrorCode::conflict,
       "'{}' was started on other text than '{}' holds now{}: restore the data, or start a new run "
       "from it with --from '{}'",
       directory.root().string(), request.data.front().string(),
       why.empty() ? "" : " (" + why + ")", directory.last().string());
}

void require_steps_left(const RunPosition& position, const TrainSettings& settings) {
  require(position.step <= settings.steps, ErrorCode::conflict,
          "the run has done {} steps, more than steps={}: resume it with at least as many",
          position.step, settings.steps);
}

std::optional<std::string> thread_notice(const RunRecord& before) {
  if (before.threads == 0 || before.threads == thread_count()) return std::nullopt;
  return fmt::format(
      "the run began with {} thread{} and is resumed with {}: its numbers will differ "
      "by rounding from those of an uninterrupted run; -t {} avoids that",
      before.threads, before.threads == 1 ? "" : "s", thread_count(), before.threads);
}

}  // namespace heed
