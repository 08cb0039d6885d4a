// A long sequence of tokens, in memory or in files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace heed {

class TokenSequence {
 public:
  virtual ~TokenSequence() = default;
  virtual std::int64_t size() const = 0;
  // Tokens [begin, begin + out.size()), which must be in range.
  virtual void read(std::int64_t begin, std::span<std::int32_t> out) const = 0;
};

// In memory.
class TokenList : public TokenSequence {
 public:
  explicit TokenList(std::vector<std::int32_t> tokens) : tokens_(std::move(tokens)) {}

  std::int64_t size() const override { return std::ssize(tokens_); }
  void read(std::int64_t begin, std::span<std::int32_t> out) const override {
    std::copy_n(tokens_.begin() + begin, out.size(), out.begin());
  }

 private:
  std::vector<std::int32_t> tokens_;
};

}  // namespace heed
