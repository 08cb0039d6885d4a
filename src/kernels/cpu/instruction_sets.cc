#include "kernels/instruction_sets.h"

// Highway does not compile this target by default; integer weights use it.
#define HWY_WANT_AVX3_DL
#include <hwy/highway.h>

#include "base/error.h"
#include "kernels/cpu/peak_loops.h"
#include "kernels/cpu/product_kernels.h"

#if HWY_ARCH_X86_64
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace heed::kernels {
namespace {

// Instructions for products of bf16, beside the vector instructions of Highway's targets.
enum class Bf16Unit { none, avx512, amx };

constexpr std::string_view unit_names[] = {"", "AVX512_BF16", "AMX_BF16"};

// Highway orders the bits of its targets from best to worst.
std::vector<std::int64_t> available_targets() {
  std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS;
  std::vector<std::int64_t> targets;
  for (; left != 0; left &= left - 1) targets.push_back(left & -left);
  return targets;
}

// Detected once, before use_instruction_set() can restrict it.
const std::vector<std::int64_t>& all_targets() {
  static const std::vector<std::int64_t> targets = available_targets();
  return targets;
}

#if HWY_ARCH_X86_64
// Linux enables the 8 KiB of tile registers on request of a process.
bool may_use_tiles() {
  constexpr long request_permission = 0x1023, tile_data = 18;
  return ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

Bf16Unit detected_unit() {
  if (all_targets().front() > HWY_AVX3) return Bf16Unit::none;
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool pairs = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 5 & 1) != 0;
  if (!pairs) return Bf16Unit::none;
  __get_cpuid_count(7, 0, &a, &b, &c, &d);
  const bool tiles = (d >> 22 & 1) != 0 && (d >> 24 & 1) != 0;
  return tiles && may_use_tiles() ? Bf16Unit::amx : Bf16Unit::avx512;
}
#else
Bf16Unit detected_unit() { return Bf16Unit::none; }
#endif

Bf16Unit present_unit() {
  static const Bf16Unit unit = detected_unit();
  return unit;
}

// Dot products that are slower than multiply-adds of f32 are used on request alone: weights in bf16
// are widened instead, which also leaves the other operand as it is.
Bf16Unit best_unit() {
  static const Bf16Unit unit = present_unit() == Bf16Unit::avx512 && !dot_products_are_faster()
                                   ? Bf16Unit::none
                                   : present_unit();
  return unit;
}

Bf16Unit& unit_in_use() {
  static Bf16Unit unit = best_unit();
  return unit;
}

}  // namespace

std::vector<std::string> available_instruction_sets() {
  std::vector<std::string> names;
  for (int unit = static_cast<int>(present_unit()); unit > 0; --unit) {
    names.emplace_back(unit_names[unit]);
  }
  for (std::int64_t target : all_targets()) names.emplace_back(hwy::TargetName(target));
  if (best_unit() != present_unit()) std::swap(names[0], names[1]);
  return names;
}

std::string current_instruction_set() {
  all_targets();
  if (unit_in_use() != Bf16Unit::none) {
    return std::string(unit_names[static_cast<int>(unit_in_use())]);
  }
  return hwy::TargetName(available_targets().front());
}

void use_instruction_set(std::string_view name) {
  std::int64_t wanted = 0;  // no restriction
  Bf16Unit unit = name.empty() ? best_unit() : Bf16Unit::none;
  for (std::int64_t target : all_targets()) {
    // with all that are worse: a kernel that is not compiled for the target takes the next
    if (wanted != 0 || name == hwy::TargetName(target)) wanted |= target;
  }
  for (int i = 1; i <= static_cast<int>(present_unit()); ++i) {
    if (name == unit_names[i]) unit = static_cast<Bf16Unit>(i);
  }
  if (wanted == 0 && unit == Bf16Unit::none && !name.empty()) {
    std::string names;
    for (const std::string& present : available_instruction_sets()) names += " " + present;
    fail(ErrorCode::invalid_argument, "no instruction set \"{}\" here; there are:{}", name, names);
  }
  unit_in_use() = unit;
  hwy::SetSupportedTargetsForTest(wanted);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

bool has_tile_products() { return unit_in_use() == Bf16Unit::amx; }

bool has_bf16_products() { return unit_in_use() != Bf16Unit::none; }

ProductKernels product_kernels(Precision precision) {
  if (precision == Precision::f32) {
    return unit_in_use() == Bf16Unit::amx ? amx_f32_product_kernels() : f32_product_kernels();
  }
  switch (unit_in_use()) {
    case Bf16Unit::amx: return amx_bf16_product_kernels();
    case Bf16Unit::avx512: return avx512_bf16_product_kernels();
    case Bf16Unit::none: break;
  }
  return rounded_product_kernels();
}

}  // namespace heed::kernels
