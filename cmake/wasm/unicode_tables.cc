// Writes unicode_tables.inc: what the machine's utf8proc answers of every code point, so that heed
// in a browser (unicode.cc) answers to the same version of Unicode, and nothing of the library is
// compiled again. A native program that runs during the build: unicode_tables OUTPUT.
#include <utf8proc.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace {

using Points = std::vector<utf8proc_int32_t>;

constexpr utf8proc_int32_t points_end = 0x110000;
constexpr int page_bits = 7;

bool is_surrogate(utf8proc_int32_t c) { return c >= 0xD800 && c < 0xE000; }

Points decomposed(utf8proc_int32_t c, utf8proc_option_t how) {
  Points points(64);
  int boundary = 0;
  const auto count = utf8proc_decompose_char(c, points.data(), std::ssize(points), how, &boundary);
  points.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  return points;
}

Points composed(Points points) {
  const auto count =
      utf8proc_normalize_utf32(points.data(), std::ssize(points),
                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  points.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  return points;
}

// What decides where graphemes end.
template <class Property>
int break_key(const Property* property) {
  int key = static_cast<int>(property->boundclass);
  if constexpr (requires { property->indic_conjunct_break; }) {
    key |= static_cast<int>(property->indic_conjunct_break) << 8;
  }
  return key;
}

// Sequences one behind another, each once: its length, then its points. 0: the point itself.
class Sequences {
 public:
  int add(const Points& points) {
    const auto [at, is_new] = places_.emplace(points, static_cast<int>(all.size()));
    if (is_new) {
      all.push_back(static_cast<std::int32_t>(points.size()));
      all.insert(all.end(), points.begin(), points.end());
    }
    return at->second;
  }
  std::vector<std::int32_t> all{0};

 private:
  std::map<Points, int> places_;
};

std::FILE* output = nullptr;

template <class Values>
void write(const char* type, const char* name, const Values& values) {
  std::fprintf(output, "constexpr %s %s[] = {", type, name);
  std::size_t column = 0;
  for (const auto value : values) {
    std::fprintf(output, "%s%lld,", column++ % 24 == 0 ? "\n" : "", static_cast<long long>(value));
  }
  std::fprintf(output, "};\n");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 || (output = std::fopen(arguments[1], "w")) == nullptr) {
    std::fprintf(stderr, "usage: unicode_tables OUTPUT\n");
    return 2;
  }
  // 1: properties of each point, in pages
  std::map<int, utf8proc_int32_t> break_classes;  // keys and a point of each
  for (utf8proc_int32_t c = 0; c < points_end; ++c) {
    break_classes.emplace(break_key(utf8proc_get_property(c)), c);
  }
  std::map<int, int> break_numbers;
  for (const auto& [key, point] : break_classes) {
    const int number = static_cast<int>(break_numbers.size());
    break_numbers[key] = number;
  }
  Sequences sequences;
  using Record = std::tuple<int, int, int, int, int, int, int, int>;
  std::map<Record, int> records;
  std::vector<Record> in_order;
  std::map<std::vector<int>, int> pages;
  std::vector<int> page_of, all_pages;
  for (utf8proc_int32_t begin = 0; begin < points_end; begin += 1 << page_bits) {
    std::vector<int> page;
    for (utf8proc_int32_t c = begin; c < begin + (1 << page_bits); ++c) {
      const auto* property = utf8proc_get_property(c);
      const Points canonical = decomposed(c, UTF8PROC_DECOMPOSE);
      const Points folded = decomposed(c, UTF8PROC_CASEFOLD);
      const bool is_hangul = c >= 0xAC00 && c < 0xAC00 + 11172;  // by rule
      const Points itself{c};
      const Record record{static_cast<int>(utf8proc_category(c)),
                          static_cast<int>(property->combining_class),
                          break_numbers.at(break_key(property)),
                          utf8proc_tolower(c) - c,
                          utf8proc_toupper(c) - c,
                          utf8proc_totitle(c) - c,
                          canonical == itself || is_hangul ? 0 : sequences.add(canonical),
                          folded == itself ? 0 : sequences.add(folded)};
      const auto [at, is_new] = records.emplace(record, static_cast<int>(records.size()));
      if (is_new) in_order.push_back(record);
      page.push_back(at->second);
    }
    const auto [at, is_new] = pages.emplace(page, static_cast<int>(pages.size()));
    if (is_new) all_pages.insert(all_pages.end(), page.begin(), page.end());
    page_of.push_back(at->second);
  }
  // 2: pairs that compose
  std::map<std::uint64_t, utf8proc_int32_t> pairs;
  for (utf8proc_int32_t c = 0; c < points_end; ++c) {
    if (is_surrogate(c) || (c >= 0xAC00 && c < 0xAC00 + 11172)) continue;
    Points parts = decomposed(c, UTF8PROC_DECOMPOSE);
    if (parts.size() < 2 || composed(parts) != Points{c}) continue;
    const utf8proc_int32_t last = parts.back();
    parts.pop_back();
    const Points first = composed(parts);
    if (first.size() != 1 || composed({first[0], last}) != Points{c}) continue;
    pairs[static_cast<std::uint64_t>(first[0]) << 32 | static_cast<std::uint32_t>(last)] = c;
  }
  // 3: breaks between graphemes: of each state that can be reached and each pair of classes,
  // whether there is one, and the state behind
  std::map<utf8proc_int32_t, int> states{{0, 0}};
  std::vector<utf8proc_int32_t> to_visit{0};
  std::vector<int> transitions;
  for (std::size_t at = 0; at < to_visit.size(); ++at) {
    for (const auto& [left_key, left] : break_classes) {
      for (const auto& [right_key, right] : break_classes) {
        utf8proc_int32_t state = to_visit[at];
        const bool breaks = utf8proc_grapheme_break_stateful(left, right, &state);
        const auto [known, is_new] = states.emplace(state, static_cast<int>(states.size()));
        if (is_new) to_visit.push_back(state);
        transitions.push_back(known->second * 2 + (breaks ? 1 : 0));
      }
    }
  }
  // 4
  std::fprintf(output, "// Of utf8proc %s, Unicode %s.\n", utf8proc_version(),
               utf8proc_unicode_version());
  std::fprintf(output, "constexpr int page_bits = %d;\nconstexpr int break_classes = %zu;\n",
               page_bits, break_classes.size());
  write("std::uint16_t", "page_of", page_of);
  write("std::uint16_t", "pages", all_pages);
  std::fprintf(output, "constexpr Record records[] = {\n");
  for (const auto& [category, combining, breaking, lower, upper, title, canonical, folded] :
       in_order) {
    std::fprintf(output, "{%d,%d,%d,%d,%d,%d,%d,%d},\n", category, combining, breaking, lower,
                 upper, title, canonical, folded);
  }
  std::fprintf(output, "};\n");
  write("std::int32_t", "sequences", sequences.all);
  std::fprintf(output, "constexpr Pair pairs[] = {\n");
  for (const auto& [key, composite] : pairs) {
    std::fprintf(output, "{%lld,%lld,%d},\n", static_cast<long long>(key >> 32),
                 static_cast<long long>(key & 0xFFFFFFFF), composite);
  }
  std::fprintf(output, "};\n");
  write("std::uint16_t", "transitions", transitions);
  return std::fclose(output) == 0 ? 0 : 1;
}
