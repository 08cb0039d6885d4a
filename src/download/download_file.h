// Downloads one file whose size and hash are known, continuing what an earlier try left.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/content_hash.h"
#include "base/progress.h"
#include "download/http_client.h"

namespace heed {

// A request is tried again when it failed for a reason that may pass.
struct RetryOptions {
  int max_tries = 6;                            // in a row without progress
  std::chrono::milliseconds first_delay{500};   // doubled at each try
  std::chrono::milliseconds max_delay{16'000};  // of those that are not asked for
  std::chrono::seconds max_retry_after{300};    // a server that asks for more is not waited for
  std::function<void(std::chrono::milliseconds)> pause;    // waits; empty: by the clock
  std::function<void(std::chrono::milliseconds)> waiting;  // called before it; may be empty
};

// Counts the tries of one download.
class Retries {
 public:
  // `what` is downloaded, for messages. `options` outlives this object.
  Retries(const RetryOptions& options, std::string what, StopFlag stop);

  // Returns after the time to wait if another try may succeed: the transfer broke off, or the
  // status is 408, 429 or 5xx. Otherwise, and after the last try, throws Error{input_output}; and
  // Error{interrupted} when it is stopped.
  void wait(const HttpReply& reply);

  // A try brought something: the next failure is the first again.
  void restart() { failures_ = 0; }

 private:
  void pause(std::chrono::milliseconds delay) const;

  const RetryOptions& options_;
  std::string what_;
  StopFlag stop_;
  int failures_ = 0;
};

// A download that is not finished: PATH.partial, and PATH.partial.json, which says of what.
std::filesystem::path partial_path(const std::filesystem::path& path);

// Both files stay when the object is destroyed, so that a later one continues. The directory is
// locked by the caller.
class PartialFile {
 public:
  // Opens what an earlier download of the same content left, or begins an empty file. `size` and
  // `hash` are those of the whole. Throws Error{input_output}.
  PartialFile(const std::filesystem::path& path, std::int64_t size, const ContentHash& hash);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  const std::filesystem::path& path() const { return path_; }  // PATH.partial
  std::int64_t size() const { return size_; }                  // bytes that are there
  // Names the version on the server, for If-Range; empty where the server gave none that says that
  // bytes are the same.
  const std::string& etag() const { return etag_; }

  void restart(const std::string& etag);  // begins again, with the bytes of this version
  void append(std::string_view bytes);
  void sync();    // flushes all bytes to disk
  void remove();  // both files; then restart() begins again

 private:
  void open();
  void close();
  bool read_record();
  void write_record() const;

  std::filesystem::path path_;
  std::filesystem::path record_;
  ContentHash hash_;
  std::string etag_;
  std::int64_t size_ = 0;
  int descriptor_ = -1;
};

// Renames PATH.partial to PATH and removes its record. Throws Error{input_output}.
void keep_partial_file(const std::filesystem::path& path);

struct RemoteFile {
  std::string name;  // for messages
  std::string url;
  std::int64_t size = 0;
  ContentHash hash;
};

struct DownloadOptions {
  RetryOptions retry;
  ProgressCallback progress;  // in bytes
  // Throws for replies whose status it can explain.
  std::function<void(const HttpReply&)> refuse;
};

// Leaves the whole file, verified, as partial_path(path); keep_partial_file(path) renames it. Bytes
// that are there are asked for no more, as long as the server still has the same version (Range,
// If-Range). What does not have the hash is removed and downloaded once more. Throws what
// HttpClient::get and Retries::wait throw, Error{input_output} where the disk has no space for the
// rest, and Error{corrupt_data} for lengths, ranges or a hash that contradict `file`; the partial
// file is then removed, and kept after every other error.
void download_file(HttpClient& client, const RemoteFile& file, const std::filesystem::path& path,
                   const DownloadOptions& options);

// Throws Error{input_output} unless the file system of `directory` has space for `bytes` more.
void require_free_space(const std::filesystem::path& directory, std::int64_t bytes);

}  // namespace heed
