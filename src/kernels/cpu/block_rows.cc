#include "kernels/cpu/block_rows.h"

#include <utility>

#include "base/error.h"
#include "kernels/cpu/integer_groups.h"

namespace heed::kernels {
namespace {

using Bytes = const std::uint8_t*;

std::uint32_t quad_at(Bytes bytes) {
  std::uint32_t quad;
  std::memcpy(&quad, bytes, sizeof(quad));
  return quad;
}

std::uint16_t half_at(Bytes bytes) { return static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8); }

// Four single bits, from bit `first` of `bits` on, each in its byte.
std::uint32_t spread_bits(std::uint32_t bits, std::size_t first) {
  return (bits >> first & 15U) * 0x00204081U & 0x01010101U;
}

// An output's elements of arrays of a panel's scales.
class OutputScales {
 public:
  OutputScales(std::byte* block, std::int64_t output) : block_(block), output_(output) {}

  void put_half(std::int64_t array, std::uint16_t half) const {
    std::memcpy(block_ + 2 * (array * panel_width + output_), &half, sizeof(half));
  }
  void put_byte(std::int64_t array_begin, int byte) const {
    block_[array_begin + output_] = static_cast<std::byte>(byte);
  }

 private:
  std::byte* block_;
  std::int64_t output_;
};

// A type of blocks: `values` numbers in `bytes`; where its factors in f16 are; the integers of a
// group; its scales, at the beginning of a super-block of a panel.

constexpr std::uint16_t sign_of_half = 0x8000;

// Number j of a group is the low half of byte j, number j + 16 its high half.
GroupQuads halves_of_block(Bytes halves) {
  GroupQuads quads;
  for (std::size_t q = 0; q < 4; ++q) {
    const std::uint32_t both = quad_at(halves + 4 * q);
    quads[q] = bits_of(both, 0, 15, 0);
    quads[q + 4] = bits_of(both, 4, 15, 0);
  }
  return quads;
}

// The same with fifth bits, a bit a number.
GroupQuads fives_of_block(Bytes fifth, Bytes halves) {
  const std::uint32_t bits = quad_at(fifth);
  GroupQuads quads = halves_of_block(halves);
  for (std::size_t q = 0; q < quads.size(); ++q) quads[q] |= spread_bits(bits, 4 * q) << 4;
  return quads;
}

struct ScaledBlock {
  static constexpr std::int64_t values = 32;
  static constexpr int factors[] = {0};
  static void put_scales(Bytes block, const OutputScales& to) { to.put_half(0, half_at(block)); }
};

struct ScaledBlockWithMinimum {
  static constexpr std::int64_t values = 32;
  static constexpr int factors[] = {0, 2};
  // Blocks add their minimum, panels subtract it.
  static void put_scales(Bytes block, const OutputScales& to) {
    to.put_half(0, half_at(block));
    to.put_half(1, half_at(block + 2) ^ sign_of_half);
  }
};

struct Q8_0Block : ScaledBlock {
  using Panel = Q8_0Panel;
  static constexpr std::int64_t bytes = 34;
  static GroupQuads integers(Bytes block, int) {
    GroupQuads quads;
    for (std::size_t q = 0; q < quads.size(); ++q) {
      quads[q] = quad_at(block + 2 + 4 * q) ^ 0x80808080U;
    }
    return quads;
  }
};

struct Q4_0Block : ScaledBlock {
  using Panel = Q4_0Panel;
  static constexpr std::int64_t bytes = 18;
  static GroupQuads integers(Bytes block, int) { return halves_of_block(block + 2); }
};

struct Q4_1Block : ScaledBlockWithMinimum {
  using Panel = Q4_1Panel;
  static constexpr std::int64_t bytes = 20;
  static GroupQuads integers(Bytes block, int) { return halves_of_block(block + 4); }
};

struct Q5_0Block : ScaledBlock {
  using Panel = Q5_0Panel;
  static constexpr std::int64_t bytes = 22;
  static GroupQuads integers(Bytes block, int) { return fives_of_block(block + 2, block + 6); }
};

struct Q5_1Block : ScaledBlockWithMinimum {
  using Panel = Q5_1Panel;
  static constexpr std::int64_t bytes = 24;
  static GroupQuads integers(Bytes block, int) { return fives_of_block(block + 4, block + 8); }
};

// Super-blocks of 256 numbers.

// 32 bytes hold four groups, the first in their lowest bits.
GroupQuads pairs_of_block(Bytes pairs, int group) {
  GroupQuads quads;
  for (std::size_t q = 0; q < quads.size(); ++q) {
    quads[q] = bits_of(quad_at(pairs + group / 4 * 32 + 4 * q), group % 4 * 2, 3, 0);
  }
  return quads;
}

// 32 bytes hold a bit of each of the eight groups.
void add_bits(Bytes bytes, int group, int to, GroupQuads& quads) {
  for (std::size_t q = 0; q < quads.size(); ++q) {
    quads[q] |= bits_of(quad_at(bytes + 4 * q), group, 1, to);
  }
}

// 32 bytes hold two groups, the first in their low halves.
GroupQuads halves_of_groups(Bytes halves, int group) {
  GroupQuads quads;
  for (std::size_t q = 0; q < quads.size(); ++q) {
    quads[q] = bits_of(quad_at(halves + group / 2 * 32 + 4 * q), group % 2 * 4, 15, 0);
  }
  return quads;
}

struct Q2KBlock {
  using Panel = Q2KPanel;
  static constexpr std::int64_t values = 256, bytes = 84;
  static constexpr int factors[] = {80, 82};
  static GroupQuads integers(Bytes block, int group) { return pairs_of_block(block + 16, group); }
  static void put_scales(Bytes block, const OutputScales& to) {
    to.put_half(0, half_at(block + 80));
    to.put_half(1, half_at(block + 82));
    for (int half = 0; half < 16; ++half) {
      to.put_byte(Panel::Scales::integers(0) + half * panel_width, block[half]);
    }
  }
};

struct Q3KBlock {
  using Panel = Q3KPanel;
  static constexpr std::int64_t values = 256, bytes = 110;
  static constexpr int factors[] = {108};
  static GroupQuads integers(Bytes block, int group) {
    GroupQuads quads = pairs_of_block(block + 32, group);
    add_bits(block, group, 2, quads);
    return quads;
  }
  // Scales of six bits: the low halves, then the pairs above them.
  static void put_scales(Bytes block, const OutputScales& to) {
    to.put_half(0, half_at(block + 108));
    const Bytes scales = block + 96;
    for (int half = 0; half < 16; ++half) {
      const int low = half < 8 ? scales[half] & 15 : scales[half - 8] >> 4;
      const int high = scales[8 + half % 4] >> (half / 4 * 2) & 3;
      to.put_byte(Panel::Scales::integers(0) + half * panel_width, (low | high << 4) - 32);
    }
  }
};

// Scales and minima of six bits, packed into 12 bytes.
template <class Scales>
void put_six_bit_scales(Bytes block, const OutputScales& to) {
  to.put_half(0, half_at(block));
  to.put_half(1, half_at(block + 2));
  const Bytes packed = block + 4;
  for (int group = 0; group < 8; ++group) {
    int scale = packed[group] & 63, minimum = packed[group + 4] & 63;
    if (group >= 4) {
      scale = (packed[group + 4] & 15) | packed[group - 4] >> 6 << 4;
      minimum = packed[group + 4] >> 4 | packed[group] >> 6 << 4;
    }
    to.put_byte(Scales::integers(group), scale);
    to.put_byte(Scales::integers(group) + panel_width, minimum);
  }
}

struct Q4KBlock {
  using Panel = Q4KPanel;
  static constexpr std::int64_t values = 256, bytes = 144;
  static constexpr int factors[] = {0, 2};
  static GroupQuads integers(Bytes block, int group) { return halves_of_groups(block + 16, group); }
  static void put_scales(Bytes block, const OutputScales& to) {
    put_six_bit_scales<Panel::Scales>(block, to);
  }
};

struct Q5KBlock {
  using Panel = Q5KPanel;
  static constexpr std::int64_t values = 256, bytes = 176;
  static constexpr int factors[] = {0, 2};
  static GroupQuads integers(Bytes block, int group) {
    GroupQuads quads = halves_of_groups(block + 48, group);
    add_bits(block + 16, group, 4, quads);
    return quads;
  }
  static void put_scales(Bytes block, const OutputScales& to) {
    put_six_bit_scales<Panel::Scales>(block, to);
  }
};

// Each half of the block has 64 bytes of low halves and 32 of pairs.
struct Q6KBlock {
  using Panel = Q6KPanel;
  static constexpr std::int64_t values = 256, bytes = 210;
  static constexpr int factors[] = {208};
  static GroupQuads integers(Bytes block, int group) {
    GroupQuads quads;
    const int side = group / 4, quarter = group % 4;
    const Bytes low = block + side * 64 + quarter % 2 * 32, high = block + 128 + side * 32;
    for (std::size_t q = 0; q < quads.size(); ++q) {
      quads[q] = bits_of(quad_at(low + 4 * q), quarter / 2 * 4, 15, 0) |
                 bits_of(quad_at(high + 4 * q), quarter * 2, 3, 4);
    }
    return quads;
  }
  static void put_scales(Bytes block, const OutputScales& to) {
    to.put_half(0, half_at(block + 208));
    for (int half = 0; half < 16; ++half) {
      to.put_byte(Panel::Scales::integers(0) + half * panel_width, block[192 + half]);
    }
  }
};

template <class Body>
decltype(auto) with_block(WeightFormat format, Body&& body) {
  using enum WeightFormat;
  switch (format) {
    case q8_0: return body(Q8_0Block{});
    case q4_0: return body(Q4_0Block{});
    case q4_1: return body(Q4_1Block{});
    case q5_0: return body(Q5_0Block{});
    case q5_1: return body(Q5_1Block{});
    case q2_k: return body(Q2KBlock{});
    case q3_k: return body(Q3KBlock{});
    case q4_k: return body(Q4KBlock{});
    case q5_k: return body(Q5KBlock{});
    case q6_k: return body(Q6KBlock{});
    case f32:
    case bf16:
    case int8:
    case int4: break;
  }
  fail(ErrorCode::invalid_argument, "weights in {} are not blocks", weight_format_name(format));
}

template <class Block>
void write_row(Bytes row, std::int64_t output, const PanelShape& shape, const NewPanel& to) {
  using Panel = typename Block::Panel;
  constexpr std::int64_t group = PreparedWeight::group;
  auto* integers = reinterpret_cast<std::uint8_t*>(to.panel) + 4 * output;
  std::byte* scales = to.scales;
  for (std::int64_t first = 0; first < shape.inputs; first += Block::values) {
    for (int g = 0; g < Block::values / group; ++g, integers += Panel::group_bytes) {
      place_integers<Panel>(Block::integers(row, g), integers);
    }
    Block::put_scales(row, {scales, output});
    row += Block::bytes;
    scales += Panel::Scales::bytes;
  }
}

}  // namespace

BlockSize block_size(WeightFormat format) {
  return with_block(format, []<class Block>(Block) {
    return BlockSize{.values = Block::values, .bytes = Block::bytes};
  });
}

bool has_finite_scales(WeightFormat format, std::span<const std::byte> blocks) {
  return with_block(format, [&]<class Block>(Block) {
    constexpr std::uint16_t exponent = 0x7C00;
    const auto* const begin = reinterpret_cast<Bytes>(blocks.data());
    for (Bytes block = begin; block != begin + blocks.size(); block += Block::bytes) {
      for (const int at : Block::factors) {
        if ((half_at(block + at) & exponent) == exponent) return false;
      }
    }
    return true;
  });
}

void write_block_row(WeightFormat format, const std::byte* row, std::int64_t output,
                     const PanelShape& shape, const NewPanel& to) {
  with_block(format, [&]<class Block>(Block) {
    write_row<Block>(reinterpret_cast<Bytes>(row), output, shape, to);
  });
}

}  // namespace heed::kernels
