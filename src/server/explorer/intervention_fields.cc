#include "server/explorer/intervention_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "tensor/allocated_bytes.h"

namespace heed::server {
std::vector<std::string> passes_named_in(const Json& list) {
  std::vector<std::string> ids;
  if (!list.is_array() || list.size() > max_interventions) return ids;
  for (const Json& each : list) {
    if (!each.is_object()) continue;
    for (const char* const name : {"from", "toward", "away"}) {
      const auto from = each.find(name);
      if (from != each.end() && from->is_string()) ids.push_back(from->get<std::string>());
    }
  }
  return ids;
}

std::vector<std::string> names_in(std::string_view text, char letter) {
  const std::string begin{'"', letter};
  std::vector<std::string> names;
  for (std::size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at)) {
    const std::size_t name = ++at;
    at = std::min(text.find_first_not_of("0123456789", name + 1), text.size());
    constexpr std::size_t max_length = 20;
    if (text.substr(at).starts_with('"') && at > name + 1 && at - name <= max_length) {
      names.emplace_back(text.substr(name, at - name));
    }
  }
  return names;
}

RequestedList requested_list(const Json& list) {
  if (!list.is_array()) return {};
  RequestedList kept{.text = list.dump(), .size = list.size()};
  kept.text.shrink_to_fit();
  return kept;
}

std::string with_member(const OrderedJson& document, std::string_view member,
                        std::string_view text) {
  // Quotes within strings are escaped, so that this is the member.
  const std::string empty = fmt::format("\"{}\":null", member);
  const std::string whole = json_text(document);
  const std::size_t at = whole.find(empty);
  check(at != std::string::npos, "the document has the member, and it is null");
  const std::size_t value = at + empty.size() - std::string_view("null").size();
  std::string result;
  result.reserve(whole.size() + text.size());
  result.append(whole, 0, value).append(text).append(whole, at + empty.size());
  return result;
}

std::int64_t tensor_bytes(std::int64_t bytes) {
  constexpr std::int64_t overhead = 128;  // of its shape, its counts of owners and the allocator
  return static_cast<std::int64_t>(allocated_bytes(static_cast<std::size_t>(bytes))) + overhead;
}

}  // namespace heed::server
