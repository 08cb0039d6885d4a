// Files that gzip compressed.
#pragma once

#include <filesystem>
#include <string>

namespace heed {

// The whole content, of all members. Throws the errors of RegularFile, and Error{corrupt_data} for
// a file that is no gzip file, is damaged or ends early, or whose content is larger than `largest`
// bytes.
std::string read_gzip_file(const std::filesystem::path& path, std::size_t largest = SIZE_MAX);

}  // namespace heed
