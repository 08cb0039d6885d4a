#include "download/download_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace heed {
namespace {

bool may_pass(const HttpReply& reply) {
  return !reply.failure.empty() || reply.status == 408 || reply.status == 429 ||
         (reply.status >= 500 && reply.status <= 599);
}

// Why a try failed, such as "the server answers 503".
std::string failure_text(const HttpReply& reply) {
  if (!reply.failure.empty()) return reply.failure;
  return fmt::format("the server answers {}", reply.status);
}

constexpr std::size_t max_record = 1 << 16;

std::filesystem::path record_path(const std::filesystem::path& path) {
  return partial_path(path).string() + ".json";
}

// Weak ones, W/"…", do not say that bytes are the same.
bool is_strong_etag(std::string_view etag) { return etag.size() >= 2 && etag.starts_with('"'); }

constexpr std::int64_t bytes_of_progress = 1 << 20;  // after as many, tries are counted anew

// Appends the body of a reply to the partial file, if it is the rest of that file.
class FileBody : public HttpBody {
 public:
  FileBody(const RemoteFile& file, PartialFile& partial, const ProgressCallback& progress)
      : file_(file), partial_(partial), progress_(progress) {}

  bool begin(const HttpReply& reply) override {
    if (reply.status == 206) {
      if (!partial_.etag().empty() && !reply.etag.empty() && reply.etag != partial_.etag()) {
        partial_.remove();
        return false;
      }
      require_range(reply);
    } else {
      partial_.restart(reply.etag);
    }
    const std::int64_t rest = file_.size - partial_.size();
    if (reply.length && *reply.length != rest) {
      refuse_bytes(fmt::format("announces {} bytes instead of {}", *reply.length, rest));
    }
    return true;
  }

  void write(std::string_view bytes) override {
    if (static_cast<std::int64_t>(bytes.size()) > file_.size - partial_.size()) {
      refuse_bytes(fmt::format("sends more than the {} bytes of the file", file_.size));
    }
    partial_.append(bytes);
    if (progress_) progress_({"downloading " + file_.name, partial_.size(), file_.size});
  }

 private:
  void require_range(const HttpReply& reply) {
    if (!reply.range) refuse_bytes("sends a part of the file without saying which");
    if (reply.range->first != partial_.size() || reply.range->total != file_.size) {
      refuse_bytes(fmt::format("sends the bytes from {} of {} instead of those from {} of {}",
                               reply.range->first, reply.range->total, partial_.size(),
                               file_.size));
    }
    if (partial_.size() == 0) partial_.restart(reply.etag);
  }

  [[noreturn]] void refuse_bytes(const std::string& what) {
    partial_.remove();
    fail(ErrorCode::corrupt_data, "cannot download {}: the server {}", file_.name, what);
  }

  const RemoteFile& file_;
  PartialFile& partial_;
  const ProgressCallback& progress_;
};

HttpRequest request_rest(const RemoteFile& file, const PartialFile& partial) {
  if (partial.size() == 0 || partial.etag().empty()) return {.url = file.url};
  return {.url = file.url, .begin = partial.size(), .if_range = partial.etag()};
}

void fetch_rest(HttpClient& client, const RemoteFile& file, PartialFile& partial,
                const DownloadOptions& options) {
  Retries retries(options.retry, file.name, client.options().stop);
  if (file.size == 0) partial.restart("");
  while (partial.size() < file.size) {
    const std::int64_t before = partial.size();
    FileBody body(file, partial, options.progress);
    HttpReply reply = client.get(request_rest(file, partial), body);
    if (partial.size() == file.size) return;
    if (options.refuse) options.refuse(reply);
    if (reply.status == 416) {  // the server's file is shorter than what is there
      partial.remove();
      reply.failure = "the server has no bytes from " + std::to_string(before);
    }
    if (reply.failure.empty() && (reply.status == 200 || reply.status == 206)) {
      reply.failure = fmt::format("{} of {} bytes arrived", partial.size(), file.size);
    }
    if (partial.size() - before >= bytes_of_progress) retries.restart();
    retries.wait(reply);
  }
}

}  // namespace

Retries::Retries(const RetryOptions& options, std::string what, StopFlag stop)
    : options_(options), what_(std::move(what)), stop_(stop) {}

void Retries::wait(const HttpReply& reply) {
  ++failures_;
  require(may_pass(reply), ErrorCode::input_output, "cannot download {}: {}", what_,
          failure_text(reply));
  require(failures_ < options_.max_tries, ErrorCode::input_output,
          "cannot download {} after {} tries: {}; the next try continues where this one ended",
          what_, failures_, failure_text(reply));
  if (reply.retry_after) {
    require(*reply.retry_after <= options_.max_retry_after, ErrorCode::input_output,
            "cannot download {} now: {} and asks to wait for {} seconds; try again then", what_,
            failure_text(reply), reply.retry_after->count());
    return pause(*reply.retry_after);
  }
  std::chrono::milliseconds delay = options_.first_delay;
  for (int i = 1; i < failures_ && delay < options_.max_delay; ++i) delay *= 2;
  pause(std::min(delay, options_.max_delay));
}

void Retries::pause(std::chrono::milliseconds delay) const {
  if (options_.waiting) options_.waiting(delay);
  if (options_.pause) return options_.pause(delay);
  constexpr std::chrono::milliseconds between_stops{100};
  const auto end = std::chrono::steady_clock::now() + delay;
  for (auto now = end - delay; now < end; now = std::chrono::steady_clock::now()) {
    require(!stop_requested(stop_), ErrorCode::interrupted, "stopped while waiting to try again");
    std::this_thread::sleep_for(
        std::min(between_stops, std::chrono::ceil<std::chrono::milliseconds>(end - now)));
  }
}

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
    const Json record = parse_json(read_text_file(record_, max_record), record_.string());
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

void download_file(HttpClient& client, const RemoteFile& file, const std::filesystem::path& path,
                   const DownloadOptions& options) {
  constexpr int max_downloads = 2;
  PartialFile partial(path, file.size, file.hash);
  for (int downloads = 1;; ++downloads) {
    require_free_space(path.parent_path(), file.size - partial.size());
    fetch_rest(client, file, partial, options);
    partial.sync();
    const ContentHash hash = hash_file(partial.path(), file.hash.kind,
                                       {.progress = options.progress,
                                        .what = "verifying " + file.name,
                                        .stop = client.options().stop});
    if (hash == file.hash) return;
    partial.remove();
    require(downloads < max_downloads, ErrorCode::corrupt_data,
            "cannot download {}: its {} hash is {}, but the hub lists {}; it was removed",
            file.name, hash_kind_name(hash.kind), hash.hex, file.hash.hex);
  }
}

void require_free_space(const std::filesystem::path& directory, std::int64_t bytes) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  if (error || bytes <= 0) return;  // writing will tell
  require(static_cast<std::uintmax_t>(bytes) <= space.available, ErrorCode::input_output,
          "{} more bytes are needed in '{}', but only {} are free", bytes, directory.string(),
          space.available);
}

}  // namespace heed
