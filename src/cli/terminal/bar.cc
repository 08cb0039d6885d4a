#include "cli/terminal/bar.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/terminal/text.h"

namespace heed::cli {

std::string bar(double share, int width) {
  constexpr std::array<const char*, 8> parts{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(share > 0)) return {};
  const int eighths = std::max(1, static_cast<int>(std::lround(std::min(share, 1.0) * width * 8)));
  return repeat("█", eighths / 8) + parts[eighths % 8];
}

}  // namespace heed::cli
