#include "engine/plan/gpus.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace heed {
namespace {

constexpr double gb = 1e9, tera = 1e12;

// NVIDIA's data sheets. Links: NVLink where a board has it, else PCI Express.
constexpr Gpu gpus[] = {
    {"a100-40gb", 40 * gb, 312 * tera, 1555 * gb, 300 * gb},
    {"a100", 80 * gb, 312 * tera, 2039 * gb, 300 * gb},
    {"h100", 80 * gb, 989 * tera, 3350 * gb, 450 * gb},
    {"h200", 141 * gb, 989 * tera, 4800 * gb, 450 * gb},
    {"b200", 180 * gb, 2250 * tera, 8000 * gb, 900 * gb},
    {"l4", 24 * gb, 121 * tera, 300 * gb, 32 * gb},
    {"l40s", 48 * gb, 362 * tera, 864 * gb, 32 * gb},
    {"rtx3090", 24 * gb, 71 * tera, 936 * gb, 32 * gb},
    {"rtx4090", 24 * gb, 165 * tera, 1008 * gb, 32 * gb},
};

}  // namespace

std::span<const Gpu> known_gpus() { return gpus; }

const Gpu& find_gpu(std::string_view name) {
  const auto found = std::ranges::find(gpus, name, &Gpu::name);
  if (found == std::end(gpus)) {
    std::string names;
    for (const Gpu& gpu : gpus) names += (names.empty() ? "" : ", ") + std::string(gpu.name);
    fail(ErrorCode::not_found,
         "there is no GPU '{}' to plan for: expected {}, or --flops, --read "
         "and --memory of another",
         name, names);
  }
  return *found;
}

}  // namespace heed
