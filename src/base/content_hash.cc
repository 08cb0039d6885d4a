#include "base/content_hash.h"

#include <openssl/evp.h>

#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace heed {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;  // hashed in some milliseconds

}  // namespace

struct ContentHasher::State {
  struct FreeDigest {
    void operator()(EVP_MD_CTX* digest) const { EVP_MD_CTX_free(digest); }
  };
  std::unique_ptr<EVP_MD_CTX, FreeDigest> context{EVP_MD_CTX_new()};
};

const char* hash_kind_name(HashKind kind) {
  return kind == HashKind::sha256 ? "sha256" : "git_blob";
}

bool is_hash(HashKind kind, std::string_view hex) {
  const std::size_t digits = kind == HashKind::sha256 ? 64 : 40;
  return hex.size() == digits && hex.find_first_not_of("0123456789abcdef") == std::string::npos;
}

ContentHasher::ContentHasher(HashKind kind, std::int64_t size)
    : kind_(kind), state_(std::make_unique<State>()) {
  const EVP_MD* const digest = kind == HashKind::sha256 ? EVP_sha256() : EVP_sha1();
  require(
      state_->context != nullptr && EVP_DigestInit_ex(state_->context.get(), digest, nullptr) == 1,
      ErrorCode::internal, "OpenSSL cannot hash {}", hash_kind_name(kind));
  if (kind == HashKind::git_blob) add(fmt::format("blob {}{}", size, '\0'));
}

ContentHasher::~ContentHasher() = default;

void ContentHasher::add(std::string_view bytes) {
  check(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1,
        "OpenSSL hashes bytes");
}

ContentHash ContentHasher::finish() {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  check(EVP_DigestFinal_ex(state_->context.get(), bytes, &size) == 1, "OpenSSL finishes a hash");
  ContentHash hash{.kind = kind_, .hex = {}};
  for (unsigned int i = 0; i < size; ++i) hash.hex += fmt::format("{:02x}", bytes[i]);
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
