// Removes directories from error messages, so that clients see only file names.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/error.h"

namespace heed::server {

// Returns `message` with paths in `directory` made relative to it, and `directory` replaced by its
// last component.
std::string without_directory(std::string message, const std::filesystem::path& directory);

// Returns the result of `read`. Its errors pass through without_directory, and errors of the file
// system become an Error without the path. A file of the wrong type is corrupt data, not an invalid
// request.
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
