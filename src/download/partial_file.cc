#include "download/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "base/system_files.h"

namespace heed {
namespace {

constexpr std::size_t largest_record = 1 << 16;

std::filesystem::path record_path(const std::filesystem::path& path) {
  return partial_path(path).string() + ".json";
}

// Weak ones, W/"…", do not say that bytes are the same.
bool is_strong_etag(std::string_view etag) { return etag.size() >= 2 && etag.starts_with('"'); }

}  // namespace

std::filesystem::path partial_path(const std::filesystem::path& path) {
  return path.string() + ".partial";
}

PartialFile::PartialFile(const std::filesystem::path& path, std::int64_t size,
                         const ContentHash& hash)
    : path_(partial_path(path)), record_(record_path(path)), hash_(hash) {
  const bool continues = read_record();
  open();
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    const int error_number = errno;
    close();
    fail_with_errno("examine", path_, error_number);
  }
  size_ = status.st_size;
  const bool is_usable = continues && size_ <= size;
  if (size_ > 0 && !is_usable) remove();
}

PartialFile::~PartialFile() { close(); }

void PartialFile::open() {
  if (descriptor_ >= 0) return;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) fail_with_errno("create", path_, errno);
}

void PartialFile::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

// Whether there is a record of this content; a damaged one is none.
bool PartialFile::read_record() {
  try {
    const Json record = parse_json(read_text_file(record_, largest_record), record_.string());
    const Json* const hash = find_json_member(record, "hash");
    const Json* const etag = find_json_member(record, "etag");
    if (hash == nullptr || etag == nullptr || *hash != hash_.hex || !etag->is_string()) {
      return false;
    }
    etag_ = etag->get<std::string>();
    return true;
  } catch (const Error&) {
    return false;
  }
}

void PartialFile::write_record() const {
  write_text_file(record_, json_text(OrderedJson{{"hash", hash_.hex}, {"etag", etag_}}));
}

void PartialFile::restart(const std::string& etag) {
  open();
  if (::ftruncate(descriptor_, 0) != 0) fail_with_errno("truncate", path_, errno);
  size_ = 0;
  etag_ = is_strong_etag(etag) ? etag : "";
  write_record();
}

void PartialFile::append(std::string_view bytes) {
  check(descriptor_ >= 0, "a removed partial file is begun again first");
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with_errno("write", path_, errno);
    size_ += count;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void PartialFile::sync() {
  if (descriptor_ >= 0 && ::fsync(descriptor_) != 0) fail_with_errno("write", path_, errno);
}

void PartialFile::remove() {
  close();
  remove_file(path_);
  remove_file(record_);
  size_ = 0;
  etag_.clear();
}

void keep_partial_file(const std::filesystem::path& path) {
  const std::filesystem::path partial = partial_path(path);
  if (::rename(partial.c_str(), path.c_str()) != 0) fail_with_errno("write", path, errno);
  sync_directory(path.parent_path());
  remove_file(record_path(path));
}

}  // namespace heed
