#include "base/shared_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

constexpr int all_seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

// Of memory that nobody holds by a file, as the system names it below /proc.
std::string link_of(const std::string& name) { return "/memfd:" + name + " (deleted)"; }

// What is mapped at `place`, or anywhere; null where it cannot be.
std::byte* map(int descriptor, std::size_t size, int protection, int flags, void* place = nullptr) {
  void* const mapped = ::mmap(place, size, protection, flags, descriptor, 0);
  if (mapped == MAP_FAILED) return nullptr;
  ::madvise(mapped, size, MADV_HUGEPAGE);  // where memory without a file may have huge pages
  return static_cast<std::byte*>(mapped);
}

// Whether it is this user's, of that size, and can never change.
bool is_whole(int descriptor, std::size_t size) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && status.st_uid == ::geteuid() &&
         static_cast<std::size_t>(status.st_size) == size &&
         ::fcntl(descriptor, F_GET_SEALS) == all_seals;
}

// A descriptor of a process, by its link; below 0 where there is none to read.
int open_link(const fs::path& descriptors, const std::string& link, std::size_t size) {
  std::error_code error;
  for (fs::directory_iterator entry(descriptors, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unreadable;
    if (fs::read_symlink(entry->path(), unreadable) != link || unreadable) continue;
    const int found = ::open(entry->path().c_str(), O_RDONLY | O_CLOEXEC);
    if (found >= 0 && is_whole(found, size)) return found;
    if (found >= 0) ::close(found);
  }
  return -1;
}

bool is_of_this_user(const fs::path& process) {
  struct stat status {};
  return ::stat(process.c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

}  // namespace

bool SharedBytes::are_wanted() {
  const char* const value = std::getenv("HEED_SHARE");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

std::shared_ptr<SharedBytes> SharedBytes::find(const std::string& name, std::size_t size) {
  if (size == 0) return nullptr;
  const std::string link = link_of(name);
  std::error_code error;
  for (fs::directory_iterator process("/proc", error), end; !error && process != end;
       process.increment(error)) {
    const std::string number = process->path().filename().string();
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!is_of_this_user(process->path())) continue;
    const int found = open_link(process->path() / "fd", link, size);
    if (found < 0) continue;
    std::byte* const data = map(found, size, PROT_READ, MAP_SHARED);
    if (data != nullptr) {
      std::shared_ptr<SharedBytes> shared(new SharedBytes(found, data, size));
      shared->is_sealed_ = true;
      return shared;
    }
    ::close(found);
  }
  return nullptr;
}

std::shared_ptr<SharedBytes> SharedBytes::make(const std::string& name, std::size_t size) {
  if (size == 0) return nullptr;
  const int made = ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) return nullptr;
  // All of it now: a page that is missing later would end the process.
  std::byte* data = nullptr;
  if (::ftruncate(made, static_cast<off_t>(size)) == 0 &&
      ::posix_fallocate(made, 0, static_cast<off_t>(size)) == 0) {
    data = map(made, size, PROT_READ | PROT_WRITE, MAP_SHARED);
  }
  if (data == nullptr) {
    ::close(made);
    return nullptr;
  }
  return std::shared_ptr<SharedBytes>(new SharedBytes(made, data, size));
}

SharedBytes::~SharedBytes() {
  ::munmap(data_, size_);
  ::close(descriptor_);
}

// Memory is sealed only while nobody could write to it: while its address is kept by a mapping of
// nothing, whose place one for reading takes afterwards.
void SharedBytes::seal() {
  const std::string own = "/proc/self/fd/" + std::to_string(descriptor_);
  const int readable = ::open(own.c_str(), O_RDONLY | O_CLOEXEC);
  if (readable < 0) return;
  const int fixed = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (map(-1, size_, PROT_NONE, fixed, data_) == nullptr) {
    ::close(readable);
    return;
  }
  is_sealed_ = ::fcntl(descriptor_, F_ADD_SEALS, all_seals) == 0;
  const int access = is_sealed_ ? PROT_READ : PROT_READ | PROT_WRITE;
  const int mapped = is_sealed_ ? readable : descriptor_;
  const bool is_back = map(mapped, size_, access, MAP_SHARED | MAP_FIXED, data_) != nullptr;
  ::close(mapped == readable ? std::exchange(descriptor_, readable) : readable);
  require(is_back, ErrorCode::out_of_memory, "cannot map {} bytes of shared memory", size_);
}

}  // namespace heed
