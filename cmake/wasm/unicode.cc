// The functions of utf8proc that heed calls, from tables of that library's own answers
// (unicode_tables.cc).
#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

namespace {

struct Record {
  std::uint8_t category;
  std::uint8_t combining_class;
  std::uint8_t break_class;
  std::int32_t lower;  // differences
  std::int32_t upper;
  std::int32_t title;
  std::uint16_t canonical;  // in sequences; 0: the point itself
  std::uint16_t folded;
};

struct Pair {
  std::int32_t first;
  std::int32_t second;
  std::int32_t composite;
};

#include "unicode_tables.inc"

constexpr std::int32_t points_end = 0x110000;

const Record& record_of(std::int32_t c) {
  if (c < 0 || c >= points_end) c = 0xFFFFF;  // of a plane without characters
  const int page = page_of[c >> page_bits];
  return records[pages[(page << page_bits) + (c & ((1 << page_bits) - 1))]];
}

// Syllables of Hangul, by The Unicode Standard, 3.12.
namespace hangul {
constexpr std::int32_t syllables = 0xAC00, leads = 0x1100, vowels = 0x1161, tails = 0x11A7;
constexpr std::int32_t lead_count = 19, vowel_count = 21, tail_count = 28;
constexpr std::int32_t count = lead_count * vowel_count * tail_count;

std::int32_t composite(std::int32_t first, std::int32_t second) {  // −1: none
  const std::int32_t lead = first - leads, vowel = second - vowels;
  if (lead >= 0 && lead < lead_count && vowel >= 0 && vowel < vowel_count) {
    return syllables + (lead * vowel_count + vowel) * tail_count;
  }
  const std::int32_t syllable = first - syllables, tail = second - tails;
  const bool takes_tail = syllable >= 0 && syllable < count && syllable % tail_count == 0;
  // As utf8proc, whose answers these are, 0 counts: U+11A7, of which there is no tail, disappears.
  return takes_tail && tail >= 0 && tail < tail_count ? first + tail : -1;
}
}  // namespace hangul

std::int32_t composite_of(std::int32_t first, std::int32_t second) {  // −1: none
  if (const std::int32_t syllable = hangul::composite(first, second); syllable >= 0)
    return syllable;
  const auto is_before = [](const Pair& a, const Pair& b) {
    return a.first != b.first ? a.first < b.first : a.second < b.second;
  };
  const Pair wanted{first, second, 0};
  const Pair* const found = std::lower_bound(std::begin(pairs), std::end(pairs), wanted, is_before);
  return found != std::end(pairs) && !is_before(wanted, *found) ? found->composite : -1;
}

utf8proc_ssize_t put(std::span<const std::int32_t> points, utf8proc_int32_t* to,
                     utf8proc_ssize_t room) {
  const auto count = static_cast<utf8proc_ssize_t>(points.size());
  std::copy_n(points.begin(), std::min(count, room), to);
  return count;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

// Of its members, heed reads one.
const utf8proc_property_t* utf8proc_get_property(utf8proc_int32_t c) {
  static utf8proc_property_t property{};
  property.combining_class = record_of(c).combining_class;
  return &property;
}

utf8proc_category_t utf8proc_category(utf8proc_int32_t c) {
  return static_cast<utf8proc_category_t>(record_of(c).category);
}

utf8proc_int32_t utf8proc_tolower(utf8proc_int32_t c) { return c + record_of(c).lower; }
utf8proc_int32_t utf8proc_toupper(utf8proc_int32_t c) { return c + record_of(c).upper; }
utf8proc_int32_t utf8proc_totitle(utf8proc_int32_t c) { return c + record_of(c).title; }

// For UTF8PROC_DECOMPOSE or UTF8PROC_CASEFOLD alone.
utf8proc_ssize_t utf8proc_decompose_char(utf8proc_int32_t c, utf8proc_int32_t* to,
                                         utf8proc_ssize_t room, utf8proc_option_t how, int*) {
  if (c < 0 || c >= points_end) return UTF8PROC_ERROR_NOTASSIGNED;
  const Record& record = record_of(c);
  const bool folds = (how & UTF8PROC_CASEFOLD) != 0;
  const std::int32_t syllable = c - hangul::syllables;
  if (!folds && syllable >= 0 && syllable < hangul::count) {
    const std::int32_t tail = syllable % hangul::tail_count;
    const std::int32_t parts[3] = {
        hangul::leads + syllable / (hangul::vowel_count * hangul::tail_count),
        hangul::vowels + syllable / hangul::tail_count % hangul::vowel_count, hangul::tails + tail};
    return put({parts, tail > 0 ? 3U : 2U}, to, room);
  }
  const std::int32_t* const found = sequences + (folds ? record.folded : record.canonical);
  if (found == sequences) return put({&c, 1}, to, room);
  return put({found + 1, static_cast<std::size_t>(*found)}, to, room);
}

// For UTF8PROC_COMPOSE and UTF8PROC_STABLE alone: canonical composition, by The Unicode
// Standard, 3.11.
utf8proc_ssize_t utf8proc_normalize_utf32(utf8proc_int32_t* points, utf8proc_ssize_t count,
                                          utf8proc_option_t) {
  utf8proc_ssize_t written = 0, starter = -1;
  int highest = -1;  // class of what stands behind the starter; −1: nothing does
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    const std::int32_t point = points[i];
    const int combining_class = record_of(point).combining_class;
    if (starter >= 0 && combining_class > highest) {
      const std::int32_t composite = composite_of(points[starter], point);
      if (composite >= 0) {
        points[starter] = composite;
        continue;
      }
    }
    if (combining_class == 0) {
      starter = written;
      highest = -1;
    } else {
      highest = std::max(highest, combining_class);
    }
    points[written++] = point;
  }
  return written;
}

utf8proc_bool utf8proc_grapheme_break_stateful(utf8proc_int32_t left, utf8proc_int32_t right,
                                               utf8proc_int32_t* state) {
  const std::size_t at =
      (static_cast<std::size_t>(*state) * break_classes + record_of(left).break_class) *
          break_classes +
      record_of(right).break_class;
  *state = transitions[at] / 2;
  return transitions[at] % 2 != 0;
}

utf8proc_ssize_t utf8proc_iterate(const utf8proc_uint8_t* text, utf8proc_ssize_t size,
                                  utf8proc_int32_t* point) {
  *point = -1;
  if (size == 0) return 0;
  const std::uint8_t lead = text[0];
  const int length = lead < 0x80   ? 1
                     : lead < 0xC2 ? 0
                     : lead < 0xE0 ? 2
                     : lead < 0xF0 ? 3
                     : lead < 0xF5 ? 4
                                   : 0;
  if (length == 0 || length > size) return UTF8PROC_ERROR_INVALIDUTF8;
  std::int32_t value = length == 1 ? lead : lead & (0xFF >> (length + 1));
  for (int i = 1; i < length; ++i) {
    if ((text[i] & 0xC0) != 0x80) return UTF8PROC_ERROR_INVALIDUTF8;
    value = value << 6 | (text[i] & 0x3F);
  }
  constexpr std::int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_valid =
      value >= least[length] && value < points_end && !(value >= 0xD800 && value < 0xE000);
  if (!is_valid) return UTF8PROC_ERROR_INVALIDUTF8;
  *point = value;
  return length;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
