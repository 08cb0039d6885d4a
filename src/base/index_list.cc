#include "base/index_list.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace heed {
namespace {

constexpr std::int64_t longest_list = 1 << 20;
constexpr std::int64_t largest_index = std::int64_t{1}
                                       << 40;  // in magnitude, so that nothing overflows

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Parses a number at the beginning of `text` and removes it; false if there is none.
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> items;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(without_spaces(text.substr(begin, end - begin)));
    require(!items.back().empty(), ErrorCode::invalid_argument,
            "the list '{}' has an empty item: separate items by single commas", text.substr(0, 80));
    begin = end + 1;
  }
  return items;
}

std::vector<std::int64_t> parse_indices(const std::string& text) {
  std::vector<std::int64_t> indices;
  if (text.empty()) return indices;
  for (const std::string_view part : split_list(text)) {
    std::string_view rest = part;
    std::int64_t first = 0;
    bool is_good = take_number(rest, first);
    std::int64_t last = first;
    if (is_good && rest.starts_with('-')) {
      rest.remove_prefix(1);
      is_good = take_number(rest, last) && first <= last;
    }
    is_good = is_good && rest.empty() && first >= -largest_index && last <= largest_index;
    require(is_good, ErrorCode::invalid_argument, "'{}' is not a number or a range such as 0-3",
            part.substr(0, 40));
    require(std::ssize(indices) + last - first < longest_list, ErrorCode::invalid_argument,
            "the list up to '{}' has more than {} numbers", part, longest_list);
    for (std::int64_t index = first; index <= last; ++index) indices.push_back(index);
  }
  return indices;
}

std::int64_t parse_bytes(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 9> units{{{"", 1},
                                                                      {"B", 1},
                                                                      {"kB", 1e3},
                                                                      {"MB", 1e6},
                                                                      {"GB", 1e9},
                                                                      {"KiB", 1024.0},
                                                                      {"MiB", 1048576.0},
                                                                      {"GiB", 1073741824.0},
                                                                      {"TiB", 1099511627776.0}}};
  std::string_view rest = text;
  double number = 0;
  if (take_number(rest, number) && std::isfinite(number) && number >= 0) {
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    for (const auto& [unit, factor] : units) {
      if (rest == unit && number * factor < 9e18) return static_cast<std::int64_t>(number * factor);
    }
  }
  fail(ErrorCode::invalid_argument, "'{}' is not a size such as 1GiB or 500MB", text);
}

}  // namespace heed
