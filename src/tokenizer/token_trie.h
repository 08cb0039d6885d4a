// A trie of the bytes of tokens: finds all tokens that a text begins with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

// Tokens that are looked for at every position of a text are at most this long, in bytes, so that
// the time that a text takes depends on its own length. Those of published files have at most a few
// hundred.
inline constexpr std::size_t longest_sought_token = 1024;

class TokenTrie {
 public:
  TokenTrie() : nodes_(1) {}

  // Texts, not empty and each only once, and their ids. Bytes that no two tokens part at are one
  // node, so that there are at most two nodes a token.
  explicit TokenTrie(std::vector<std::pair<std::string_view, std::int32_t>> tokens);

  // Calls visit(id, size) for every token that `text` begins with, the shorter ones first.
  template <class Visit>
  void for_each_prefix(std::string_view text, Visit&& visit) const {
    std::size_t node = 0;
    for (std::size_t size = 0; size < text.size();) {
      node = child(node, static_cast<unsigned char>(text[size]));
      if (node == 0) return;
      const Node& next = nodes_[node];
      if (next.size > 1 && text.substr(size, next.size) != label(next)) return;
      size += next.size;
      if (next.id >= 0) visit(next.id, size);
    }
  }

  struct Match {
    std::int32_t id = -1;  // -1: none
    std::size_t size = 0;
  };
  Match longest_prefix(std::string_view text) const {
    Match longest;
    for_each_prefix(text, [&](std::int32_t id, std::size_t size) { longest = {id, size}; });
    return longest;
  }

  std::size_t node_count() const { return nodes_.size(); }

 private:
  // Reached by the bytes labels_[label] to labels_[label + size - 1].
  struct Node {
    std::int32_t id = -1;
    std::uint32_t first_child = 0;  // children are adjacent, by ascending first byte
    std::uint32_t label = 0;
    std::uint32_t size = 0;
    std::uint16_t children = 0;
    unsigned char byte = 0;  // the first of the label
  };

  // 0, the root, when there is none.
  std::size_t child(std::size_t node, unsigned char byte) const;
  std::string_view label(const Node& node) const {
    return std::string_view(labels_).substr(node.label, node.size);
  }

  std::vector<Node> nodes_;
  std::string labels_;
};

}  // namespace heed
