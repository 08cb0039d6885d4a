#include "kernels/instruction_sets.h"

// Highway does not compile this target by default; integer weights use it.
#define HWY_WANT_AVX3_DL
#include <hwy/highway.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/neon_instructions.h"
#include "kernels/cpu/product_kernels.h"

#if HWY_ARCH_X86_64
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif HWY_ARCH_ARM_A64
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace heed::kernels {
namespace {

// Instructions for products, beside the vector instructions of Highway's targets. AVX_VNNI and
// NEON_DOT are dot products of bytes, which NEON_BF16 includes. AVX_VNNI goes with AVX2: AVX-512
// has such instructions of its own.
enum class Unit { none, avx_vnni, avx512_bf16, amx_bf16, neon_dot, neon_bf16 };

constexpr std::string_view unit_names[] = {"",         "AVX_VNNI", "AVX512_BF16",
                                           "AMX_BF16", "NEON_DOT", "NEON_BF16"};

std::string name_of(Unit unit) { return std::string(unit_names[static_cast<int>(unit)]); }

// Highway orders the bits of its targets from best to worst.
std::vector<std::int64_t> available_targets() {
  // A build for one target needs a machine that has it. Highway 1.0 would ask whether a machine
  // with NEON has AES too, which no kernel uses.
  if constexpr ((HWY_TARGETS & (HWY_TARGETS - 1)) == 0) return {HWY_TARGETS};
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

bool detect_avx_vnni() {
  if (std::ranges::find(all_targets(), HWY_AVX2) == all_targets().end()) return false;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}

// With the best target, from best to worst.
std::vector<Unit> detected_units() {
  if (all_targets().front() == HWY_AVX2 && detect_avx_vnni()) return {Unit::avx_vnni};
  if (all_targets().front() > HWY_AVX3) return {};
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool pairs = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 5 & 1) != 0;
  if (!pairs) return {};
  __get_cpuid_count(7, 0, &a, &b, &c, &d);
  const bool tiles = (d >> 22 & 1) != 0 && (d >> 24 & 1) != 0;
  if (tiles && may_use_tiles()) return {Unit::amx_bf16, Unit::avx512_bf16};
  return {Unit::avx512_bf16};
}
#elif HEED_NEON_EXTENSIONS
bool detect_avx_vnni() { return false; }

std::vector<Unit> detected_units() {
  if ((::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) == 0) return {};
  if ((::getauxval(AT_HWCAP2) & HWCAP2_BF16) == 0) return {Unit::neon_dot};
  return {Unit::neon_bf16, Unit::neon_dot};
}
#else
bool detect_avx_vnni() { return false; }

std::vector<Unit> detected_units() { return {}; }
#endif

const std::vector<Unit>& present_units() {
  static const std::vector<Unit> units = detected_units();
  return units;
}

// Whether dot products of bf16 pairs do more operations a second than multiply-adds of f32, by the
// maker of the processor: timing them would let a busy machine decide on the bits of a result. On
// Intel's they do half as many (measured on a Xeon), on AMD's (Zen 4, Zen 5) twice as many.
#if HWY_ARCH_X86_64
bool dot_products_are_faster() {
  unsigned most = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0, &most, &b, &c, &d) == 0 || b != signature_INTEL_ebx;
}
#else
bool dot_products_are_faster() { return true; }
#endif

// Dot products of bf16 that are slower than multiply-adds of f32 are used on request alone: weights
// in bf16 are widened instead, which also leaves the other operand as it is.
Unit chosen_unit() {
  const std::vector<Unit>& units = present_units();
  if (units.empty()) return Unit::none;
  const bool adds_pairs = units[0] == Unit::avx512_bf16 || units[0] == Unit::neon_bf16;
  if (!adds_pairs || dot_products_are_faster()) return units[0];
  return units.size() > 1 ? units[1] : Unit::none;
}

Unit best_unit() {
  static const Unit unit = chosen_unit();
  return unit;
}

Unit& unit_in_use() {
  static Unit unit = best_unit();
  return unit;
}

}  // namespace

std::vector<std::string> available_instruction_sets() {
  std::vector<std::string> names;
  const std::vector<Unit>& units = present_units();
  const bool has_vnni = detect_avx_vnni();
  for (const Unit unit : units) {
    if (unit != Unit::avx_vnni) names.push_back(name_of(unit));
  }
  for (std::int64_t target : all_targets()) {
    if (target == HWY_AVX2 && has_vnni) names.push_back(name_of(Unit::avx_vnni));
    names.emplace_back(hwy::TargetName(target));
  }
  if (!units.empty() && best_unit() != units[0]) std::swap(names[0], names[1]);
  return names;
}

std::string current_instruction_set() {
  all_targets();
  if (unit_in_use() != Unit::none) return name_of(unit_in_use());
  return hwy::TargetName(available_targets().front());
}

void use_instruction_set(std::string_view name) {
  std::int64_t wanted = 0;  // no restriction
  Unit unit = name.empty() ? best_unit() : Unit::none;
  const bool is_vnni = name == name_of(Unit::avx_vnni) && detect_avx_vnni();
  if (is_vnni) unit = Unit::avx_vnni;
  for (std::int64_t target : all_targets()) {
    // with all that are worse: a kernel that is not compiled for the target takes the next
    const bool is_named = name == hwy::TargetName(target) || (is_vnni && target == HWY_AVX2);
    if (wanted != 0 || is_named) wanted |= target;
  }
  for (const Unit present : present_units()) {
    if (name == name_of(present)) unit = present;
  }
  if (wanted == 0 && unit == Unit::none && !name.empty()) {
    std::string names;
    for (const std::string& present : available_instruction_sets()) names += " " + present;
    fail(ErrorCode::invalid_argument, "no instruction set \"{}\" here; there are:{}", name, names);
  }
  unit_in_use() = unit;
  hwy::SetSupportedTargetsForTest(wanted);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

bool has_tile_products() { return unit_in_use() == Unit::amx_bf16; }

bool has_bf16_products() {
  const Unit unit = unit_in_use();
  return unit == Unit::avx512_bf16 || unit == Unit::amx_bf16 || unit == Unit::neon_bf16;
}

bool has_avx_vnni() { return unit_in_use() == Unit::avx_vnni; }

bool has_neon_dot_products() {
  return unit_in_use() == Unit::neon_dot || unit_in_use() == Unit::neon_bf16;
}

ProductKernels product_kernels(Precision precision) {
  if (precision == Precision::f32) return f32_product_kernels();
  switch (unit_in_use()) {
    case Unit::amx_bf16: return amx_bf16_product_kernels();
    case Unit::avx512_bf16: return avx512_bf16_product_kernels();
    case Unit::neon_bf16: return neon_bf16_product_kernels();
    case Unit::avx_vnni:
    case Unit::neon_dot:
    case Unit::none: break;
  }
  return rounded_product_kernels();
}

}  // namespace heed::kernels
