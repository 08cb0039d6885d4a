// Files in errors as a reader of the page sees them: by name, without where they lie.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/error.h"

namespace heed::server {

// `message` with what lies in `directory` named from there on, and `directory` by its last part.
std::string without_directory(std::string message, const std::filesystem::path& directory);

// What `read` gives; the errors that it throws go through without_directory. What the file system
// says becomes an Error without the path.
template <class Read>
auto naming_files_from(const std::filesystem::path& directory, Read&& read) {
  try {
    return std::forward<Read>(read)();
  } catch (const Error& error) {
    throw Error(error.code(), without_directory(error.what(), directory));
  } catch (const std::filesystem::filesystem_error& error) {
    fail(ErrorCode::input_output, "cannot read '{}': {}", directory.filename().string(),
         error.code().message());
  }
}

}  // namespace heed::server
