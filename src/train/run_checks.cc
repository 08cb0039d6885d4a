#include "train/run_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/error.h"
#include "base/threads.h"
#include "heed/version.h"

namespace heed {
namespace {

// Longer values are cut off in messages.
constexpr std::size_t most_letters = 60;

OrderedJson description(const RunDirectory& directory, const RunRecord& record,
                        const RunPosition& position) {
  OrderedJson all = settings_to_json(record.settings);
  all["run directory"] = absolute_text(directory.root());
  all["version of heed"] = version;
  all["text"] = record.data_key;
  all["validation text"] = record.validation_key;
  all["tokenizer"] = record.tokenizer_key;
  all["model to fine-tune"] = record.from;
  all["step"] = position.step;
  return all;
}

std::string shown(const OrderedJson& value) {
  const std::string text = value.dump();
  return text.size() > most_letters ? text.substr(0, most_letters) + "…" : text;
}

// The first difference of process `rank`, in words; empty: none.
std::string difference(const std::string& first, const std::string& other, int rank) {
  if (first == other) return "";
  const OrderedJson one = OrderedJson::parse(first), two = OrderedJson::parse(other);
  for (const auto& [name, value] : one.items()) {
    const OrderedJson now = two.contains(name) ? two[name] : OrderedJson();
    if (value != now) {
      return fmt::format("process {} differs from process 0 in {}: {} instead of {}", rank, name,
                         shown(now), shown(value));
    }
  }
  return fmt::format("process {} differs from process 0", rank);
}

}  // namespace

void require_same_run(Group& group, const RunDirectory& directory, const RunRecord& record,
                      const RunPosition& position) {
  if (group.is_alone()) return;
  const std::vector<std::string> all =
      gather(group, description(directory, record, position).dump());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const std::string found = difference(all.front(), all[rank], static_cast<int>(rank));
    if (!found.empty()) {
      throw AgreedError(ErrorCode::conflict,
                        found + "; all processes of a run are started with the same command",
                        group.is_first() ? Speaker::this_member : Speaker::another);
    }
  }
}

void fail_diverged(Group& group, double own, const std::string& message) {
  if (group.is_alone()) throw Error(ErrorCode::diverged, message);
  const std::vector<double> all = gather(group, own);
  const auto first = std::ranges::find_if(all, [](double value) { return !std::isfinite(value); });
  const std::string where =
      first == all.end() ? "" : fmt::format(" (first in process {})", first - all.begin());
  throw AgreedError(ErrorCode::diverged, message + where,
                    group.is_first() ? Speaker::this_member : Speaker::another);
}

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

TrainObserver& observer_of(const TrainRequest& request, const Group& group) {
  static TrainObserver none;
  return request.observer != nullptr && group.is_first() ? *request.observer : none;
}

Group& group_of(const TrainRequest& request) {
  static const std::unique_ptr<Group> alone = single_group();
  return request.group != nullptr ? *request.group : *alone;
}

TrainRequest without_stop(TrainRequest request) {
  if (!group_of(request).is_alone()) request.stop = nullptr;
  return request;
}

TrainSettings settings_of(const TrainRequest& request) {
  TrainSettings settings = request.settings;
  if (request.start == RunStart::fresh && request.from.empty()) settings.model.end_of_text = -1;
  if (settings.tokenizer != "char" && settings.tokenizer != "bpe") {
    settings.tokenizer = absolute_text(settings.tokenizer);
  }
  return settings;
}

}  // namespace heed
