#include "server/explorer/intervention_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "tensor/allocated_bytes.h"

namespace heed::server {
namespace {

constexpr std::size_t most_interventions = 256;

}  // namespace

CutEdges::Rest read_rest(const Fields& fields) {
  return fields.boolean("renormalise").value_or(false) ? CutEdges::Rest::renormalised
                                                       : CutEdges::Rest::kept;
}

CutEdges read_cut(const Fields& fields) {
  CutEdges cut{.edges = {}, .rest = read_rest(fields)};
  const Json& edges = fields.required_list("edges");
  cut.edges.reserve(edges.size());
  for (const Json& edge : edges) {
    const bool is_pair = edge.is_array() && edge.size() == 2 && edge[0].is_number_integer() &&
                         edge[1].is_number_integer();
    require(is_pair, ErrorCode::invalid_argument,
            "\"edges\" must be a list of [query, key], not {}", edge.dump().substr(0, 40));
    cut.edges.push_back({edge[0].get<std::int64_t>(), edge[1].get<std::int64_t>()});
  }
  return cut;
}

std::vector<std::string> passes_named_in(const Json& list) {
  std::vector<std::string> ids;
  if (!list.is_array() || list.size() > most_interventions) return ids;
  for (const Json& each : list) {
    if (!each.is_object()) continue;
    const auto from = each.find("from");
    if (from != each.end() && from->is_string()) ids.push_back(from->get<std::string>());
  }
  return ids;
}

std::vector<std::string> names_in(std::string_view text, char letter) {
  const std::string begin{'"', letter};
  std::vector<std::string> names;
  for (std::size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at)) {
    const std::size_t name = ++at;
    at = std::min(text.find_first_not_of("0123456789", name + 1), text.size());
    constexpr std::size_t longest = 20;
    if (text.substr(at).starts_with('"') && at > name + 1 && at - name <= longest) {
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

std::int64_t held_bytes(const Intervention& intervention) {
  const std::size_t indices = intervention.where.heads.size() + intervention.where.neurons.size();
  // Lists grow by doubling.
  return static_cast<std::int64_t>(2 * sizeof(Intervention) + indices * sizeof(std::int64_t));
}

std::vector<Intervention> read_intervention_list(
    const Json& list, const std::function<void(const Fields&, std::vector<Intervention>&)>& read) {
  std::vector<Intervention> interventions;
  if (list.is_null()) return interventions;
  require(list.is_array(), ErrorCode::invalid_argument, "\"interventions\" must be a list, not {}",
          list.type_name());
  require(list.size() <= most_interventions, ErrorCode::invalid_argument,
          "{} interventions are more than the {} of one pass", list.size(), most_interventions);
  for (std::size_t i = 0; i < list.size(); ++i) {
    read(Fields(list[i], fmt::format("intervention {}", i)), interventions);
  }
  return interventions;
}

}  // namespace heed::server
