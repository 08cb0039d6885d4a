#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

#include "cli/run.h"

namespace {

// Address space that the constructors of shared libraries need, several times over: libpixman's
// ends the process by a signal where it cannot allocate.
constexpr long needed_by_libraries = 1 << 20;

// Runs before those constructors. System calls alone: neither they nor a sanitizer are ready.
void require_memory_for_libraries() {
  const long block = ::syscall(SYS_mmap, nullptr, needed_by_libraries, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block != -1) {
    ::syscall(SYS_munmap, block, needed_by_libraries);
    return;
  }
  constexpr std::string_view message = "heed: out of memory\n";
  ::syscall(SYS_write, STDERR_FILENO, message.data(), message.size());
  ::syscall(SYS_exit_group, 1);
}

__attribute__((section(".preinit_array"),
               used)) void (*before_libraries)() = require_memory_for_libraries;

}  // namespace

int main(int argc, char** argv) { return heed::cli::run(argc, argv); }
