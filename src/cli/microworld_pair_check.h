// heed microworld check --pairs: a translator against the truth of the pairs.
#pragma once

#include <cstdint>
#include <string>

namespace heed::cli {

struct PairChecking {
  std::string model;
  std::int64_t pairs = 1000;
  std::int64_t cut_pairs = 200;
  std::uint64_t seed = 2;
  bool json = false;
};

void check_pair_model(const PairChecking& options);

}  // namespace heed::cli
