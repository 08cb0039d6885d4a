// heed microworld --pairs: sentences in two languages.
#pragma once

#include <cstdint>
#include <string>

namespace heed::cli {

struct PairWriting {
  std::int64_t pairs = 10;
  std::int64_t first = 0;
  std::int64_t valid = 0;  // pairs after those, as files of their own
  std::uint64_t seed = 1;
  std::string out;  // a directory; empty: standard output
  bool json = false;
};

void write_pairs(const PairWriting& options);

}  // namespace heed::cli
