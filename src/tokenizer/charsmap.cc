#include "tokenizer/charsmap.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/json_parts.h"

namespace heed {
namespace {

constexpr std::size_t unit_bytes = sizeof(std::uint32_t);
constexpr std::size_t max_charsmap = 4 << 20;  // published ones have a quarter of a MiB
constexpr std::size_t max_replacement = 64;    // bytes; U+FDFA has the longest of Unicode, 33
// Readers keep the keys that a text begins with in arrays of this size.
constexpr int max_nested_keys = 32;

std::uint32_t read_unit(std::string_view bytes, std::size_t position) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < unit_bytes; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[position + i])) << 8 * i;
  }
  return value;
}

// The length of the extended grapheme cluster that `text`, not empty, begins with.
std::size_t grapheme_size(std::string_view text) {
  Utf8Character last = read_utf8(text, 0);
  std::size_t size = last.length;
  utf8proc_int32_t state = 0;
  while (last.valid && size < text.size()) {
    const Utf8Character next = read_utf8(text, size);
    if (!next.valid ||
        utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.code_point),
                                         static_cast<utf8proc_int32_t>(next.code_point), &state)) {
      break;
    }
    size += next.length;
    last = next;
  }
  return size;
}

class PrecompiledStep : public NormaliserStep {
 public:
  PrecompiledStep(std::string encoded, Charsmap map)
      : encoded_(std::move(encoded)), map_(std::move(map)) {}

  void apply(std::string_view text, ChangedText& result) const override {
    constexpr std::size_t max_whole = 5;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::string_view grapheme = text.substr(begin, grapheme_size(text.substr(begin)));
      begin += grapheme.size();
      if (grapheme.size() <= max_whole && replaces(grapheme, result)) continue;
      for (std::size_t i = 0; i < grapheme.size();) {
        const std::string_view part = grapheme.substr(i, read_utf8(grapheme, i).length);
        if (!replaces(part, result)) result.keep(part);
        i += part.size();
      }
    }
  }

  std::string json() const override {
    return fmt::format(R"({{"type": "Precompiled", "precompiled_charsmap": {}}})",
                       json_quoted(encoded_));
  }

 private:
  bool replaces(std::string_view part, ChangedText& result) const {
    const auto replacement = map_.replacement(part);
    if (!replacement) return false;
    if (*replacement == part) {
      result.keep(part);
    } else {
      result.replace(part.size(), *replacement);
    }
    return true;
  }

  std::string encoded_;
  Charsmap map_;
};

// The six bits of a letter; -1 for any other character.
int six_bits(char letter) {
  if (letter >= 'A' && letter <= 'Z') return letter - 'A';
  if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
  if (letter >= '0' && letter <= '9') return letter - '0' + 52;
  if (letter == '+') return 62;
  return letter == '/' ? 63 : -1;
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, std::string_view source) {
  require(bytes.size() >= unit_bytes && bytes.size() <= max_charsmap, ErrorCode::corrupt_data,
          "{}: the precompiled charsmap has {} bytes; expected {} to {}", source, bytes.size(),
          unit_bytes, max_charsmap);
  const std::size_t array_bytes = read_unit(bytes, 0);
  const std::size_t most = bytes.size() - unit_bytes;
  require(array_bytes > 0 && array_bytes <= most && array_bytes % unit_bytes == 0,
          ErrorCode::corrupt_data,
          "{}: the array of the precompiled charsmap has {} bytes; expected a multiple of {} up to "
          "{}",
          source, array_bytes, unit_bytes, most);
  for (std::size_t i = unit_bytes; i < unit_bytes + array_bytes; i += unit_bytes) {
    units_.push_back(read_unit(bytes, i));
  }
  strings_ = bytes.substr(unit_bytes + array_bytes);
  check_strings(source);
  check_array(source);
}

void Charsmap::check_strings(std::string_view source) const {
  require(is_valid_utf8(strings_), ErrorCode::corrupt_data,
          "{}: the replacements of the precompiled charsmap are not UTF-8", source);
  require(strings_.empty() || strings_.back() == '\0', ErrorCode::corrupt_data,
          "{}: the last replacement of the precompiled charsmap has no end", source);
}

std::size_t Charsmap::base_of(std::size_t node) const {
  const std::uint32_t unit = units_[node];
  const std::uint32_t offset = (unit >> 10) << ((unit & (1u << 9)) >> 6);
  return node ^ offset;
}

bool Charsmap::is_child(std::size_t node, unsigned char byte) const {
  return (units_[node] & (1u << 31 | 0xFF)) == byte;
}

bool Charsmap::has_leaf(std::size_t node) const { return (units_[node] >> 8 & 1) != 0; }

std::size_t Charsmap::value_at(std::size_t base) const { return units_[base] & ~(1u << 31); }

