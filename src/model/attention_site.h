// Where a model attends: in which stack, and to what. A model of one stack has one such site, an
// encoder-decoder three.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/architecture.h"
#include "model/probe.h"

namespace heed {

enum class AttentionKind : std::uint8_t {
  self,   // of a text to itself
  cross,  // of the target to the source
};

struct AttentionSite {
  StackSite stack = StackSite::only;  // of the queries
  AttentionKind kind = AttentionKind::self;

  bool operator==(const AttentionSite&) const = default;
};
inline constexpr AttentionSite only_site{StackSite::only, AttentionKind::self};
inline constexpr AttentionSite encoder_site{StackSite::encoder, AttentionKind::self};
inline constexpr AttentionSite decoder_site{StackSite::decoder, AttentionKind::self};
inline constexpr AttentionSite cross_site{StackSite::decoder, AttentionKind::cross};

// The sites of a model, in the order of a pass.
std::span<const AttentionSite> sites_of(const Architecture& architecture);

// "encoder", "decoder" or "cross"; "self" in a model of one stack.
std::string_view site_name(AttentionSite site);
// A site of the model by its name.
std::optional<AttentionSite> site_named(std::string_view name, const Architecture& architecture);

// The point of the pattern; layer −1 stands for any.
Point pattern_point(AttentionSite site, std::int64_t layer);
// Where a pattern is.
AttentionSite site_of_pattern(const Point& pattern);

// A site's description; Architecture::of(site.stack) is that of its stack.
const AttentionSpecification& attention_of(const Architecture& architecture, AttentionSite site);

}  // namespace heed
