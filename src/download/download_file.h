// Downloads one file whose size and hash are known, continuing what an earlier try left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/content_hash.h"
#include "base/progress.h"
#include "download/http_client.h"
#include "download/retries.h"

namespace heed {

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
