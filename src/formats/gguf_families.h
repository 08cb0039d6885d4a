// Families of models in GGUF files: the keys of their metadata beside the fields of config.json,
// and how their tensors are named and laid out. Names of tensors are by role and the same in all
// families: "blk.3.attn_q.weight".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/format.h"

namespace heed {

enum class GgufKind : std::uint8_t { integer, number, boolean };

// A key, after "ARCHITECTURE.", and the field of config.json that says the same.
struct GgufField {
  std::string_view key;
  const char* config;
  GgufKind kind = GgufKind::integer;
  enum class Presence : std::uint8_t { required, optional } presence = Presence::required;
};

struct GgufFamily {
  std::string_view architecture;              // `general.architecture`
  std::vector<std::string_view> model_types;  // of config.json; the first is what reading gives
  std::vector<GgufField> fields;
  // Query, key and value are one tensor, one below the other, or three.
  enum class Projections : std::uint8_t { joined, apart } projections = Projections::apart;
  // Rows of query and key in each head: halves that rotate against each other, as in memory, or the
  // two channels of a pair side by side.
  enum class Pairs : std::uint8_t { halves, adjacent } pairs = Pairs::halves;
  // Gate and up are a tensor each, or one below the other in `ffn_up`.
  enum class Gates : std::uint8_t { apart, joined } gates = Gates::apart;

  bool has_field(std::string_view key) const;
};

// Throws Error{unsupported} naming `source` and the architectures that heed reads.
const GgufFamily& gguf_family(std::string_view architecture, std::string_view source);
// Null where GGUF files have no such family that heed knows.
const GgufFamily* find_gguf_family_of(std::string_view model_type);

// What of a model a file holds: of an encoder alone, not the head of a masked language model, which
// the format has no tensors for.
Architecture gguf_architecture(Architecture architecture);

// The format of a family's config.json (formats/format.h), with the tensors of a GGUF file.
Format gguf_format(const GgufFamily& family, const Format& format);

inline constexpr std::string_view gguf_rotary_factors = "rope_freqs.weight";
inline constexpr std::string_view gguf_short_factors = "rope_factors_short.weight";
inline constexpr std::string_view gguf_long_factors = "rope_factors_long.weight";

}  // namespace heed
