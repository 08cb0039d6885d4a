#include "train/group_checks.h"

#include <fmt/format.h>

#include <cmath>

#include "comm/group.h"
#include "heed/version.h"
#include "train/absolute_path.h"

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
                        group.is_first());
    }
  }
}

void fail_diverged(Group& group, double own, const std::string& message) {
  if (group.is_alone()) throw Error(ErrorCode::diverged, message);
  const std::vector<double> all = gather(group, own);
  const auto first = std::ranges::find_if(all, [](double value) { return !std::isfinite(value); });
  const std::string where =
      first == all.end() ? "" : fmt::format(" (first in process {})", first - all.begin());
  throw AgreedError(ErrorCode::diverged, message + where, group.is_first());
}

}  // namespace heed
