// A trie of the bytes of tokens: finds all tokens that a text begins with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

class TokenTrie {
 public:
  TokenTrie() : nodes_(1) {}

  // Texts, not empty and each only once, and their ids.
  explicit TokenTrie(std::vector<std::pair<std::string_view, std::int32_t>> tokens);

  // Calls visit(id, size) for every token that `text` begins with, the shorter ones first.
  template <class Visit>
  void for_each_prefix(std::string_view text, Visit&& visit) const {
    std::size_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<unsigned char>(text[i]));
      if (node == 0) return;
      if (nodes_[node].id >= 0) visit(nodes_[node].id, i + 1);
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

 private:
  struct Node {
    std::int32_t id = -1;
    std::uint32_t first_child = 0;  // children are adjacent, by ascending byte
    std::uint16_t children = 0;
    unsigned char byte = 0;
  };

  // 0, the root, when there is none.
  std::size_t child(std::size_t node, unsigned char byte) const;

  std::vector<Node> nodes_;
};

}  // namespace heed
