// The case list of every kernel, once: run as correctness and gradient tests beside this file and
// as measurements in benchmarks/. Odd sizes on purpose: one row, one column, vector tails, blocks
// that are not full.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/operands.h"

namespace heed::kernels::cases {

// What a case is for: small ones are checked, large ones measured, those of models in use both.
enum class Use { check, measure, both };

inline bool checked(Use use) { return use != Use::measure; }
inline bool measured(Use use) { return use != Use::check; }

struct Attention {
  std::int64_t batch, queries, memory, heads, head_size;
  Mask mask = Mask::causal;
  float dropout = 0.0F;
  Use use = Use::check;
  std::int64_t group = 1;  // query heads of a key head
  std::int64_t window = 0;
  float soft_cap = 0.0F;
  bool biased = false;  // by position, with a table of all distances and more
  std::int64_t query_offset = 0;

  // The distance of the bias table's first number from its end on either side.
  std::int64_t first_distance() const { return 1 - memory - 2; }
  std::int64_t distances() const { return memory + queries + 3; }
  std::int64_t key_heads() const { return heads / group; }
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(head_size)); }
  double pairs() const {  // of a query and a key that it sees
    double one = 0.0;
    for (std::int64_t t = 0; t < queries; ++t) {
      const std::int64_t own = memory - queries + query_offset + t;
      if (window > 0) {
        one += static_cast<double>(std::min(own + 1, memory) - std::max(own + 1 - window, 0L));
        continue;
      }
      const std::int64_t seen = mask == Mask::full ? memory : std::min(own + 1, memory);
      one += static_cast<double>(seen);
    }
    return one * static_cast<double>(batch * heads);
  }
  double operations() const { return 4.0 * static_cast<double>(head_size) * pairs(); }
  std::string name() const {
    return fmt::format("B{}_T{}_S{}_H{}_D{}_{}{}{}{}{}{}{}", batch, queries, memory, heads,
                       head_size, mask == Mask::causal ? "causal" : "full",
                       dropout > 0 ? "_dropout" : "",
                       group > 1 ? fmt::format("_G{}", key_heads()) : "",
                       window > 0 ? fmt::format("_window{}", window) : "",
                       soft_cap > 0 ? fmt::format("_cap{}", soft_cap) : "", biased ? "_bias" : "",
                       query_offset > 0 ? fmt::format("_offset{}", query_offset) : "");
  }
};

