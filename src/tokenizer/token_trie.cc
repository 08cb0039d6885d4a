#include "tokenizer/token_trie.h"

#include <algorithm>

#include "base/error.h"

namespace heed {

TokenTrie::TokenTrie(std::vector<std::pair<std::string_view, std::int32_t>> tokens) : nodes_(1) {
  std::ranges::sort(tokens);
  std::size_t bytes = 0;
  for (const auto& [text, id] : tokens) bytes += text.size();
  check(bytes < UINT32_MAX, "the labels of a trie have fewer than 2^32 bytes");
  // Breadth first: the tokens [begin, end) share the first `depth` bytes, those of `node`.
  struct Range {
    std::size_t node;
    std::size_t begin;
    std::size_t end;
    std::size_t depth;
  };
  std::vector<Range> ranges = {{0, 0, tokens.size(), 0}};
  for (std::size_t next = 0; next < ranges.size(); ++next) {
    auto [node, begin, end, depth] = ranges[next];
    if (begin < end && tokens[begin].first.size() == depth)
      nodes_[node].id = tokens[begin++].second;
    nodes_[node].first_child = static_cast<std::uint32_t>(nodes_.size());
    while (begin < end) {
      const std::string_view first = tokens[begin].first.substr(depth);
      std::size_t last = begin;
      while (last < end && tokens[last].first[depth] == first[0]) ++last;
      // What the first and the last have in common all between have, since they are sorted.
      const std::string_view other = tokens[last - 1].first.substr(depth);
      const auto parting = std::ranges::mismatch(first, other).in1;
      const auto size = static_cast<std::size_t>(parting - first.begin());
      ranges.push_back({nodes_.size(), begin, last, depth + size});
      nodes_.push_back({.label = static_cast<std::uint32_t>(labels_.size()),
                        .size = static_cast<std::uint32_t>(size),
                        .byte = static_cast<unsigned char>(first[0])});
      labels_ += first.substr(0, size);
      ++nodes_[node].children;
      begin = last;
    }
  }
  nodes_.shrink_to_fit();
}

std::size_t TokenTrie::child(std::size_t node, unsigned char byte) const {
  const auto first = nodes_.begin() + nodes_[node].first_child;
  const auto last = first + nodes_[node].children;
  const auto found =
      std::lower_bound(first, last, byte,
                       [](const Node& child, unsigned char wanted) { return child.byte < wanted; });
  return found != last && found->byte == byte ? static_cast<std::size_t>(found - nodes_.begin())
                                              : 0;
}

}  // namespace heed
