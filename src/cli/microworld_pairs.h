// Sentences of the microworld in two languages, and what a translator has learned of them.
#pragma once

#include <cstdint>
#include <string>

namespace heed::cli {

// heed microworld --pairs
struct PairWriting {
  std::int64_t pairs = 10;
  std::int64_t first = 0;
  std::int64_t valid = 0;  // pairs after those, as files of their own
  std::uint64_t seed = 1;
  std::string out;  // a directory; empty: standard output
  bool json = false;
};

void write_pairs(const PairWriting& options);

// heed microworld check --pairs: a translator against the truth of the pairs.
struct PairChecking {
  std::string model;
  std::int64_t pairs = 1000;
  std::int64_t cut_pairs = 200;
  std::uint64_t seed = 2;
  bool json = false;
};

void check_translator(const PairChecking& options);

}  // namespace heed::cli
