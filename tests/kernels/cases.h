// The case list of every kernel, once: run as correctness and gradient tests beside this file and
// as measurements in benchmarks/. Odd sizes on purpose: one row, one column, vector tails, blocks
// that are not full.
#pragma once

#include <fmt/format.h>

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

  float scale() const { return 1.0F / std::sqrt(static_cast<float>(head_size)); }
  double pairs() const {  // of a query and a key that it sees
    const auto t = static_cast<double>(queries), s = static_cast<double>(memory);
    const double one = mask == Mask::full ? t * s : t * (s - t) + t * (t + 1) / 2;
    return one * static_cast<double>(batch * heads);
  }
  double operations() const { return 4.0 * static_cast<double>(head_size) * pairs(); }
  std::string name() const {
    return fmt::format("B{}_T{}_S{}_H{}_D{}_{}{}", batch, queries, memory, heads, head_size,
                       mask == Mask::causal ? "causal" : "full", dropout > 0 ? "_dropout" : "");
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
          {12, 64, 64, 4, 32, Mask::causal, 0.0F, Use::both},
          {16, 256, 256, 6, 32, Mask::causal, 0.0F, Use::measure},
          {16, 256, 256, 6, 32, Mask::causal, 0.2F, Use::measure},
          {1, 1024, 1024, 12, 64, Mask::causal, 0.0F, Use::measure},
          {1, 1024, 1024, 12, 64, Mask::full, 0.0F, Use::measure},
          {1, 4096, 4096, 12, 64, Mask::causal, 0.0F, Use::measure},
          {1, 1, 1024, 12, 64, Mask::causal, 0.0F, Use::measure},
          {1, 1, 16384, 12, 64, Mask::causal, 0.0F, Use::measure}};
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