inline std::vector<Attention> attention() {
  return {{1, 1, 1, 1, 1},
          {1, 3, 5, 1, 1},
          {2, 5, 5, 2, 3},
          {1, 4, 9, 2, 3, Mask::full},
          {2, 7, 7, 2, 16, Mask::causal, 0.25F},
          {1, 6, 11, 1, 16, Mask::full, 0.1F},
          {1, 1, 700, 2, 32},
          {1, 1, 1300, 1, 64, Mask::causal, 0.2F},
          {2, 3, 77, 2, 80},
          {1, 1, 33, 3, 3, Mask::full},
          {1, 17, 40, 1, 32},
          {2, 64, 64, 4, 32, Mask::causal, 0.1F},
          {1, 63, 65, 1, 64, Mask::full},
          {1, 100, 100, 3, 64},
          {1, 70, 201, 2, 80, Mask::causal, 0.5F},
          {1, 130, 130, 1, 128},
          {1, 129, 64, 1, 40, Mask::full},
          {1, 65, 90, 1, 256},
          {1, 20, 20, 1, 259, Mask::full},
          {2, 530, 541, 1, 20, Mask::causal, 0.1F},  // enough blocks to be copied together
          {2, 512, 600, 1, 16, Mask::full},
          {1, 5, 70, 1, 64},
          {1, 65, 65, 2, 16},
          {2, 63, 63, 1, 24, Mask::causal, 0.2F},
          {1, 200, 200, 1, 96, Mask::full, 0.1F},
          {1, 64, 64, 1, 160},
          {1, 200, 420, 1, 128},
          {1, 63, 63, 1, 256, Mask::full},
          {1, 600, 1300, 3, 64, Mask::causal, 0.1F},
          {1, 513, 530, 1, 80},
          {1, 545, 545, 1, 259, Mask::full},
          {1, 520, 700, 1, 24},  // one head for two threads: its memory is dealt out
          // key heads shared by a group of query heads
          {1, 1, 1, 4, 3, Mask::causal, 0.0F, Use::check, 2},
          {1, 3, 5, 6, 7, Mask::causal, 0.1F, Use::check, 6},
          {2, 1, 700, 8, 32, Mask::causal, 0.0F, Use::check, 4},
          {1, 2, 1300, 6, 80, Mask::full, 0.2F, Use::check, 3},
          {1, 1, 300, 5, 20, Mask::causal, 0.0F, Use::check, 5},
          {2, 70, 90, 6, 24, Mask::causal, 0.0F, Use::check, 2},
          {1, 100, 100, 4, 64, Mask::full, 0.2F, Use::check, 4},
          {2, 530, 541, 4, 20, Mask::causal, 0.1F, Use::check, 2},
          {1, 600, 700, 3, 64, Mask::causal, 0.0F, Use::check, 3},
          // windows: of one position, in a block, in blocks, over all
          {1, 9, 9, 1, 3, Mask::causal, 0.0F, Use::check, 1, 1},
          {2, 3, 50, 2, 16, Mask::causal, 0.0F, Use::check, 1, 7},
          {1, 1, 2000, 4, 32, Mask::causal, 0.1F, Use::check, 2, 1100},
          {1, 40, 60, 2, 24, Mask::causal, 0.1F, Use::check, 1, 5},
          {1, 200, 200, 2, 32, Mask::causal, 0.0F, Use::check, 2, 1},
          {1, 200, 300, 2, 40, Mask::causal, 0.3F, Use::check, 1, 33},
          {1, 260, 330, 4, 16, Mask::causal, 0.0F, Use::check, 4, 64},
          {1, 300, 300, 1, 64, Mask::causal, 0.0F, Use::check, 1, 100},
          {1, 600, 700, 2, 20, Mask::causal, 0.1F, Use::check, 1, 129},
          {1, 520, 900, 1, 259, Mask::causal, 0.0F, Use::check, 1, 200},
          {1, 70, 90, 2, 32, Mask::causal, 0.0F, Use::check, 1, 1000},
          // capped scores
          {1, 2, 30, 2, 16, Mask::causal, 0.0F, Use::check, 1, 0, 1.5F},
          {1, 5, 9, 4, 8, Mask::full, 0.1F, Use::check, 2, 0, 0.5F},
          {1, 100, 130, 2, 64, Mask::causal, 0.2F, Use::check, 1, 0, 2.0F},
          {1, 530, 530, 2, 36, Mask::causal, 0.0F, Use::check, 2, 150, 50.0F},
          {1, 129, 64, 1, 40, Mask::full, 0.0F, Use::check, 1, 0, 1.0F},
          // one sequence attends to another
          {1, 1, 1, 2, 8, Mask::full},
          {1, 40, 1, 2, 16, Mask::full},
          {2, 130, 1, 1, 20, Mask::full},
          {2, 13, 29, 4, 32, Mask::full},
          {2, 29, 13, 4, 32, Mask::full, 0.1F},
          {1, 3, 2, 2, 24, Mask::full},
          {2, 4, 3, 2, 40, Mask::full},
          {1, 2, 40, 8, 64, Mask::full},
          {3, 1, 17, 8, 32, Mask::full, 0.0F, Use::check, 4},
          {1, 33, 100, 2, 64, Mask::full, 0.3F},
          {1, 90, 31, 4, 48, Mask::full, 0.0F, Use::check, 2},
          {1, 600, 37, 2, 64, Mask::full},
          {1, 37, 600, 2, 64, Mask::full, 0.1F},
          {1, 520, 1, 1, 32, Mask::full},
          {1, 530, 700, 3, 40, Mask::full, 0.0F, Use::check, 3},
          // biased by position
          {1, 1, 1, 2, 3, Mask::causal, 0.0F, Use::check, 1, 0, 0.0F, true},
          {2, 1, 700, 4, 32, Mask::causal, 0.0F, Use::check, 2, 0, 0.0F, true},
          {1, 3, 1100, 2, 20, Mask::causal, 0.1F, Use::check, 1, 600, 0.0F, true},
          {2, 2, 9, 2, 16, Mask::full, 0.0F, Use::check, 1, 0, 0.0F, true},
          {1, 5, 5, 2, 8, Mask::full, 0.2F, Use::check, 1, 0, 0.0F, true},
          {2, 9, 14, 4, 8, Mask::causal, 0.1F, Use::check, 2, 0, 0.0F, true},
          {1, 12, 12, 2, 16, Mask::causal, 0.0F, Use::check, 1, 4, 0.0F, true},
          {1, 64, 64, 3, 64, Mask::full, 0.0F, Use::check, 1, 0, 0.0F, true},
          {2, 130, 130, 2, 64, Mask::causal, 0.1F, Use::check, 1, 0, 0.0F, true},
          {1, 200, 330, 4, 40, Mask::causal, 0.0F, Use::check, 4, 150, 0.0F, true},
          {1, 75, 141, 2, 24, Mask::full, 0.1F, Use::check, 1, 0, 0.0F, true},
          {2, 530, 541, 2, 20, Mask::causal, 0.0F, Use::check, 1, 0, 0.0F, true},
          {1, 600, 600, 3, 64, Mask::full, 0.0F, Use::check, 3, 0, 0.0F, true},
          // a part of the memory: all of it in sight, some of it, a band of it
          {1, 5, 5, 2, 16, Mask::causal, 0.0F, Use::check, 1, 0, 0.0F, false, 5},
          {1, 2, 70, 2, 24, Mask::causal, 0.2F, Use::check, 1, 90, 0.0F, false, 40},
          {2, 64, 64, 4, 32, Mask::causal, 0.1F, Use::check, 2, 0, 0.0F, false, 64},
          {1, 200, 70, 2, 40, Mask::causal, 0.0F, Use::check, 1, 0, 0.0F, false, 130},
          {1, 130, 130, 2, 64, Mask::causal, 0.3F, Use::check, 1, 0, 2.0F, false, 33},
          {1, 150, 150, 2, 32, Mask::causal, 0.1F, Use::check, 2, 260, 0.0F, false, 110},
          {1, 600, 600, 1, 64, Mask::causal, 0.0F, Use::check, 1, 0, 0.0F, false, 1800},
          {1, 530, 600, 2, 20, Mask::causal, 0.1F, Use::check, 1, 700, 0.0F, false, 100},
          {12, 64, 64, 4, 32, Mask::causal, 0.0F, Use::both},
          {1, 13, 13, 4, 32, Mask::causal, 0.0F, Use::both},  // sentences
          {1, 13, 14, 4, 64, Mask::full, 0.0F, Use::both},
          {1, 33, 30, 8, 64, Mask::full, 0.0F, Use::both},
          {160, 1, 14, 4, 64, Mask::full, 0.0F, Use::both},
          {16, 256, 256, 6, 32, Mask::causal, 0.0F, Use::measure},
          {16, 256, 256, 6, 32, Mask::causal, 0.2F, Use::measure},
          {1, 1024, 1024, 12, 64, Mask::causal, 0.0F, Use::measure},
          {1, 1024, 1024, 12, 64, Mask::full, 0.0F, Use::measure},
          {1, 4096, 4096, 12, 64, Mask::causal, 0.0F, Use::measure},
          {1, 1, 1024, 12, 64, Mask::causal, 0.0F, Use::measure},
          {1, 1, 16384, 12, 64, Mask::causal, 0.0F, Use::measure},
          {1, 1, 4096, 32, 128, Mask::causal, 0.0F, Use::measure},
          {1, 1, 4096, 32, 128, Mask::causal, 0.0F, Use::measure, 4},
          {1, 512, 512, 32, 128, Mask::causal, 0.0F, Use::measure},
          {1, 512, 512, 32, 128, Mask::causal, 0.0F, Use::measure, 4},
          {1, 2048, 2048, 8, 64, Mask::causal, 0.0F, Use::measure},
          {1, 2048, 2048, 8, 64, Mask::causal, 0.0F, Use::measure, 1, 128},
          {1, 2048, 2048, 8, 64, Mask::causal, 0.0F, Use::measure, 1, 0, 50.0F},
          {1, 2048, 2048, 8, 64, Mask::causal, 0.0F, Use::measure, 1, 0, 0.0F, true}};
}

