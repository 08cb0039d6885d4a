// What a thread does in a parallel loop.
#pragma once

#include <cstddef>
#include <span>

namespace heed {

// Computes part number `part` of a loop.
using LoopPart = void (*)(void* loop, int part);

// Bytes that the calling thread will read after it has waited for other threads: it prefetches them
// while it waits, one cache line at a time, until the wait ends. Replaces the previous range. The
// bytes are never dereferenced, so that they may be freed at any time.
void fetch_while_waiting(std::span<const std::byte> bytes);

}  // namespace heed
