// What an allocation really takes.
#pragma once

#include <cstddef>

namespace heed {

// Bytes that allocate_memory(bytes) takes: large blocks are whole pages.
std::size_t allocated_bytes(std::size_t bytes);

}  // namespace heed