// Visits every node that a walk can reach, depth first: nodes may be shared, but no node may lead
// to itself. What a node can reach is known when it is left.
void Charsmap::check_array(std::string_view source) const {
  struct Visit {
    std::size_t node;
    int next_byte = 0;
  };
  constexpr int unseen = -1;
  constexpr int open = -2;
  std::vector<int> nested(units_.size(), unseen);  // most leaves on a walk after the node
  std::vector<Visit> path = {{.node = 0}};
  while (!path.empty()) {
    Visit& visit = path.back();
    const std::size_t base = base_of(visit.node);
    if (nested[visit.node] == unseen) {
      require((base | 0xFF) < units_.size(), ErrorCode::corrupt_data,
              "{}: unit {} of the precompiled charsmap leads to unit {}; it has {}", source,
              visit.node, base | 0xFF, units_.size());
      nested[visit.node] = open;
    }
    bool descends = false;
    for (; visit.next_byte < 256 && !descends; ++visit.next_byte) {
      const std::size_t child = base ^ static_cast<std::size_t>(visit.next_byte);
      if (!is_child(child, static_cast<unsigned char>(visit.next_byte))) continue;
      require(nested[child] != open, ErrorCode::corrupt_data,
              "{}: unit {} of the precompiled charsmap leads to itself", source, child);
      descends = nested[child] == unseen;
      if (descends) break;  // and is looked at again when the child is known
    }
    if (descends) {
      path.push_back({.node = base ^ static_cast<std::size_t>(visit.next_byte)});
      continue;
    }
    int most = 0;
    for (int byte = 0; byte < 256; ++byte) {
      const std::size_t child = base ^ static_cast<std::size_t>(byte);
      if (!is_child(child, static_cast<unsigned char>(byte))) continue;
      if (has_leaf(child)) {
        const std::size_t value = value_at(base_of(child));
        require(value < strings_.size(), ErrorCode::corrupt_data,
                "{}: the precompiled charsmap names the replacement at byte {}; there are {} bytes",
                source, value, strings_.size());
        const std::size_t size = strings_.find('\0', value) - value;
        require(
            size <= max_replacement, ErrorCode::unsupported,
            "{}: the replacement at byte {} of the precompiled charsmap has {} bytes; supported "
            "are up to {}",
            source, value, size, max_replacement);
      }
      most = std::max(most, nested[child] + (has_leaf(child) ? 1 : 0));
    }
    require(most <= max_nested_keys, ErrorCode::corrupt_data,
            "{}: {} keys of the precompiled charsmap begin with each other; expected at most {}",
            source, most, max_nested_keys);
    nested[visit.node] = most;
    path.pop_back();
  }
}

// Calls visit(match) for the keys that `text` begins with, the shorter ones first, until it returns
// false.
template <class Visit>
void Charsmap::for_each_key(std::string_view text, Visit&& visit) const {
  std::size_t base = base_of(0);
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto byte = static_cast<unsigned char>(text[size]);
    if (byte == 0) return;
    const std::size_t node = base ^ byte;
    if (!is_child(node, byte)) return;
    base = base_of(node);
    if (!has_leaf(node)) continue;
    const std::string_view rest = std::string_view(strings_).substr(value_at(base));
    if (!visit(Match{size + 1, rest.substr(0, rest.find('\0'))})) return;
  }
}

std::optional<std::string_view> Charsmap::replacement(std::string_view text) const {
  std::optional<std::string_view> shortest;
  for_each_key(text, [&](const Match& match) {
    shortest = match.replacement;
    return false;
  });
  return shortest;
}

Charsmap::Match Charsmap::longest_match(std::string_view text) const {
  Match longest;
  for_each_key(text, [&](const Match& match) {
    longest = match;
    return true;
  });
  return longest;
}

std::unique_ptr<const NormaliserStep> make_precompiled_step(std::string encoded,
                                                            std::string_view source) {
  const auto bytes = decode_base64(encoded);
  require(bytes.has_value(), ErrorCode::corrupt_data,
          "{}: 'precompiled_charsmap' of {} characters is not base64", source, encoded.size());
  return std::make_unique<PrecompiledStep>(std::move(encoded), Charsmap(*bytes, source));
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::uint32_t value = 0;
    for (std::size_t j = i; j < i + 4; ++j) {
      const int bits = j >= text.size() - padding ? 0 : six_bits(text[j]);
      if (bits < 0) return std::nullopt;
      value = value << 6 | static_cast<std::uint32_t>(bits);
    }
    for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<char>(value >> shift & 0xFF));
  }
  bytes.erase(bytes.size() - padding);
  return bytes;
}

std::string encode_base64(std::string_view bytes) {
  constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t begin = 0; begin < bytes.size(); begin += 3) {
    const std::string_view group = bytes.substr(begin, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text.push_back(i <= group.size() ? letters[bits >> (18 - 6 * i) & 63] : '=');
    }
  }
  return text;
}

}  // namespace heed