struct Linear {
  std::int64_t rows, inputs, outputs;
  bool bias = true;
  Use use = Use::check;

  double operations() const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(inputs) *
           static_cast<double>(outputs);
  }
  std::string name() const {
    return fmt::format("N{}_I{}_O{}{}", rows, inputs, outputs, bias ? "_bias" : "");
  }
};

inline std::vector<Linear> linear() {
  return {{1, 1, 1},
          {1, 7, 5},
          {1, 100, 33, false},
          {2, 19, 6},
          {3, 64, 17},
          {4, 48, 48, false},
          {5, 3, 9},
          {15, 70, 300},
          {33, 31, 65, false},
          {100, 64, 40},
          {900, 333, 201},  // several blocks each way, and what is left of them
          {768, 128, 128, true, Use::both},
          {768, 128, 384, false, Use::both},
          {768, 128, 512, true, Use::both},
          {768, 512, 128, true, Use::both},
          {768, 128, 65, false, Use::both},
          {4096, 192, 576, true, Use::measure},
          {4096, 192, 768, true, Use::measure},
          {4096, 768, 192, true, Use::measure},
          {1024, 768, 2304, true, Use::measure},
          {1024, 768, 3072, true, Use::measure},
          {1024, 3072, 768, true, Use::measure},
          {1024, 768, 50257, false, Use::measure},
          {1, 768, 3072, true, Use::measure},
          {1, 768, 50257, false, Use::measure},
          {4, 768, 50257, false, Use::measure},
          {8, 768, 50257, false, Use::measure}};
}

