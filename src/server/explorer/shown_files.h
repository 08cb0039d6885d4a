// Files in errors as clients see them: by name, without their directory.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/error.h"

namespace heed::server {

// `message` with paths in `directory` made relative to it, and `directory` by its last part.
std::string without_directory(std::string message, const std::filesystem::path& directory);

// The result of `read`; the errors that it throws go through without_directory, and those of the
// file system become an Error without the path. A file of the wrong kind is damaged data, not a
// fault of the request.
template <class Read>
auto naming_files_from(const std::filesystem::path& directory, Read&& read) {
  try {
    return std::forward<Read>(read)();
  } catch (const Error& error) {
    const bool is_wrong_kind = error.code() == ErrorCode::invalid_argument;
    throw Error(is_wrong_kind ? ErrorCode::corrupt_data : error.code(),
                without_directory(error.what(), directory));
  } catch (const std::filesystem::filesystem_error& error) {
    fail(ErrorCode::input_output, "cannot read '{}': {}", directory.filename().string(),
         error.code().message());
  }
}

}  // namespace heed::server
