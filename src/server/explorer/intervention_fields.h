// Lists of interventions in requests and replies, and the memory that they take.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/explorer/memory_budget.h"

namespace heed::server {

inline constexpr std::size_t max_interventions = 256;

// The passes that a list of interventions takes values from, whatever else the list holds.
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

}  // namespace heed::server
