// Helpers shared by the file operations of this folder.
#pragma once

#include <filesystem>

namespace heed {

// Throws "cannot ACTION 'PATH': REASON" as Error{not_found} or Error{input_output}.
[[noreturn]] void fail_with_errno(const char* action, const std::filesystem::path& path,
                                  int error_number);

// Flushes a rename in `directory` to disk, so that it survives a power failure, if the file system
// supports it.
void sync_directory(const std::filesystem::path& directory);

}  // namespace heed
