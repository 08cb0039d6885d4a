// What the file operations of this folder share.
#pragma once

#include <filesystem>

namespace heed {

// Throws "cannot ACTION 'PATH': REASON" as Error{not_found} or Error{input_output}.
[[noreturn]] void fail_with_errno(const char* action, const std::filesystem::path& path,
                                  int error_number);

// Makes a rename in `directory` survive a power cut, where the file system can.
void sync_directory(const std::filesystem::path& directory);

}  // namespace heed
