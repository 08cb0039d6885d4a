// Hashes of content, as hubs name files by them and manifests check files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/progress.h"

namespace heed {

enum class HashKind {
  sha256,    // of the content
  git_blob,  // SHA-1 of "blob SIZE", a zero byte and the content: git's name of a file
};

struct ContentHash {
  HashKind kind = HashKind::sha256;
  std::string hex;  // lower case

  bool operator==(const ContentHash&) const = default;
};

// "sha256" or "git_blob".
const char* hash_kind_name(HashKind kind);

// Whether `hex` has the digits, in lower case, of a hash of this kind.
bool is_hash(HashKind kind, std::string_view hex);

// Hashes `size` bytes that arrive in pieces.
class ContentHasher {
 public:
  ContentHasher(HashKind kind, std::int64_t size);
  ~ContentHasher();
  ContentHasher(const ContentHasher&) = delete;
  ContentHasher& operator=(const ContentHasher&) = delete;

  void add(std::string_view bytes);
  ContentHash finish();  // once

 private:
  struct State;
  HashKind kind_;
  std::unique_ptr<State> state_;
};

struct HashFileOptions {
  ProgressCallback progress;  // called with `what`, in bytes
  std::string what;
  StopFlag stop = nullptr;
};

// The hash of a file as it is now. Throws what RegularFile throws, and Error{interrupted}.
ContentHash hash_file(const std::filesystem::path& path, HashKind kind,
                      const HashFileOptions& options = {});

}  // namespace heed
