#include "download/download_file.h"

#include "base/error.h"
#include "download/partial_file.h"

namespace heed {
namespace {

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

void download_file(HttpClient& client, const RemoteFile& file, const std::filesystem::path& path,
                   const DownloadOptions& options) {
  constexpr int most_downloads = 2;
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
    require(downloads < most_downloads, ErrorCode::corrupt_data,
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
