// SHA-256 by FIPS 180-4. Git's names of files are for downloads, which are the page's.
#include "base/content_hash.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace heed {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> round_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr std::size_t block_bytes = 64;

}  // namespace

struct ContentHasher::State {
  std::array<std::uint32_t, 8> words{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, block_bytes> block{};
  std::size_t filled = 0;
  std::uint64_t bytes = 0;

  void compress() {
    std::array<std::uint32_t, 64> schedule{};
    for (std::size_t i = 0; i < 16; ++i) {
      for (std::size_t b = 0; b < 4; ++b) schedule[i] = schedule[i] << 8 | block[4 * i + b];
    }
    for (std::size_t i = 16; i < 64; ++i) {
      const std::uint32_t a = schedule[i - 15], b = schedule[i - 2];
      const std::uint32_t s0 = std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3);
      const std::uint32_t s1 = std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10);
      schedule[i] = schedule[i - 16] + s0 + schedule[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = words;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const std::uint32_t one = h + s1 + ((e & f) ^ (~e & g)) + round_constants[i] + schedule[i];
      const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const std::uint32_t two = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
    }
    const std::array<std::uint32_t, 8> added{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) words[i] += added[i];
    filled = 0;
  }

  void put(unsigned char byte) {
    block[filled++] = byte;
    if (filled == block_bytes) compress();
  }
};

const char* hash_kind_name(HashKind kind) {
  return kind == HashKind::sha256 ? "sha256" : "git_blob";
}

bool is_hash(HashKind kind, std::string_view hex) {
  const std::size_t digits = kind == HashKind::sha256 ? 64 : 40;
  return hex.size() == digits && hex.find_first_not_of("0123456789abcdef") == std::string::npos;
}

ContentHasher::ContentHasher(HashKind kind, std::int64_t)
    : kind_(kind), state_(std::make_unique<State>()) {
  require(kind == HashKind::sha256, ErrorCode::unsupported,
          "a browser's heed hashes by sha256, not by {}", hash_kind_name(kind));
}

ContentHasher::~ContentHasher() = default;

void ContentHasher::add(std::string_view bytes) {
  state_->bytes += bytes.size();
  for (const char byte : bytes) state_->put(static_cast<unsigned char>(byte));
}

ContentHash ContentHasher::finish() {
  const std::uint64_t bits = state_->bytes * 8;
  state_->put(0x80);
  while (state_->filled != block_bytes - 8) state_->put(0);
  for (int shift = 56; shift >= 0; shift -= 8) {
    state_->put(static_cast<unsigned char>(bits >> shift));
  }
  ContentHash hash{.kind = kind_, .hex = {}};
  for (const std::uint32_t word : state_->words) hash.hex += fmt::format("{:08x}", word);
  return hash;
}

ContentHash hash_file(const std::filesystem::path& path, HashKind kind,
                      const HashFileOptions& options) {
  const RegularFile file(path);
  Progress progress{.what = options.what, .done = 0, .total = file.size()};
  ContentHasher hasher(kind, progress.total);
  std::vector<char> piece(piece_bytes);
  while (progress.done < progress.total) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "stopped while verifying '{}'",
            path.string());
    const std::size_t count = file.read(progress.done, piece);
    if (count == 0) break;  // truncated meanwhile
    hasher.add({piece.data(), count});
    progress.done += static_cast<std::int64_t>(count);
    if (options.progress) options.progress(progress);
  }
  return hasher.finish();
}

}  // namespace heed
