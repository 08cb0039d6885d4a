#include "kernels/instruction_sets.h"

#include <hwy/highway.h>

#include "base/error.h"

namespace heed::kernels {
namespace {

// Highway orders the bits of its targets from best to worst.
std::vector<std::int64_t> available_targets() {
  std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS;
  std::vector<std::int64_t> targets;
  for (; left != 0; left &= left - 1) targets.push_back(left & -left);
  return targets;
}

// Asked once, before use_instruction_set can narrow the answer.
const std::vector<std::int64_t>& all_targets() {
  static const std::vector<std::int64_t> targets = available_targets();
  return targets;
}

}  // namespace

std::vector<std::string> available_instruction_sets() {
  std::vector<std::string> names;
  for (std::int64_t target : all_targets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

std::string current_instruction_set() {
  all_targets();
  return hwy::TargetName(available_targets().front());
}

void use_instruction_set(std::string_view name) {
  std::int64_t wanted = 0;  // no restriction
  for (std::int64_t target : all_targets()) {
    if (name == hwy::TargetName(target)) wanted = target;
  }
  if (wanted == 0 && !name.empty()) {
    std::string names;
    for (const std::string& present : available_instruction_sets()) names += " " + present;
    fail(ErrorCode::invalid_argument, "no instruction set \"{}\" here; there are:{}", name, names);
  }
  hwy::SetSupportedTargetsForTest(wanted);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace heed::kernels
