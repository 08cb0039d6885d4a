// Files and directories that a process which a signal ends removes first.
#pragma once

namespace heed {

// Notes a path that remove_unfinished() removes, borrowed until it is forgotten: before it exists,
// since a signal may come at any time. Paths beyond a fixed number are not noted. Never throws.
void note_unfinished(const char* path) noexcept;
// The path exists now. Where the process is ending, removes it again and waits for the end.
void created_unfinished(const char* path) noexcept;
// The path is complete, or was removed.
void forget_unfinished(const char* path) noexcept;

// Removes noted files and, if they are empty then, noted directories: a signal handler may call it.
// The process must end afterwards.
void remove_unfinished() noexcept;

}  // namespace heed
