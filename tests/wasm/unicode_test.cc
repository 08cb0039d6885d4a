// cmake/wasm/unicode.cc, compiled here with other names, beside the library whose answers it has.
#include <utf8proc.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
decltype(utf8proc_get_property) ours_get_property;
decltype(utf8proc_category) ours_category;
decltype(utf8proc_tolower) ours_tolower;
decltype(utf8proc_toupper) ours_toupper;
decltype(utf8proc_totitle) ours_totitle;
decltype(utf8proc_decompose_char) ours_decompose_char;
decltype(utf8proc_normalize_utf32) ours_normalize_utf32;
decltype(utf8proc_grapheme_break_stateful) ours_grapheme_break_stateful;
decltype(utf8proc_iterate) ours_iterate;
}
// NOLINTEND(readability-identifier-naming)

namespace {

using Points = std::vector<utf8proc_int32_t>;

constexpr utf8proc_int32_t points_end = 0x110000;
constexpr int random_texts = 300'000;

long failures = 0;

void expect(bool is_same, const char* what, utf8proc_int32_t point) {
  if (!is_same && failures++ < 20) std::printf("%s of U+%04X differs\n", what, point);
}

template <class Function>
Points decomposed(Function function, utf8proc_int32_t c, utf8proc_option_t how) {
  Points points(64);
  int boundary = 0;
  points.resize(static_cast<std::size_t>(
      std::max<utf8proc_ssize_t>(function(c, points.data(), 64, how, &boundary), 0)));
  return points;
}

template <class Function>
Points composed(Function function, Points points) {
  const auto how = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  points.resize(static_cast<std::size_t>(function(points.data(), std::ssize(points), how)));
  return points;
}

void compare_every_point() {
  for (utf8proc_int32_t c = -2; c < points_end + 2; ++c) {
    expect(ours_category(c) == utf8proc_category(c), "the category", c);
    expect(ours_get_property(c)->combining_class == utf8proc_get_property(c)->combining_class,
           "the combining class", c);
    if (c < 0 || c >= points_end) continue;
    expect(ours_tolower(c) == utf8proc_tolower(c), "the small letter", c);
    expect(ours_toupper(c) == utf8proc_toupper(c), "the capital letter", c);
    expect(ours_totitle(c) == utf8proc_totitle(c), "the title letter", c);
    for (const auto how : {UTF8PROC_DECOMPOSE, UTF8PROC_CASEFOLD}) {
      expect(decomposed(ours_decompose_char, c, how) == decomposed(utf8proc_decompose_char, c, how),
             "the decomposition", c);
    }
  }
}

// Of points that combine, with jamo and what joins pictographs.
Points interesting_points() {
  Points points{0x200D, 0x1F468, 0x1F469, 0x1F1E6, 0x1F1E7, 0xFE0F, 'a', '\r', '\n', 0x0600};
  for (utf8proc_int32_t c = 0; c < 0x30000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const Points parts = decomposed(utf8proc_decompose_char, c, UTF8PROC_DECOMPOSE);
    if (parts.size() > 1) points.insert(points.end(), parts.begin(), parts.end());
    if (parts.size() > 1 || utf8proc_get_property(c)->combining_class != 0) points.push_back(c);
  }
  for (utf8proc_int32_t c = 0x1100; c < 0x1200; ++c) points.insert(points.end(), 40, c);
  return points;
}

void compare_texts() {
  const Points points = interesting_points();
  std::mt19937 random(1);
  const auto draw = [&] {
    return random() % 4 == 0 ? points[random() % 10] : points[random() % points.size()];
  };
  for (int i = 0; i < random_texts; ++i) {
    Points text(1 + random() % 6);
    std::generate(text.begin(), text.end(), draw);
    expect(composed(ours_normalize_utf32, text) == composed(utf8proc_normalize_utf32, text),
           "the composition", text[0]);
    utf8proc_int32_t ours = 0, theirs = 0;
    for (std::size_t at = 1; at < text.size(); ++at) {
      expect(ours_grapheme_break_stateful(text[at - 1], text[at], &ours) ==
                 utf8proc_grapheme_break_stateful(text[at - 1], text[at], &theirs),
             "the break before", text[at]);
    }
    unsigned char bytes[4];
    for (auto& byte : bytes) {
      byte = static_cast<unsigned char>(random() % 3 == 0 ? random() : 0x80 + random() % 64);
    }
    utf8proc_int32_t one = 0, other = 0;
    const auto size = static_cast<utf8proc_ssize_t>(1 + random() % 4);
    expect(ours_iterate(bytes, size, &one) == utf8proc_iterate(bytes, size, &other) && one == other,
           "the character that begins with byte", bytes[0]);
  }
}

}  // namespace

int main() {
  compare_every_point();
  compare_texts();
  std::printf("%ld differences\n", failures);
  return failures == 0 ? 0 : 1;
}
