// Horizontal bars, an eighth of a column fine.
#pragma once

#include <string>

namespace heed::cli {

// A bar of share · width columns, not padded. A share that is not zero shows at least an eighth.
std::string bar(double share, int width);

}  // namespace heed::cli
