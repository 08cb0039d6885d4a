// What requests say alike of interventions in one text and in a pair of texts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "microscope/intervene/intervention.h"
#include "server/explorer/memory_budget.h"
#include "server/fields.h"

namespace heed::server {

// "renormalise": what becomes of the weights that are left.
CutEdges::Rest read_rest(const Fields& fields);

// "edges", a list of [query, key], and "renormalise". Throws Error{invalid_argument} for another
// form; whether there are such positions is for the caller to say.
CutEdges read_cut(const Fields& fields);

// The passes that "from" of a list of interventions names, whatever else the list holds.
std::vector<std::string> passes_named_in(const Json& list);

// The strings "t1", "t2", … (for the letter t) in a JSON text: names of passes, and perhaps others.
std::vector<std::string> names_in(std::string_view text, char letter);

// Counts the document of a request's text in a store of passes whose names begin with `letter`,
// while it is read; small ones are not counted. Throws what the store's take() throws.
inline constexpr std::size_t large_document = 64 << 10;  // bytes of text
template <class Store>
MemoryBudget::Share share_of_document(Store& store, std::string_view text, char letter) {
  MemoryBudget::Share share;
  if (text.size() < large_document) return share;
  store.take(share, document_bytes(text), store.keep(names_in(text, letter)));
  return share;
}

// A list as it was requested, for replies: its document would take more than ten times its text.
struct RequestedList {
  std::string text = "[]";
  std::size_t size = 0;

  bool empty() const { return size == 0; }
  // Counted twice: a reply copies it.
  std::int64_t bytes() const { return 2 * static_cast<std::int64_t>(text.size()); }
};
RequestedList requested_list(const Json& list);

// The text of a document in which `member`, null there, has the value `text`, which is JSON.
std::string with_member(const OrderedJson& document, std::string_view member,
                        std::string_view text);

// Counts memory before it is allocated; may throw.
using TakeMemory = std::function<void(std::int64_t bytes)>;

// Of a tensor whose numbers take so many bytes.
std::int64_t tensor_bytes(std::int64_t bytes);

// An intervention with its selection but without what its change holds.
std::int64_t held_bytes(const Intervention& intervention);

// Calls `read` for each object of a list; null is an empty list. Throws Error{invalid_argument}
// with the index of the invalid intervention.
std::vector<Intervention> read_intervention_list(
    const Json& list, const std::function<void(const Fields&, std::vector<Intervention>&)>& read);

}  // namespace heed::server
