// The files of a ZIP archive that are stored as they are.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace heed {

// By name. Throws Error{corrupt_data} for what is no archive, or one whose parts lie outside of it,
// and Error{unsupported} for one in several volumes and for files that are compressed or encrypted.
std::map<std::string, std::span<const std::byte>> read_zip_directory(
    std::span<const std::byte> bytes, const std::string& source);

}  // namespace heed