// Rows and columns, for everything that works row by row or element by element.
struct Matrix {
  std::int64_t rows, columns;
  Use use = Use::check;

  double elements() const { return static_cast<double>(rows) * static_cast<double>(columns); }
  std::string name() const { return fmt::format("N{}_C{}", rows, columns); }
};

inline std::vector<Matrix> matrices() {
  return {{1, 1},
          {1, 2},
          {3, 7},
          {5, 16},
          {2, 33},
          {9, 65},
          {40, 100},
          {768, 128, Use::both},
          {768, 512, Use::both},
          {1024, 768, Use::measure},
          {1024, 3072, Use::measure}};
}

// Heads (N, H, D) of which the first R channels rotate.
struct Heads {
  std::int64_t rows, heads, head_size, rotated;
  Use use = Use::check;

  double elements() const { return static_cast<double>(rows * heads * head_size); }
  std::string name() const {
    return fmt::format("N{}_H{}_D{}_R{}", rows, heads, head_size, rotated);
  }
};

inline std::vector<Heads> heads() {
  return {{1, 1, 2, 2},    {3, 2, 7, 4},
          {5, 3, 16, 16},  {2, 4, 33, 32},
          {9, 2, 64, 16},  {4, 1, 80, 40},
          {40, 3, 96, 96}, {70, 2, 128, 128},
          {1, 8, 259, 66}, {1024, 32, 128, 128, Use::measure}};
}

struct Logits {
  std::int64_t rows, vocabulary;
  Use use = Use::check;

  double elements() const { return static_cast<double>(rows) * static_cast<double>(vocabulary); }
  std::string name() const { return fmt::format("N{}_V{}", rows, vocabulary); }
};

inline std::vector<Logits> logits() {
  return {{1, 1},    {1, 2},
          {4, 3},    {7, 17},
          {6, 64},   {768, 65, Use::both},
          {3, 9001}, {1024, 50257, Use::measure}};
}

struct Embedding {
  std::int64_t batch, positions, vocabulary, channels;
  std::int64_t first_position = 0;
  bool with_positions = true;
  Use use = Use::check;

  std::string name() const {
    return fmt::format("B{}_T{}_V{}_C{}{}", batch, positions, vocabulary, channels,
                       with_positions ? "" : "_no_positions");
  }
};

inline std::vector<Embedding> embedding() {
  return {{1, 1, 1, 1},
          {2, 3, 4, 5, 2},
          {3, 7, 5, 16, 0, false},
          {2, 9, 20, 33, 1},
          {12, 64, 65, 128, 0, true, Use::both},
          {4, 1024, 50257, 768, 0, true, Use::measure}};
}

struct Arena {
  std::int64_t size;
  Use use = Use::check;
  std::string name() const { return fmt::format("P{}", size); }
};

inline std::vector<Arena> arenas() {
  return {{1}, {15}, {16}, {1000}, {70001}, {810368, Use::both}, {124439808, Use::measure}};
}

}  // namespace heed::kernels::cases
