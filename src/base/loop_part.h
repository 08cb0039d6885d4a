// What a thread does in a parallel loop.
#pragma once

#include <cstddef>
#include <span>

namespace heed {

// Computes part number `part` of a loop.
using LoopPart = void (*)(void* loop, int part);

// What the calling thread will read once it has waited for other threads: it asks memory for these
// bytes meanwhile, a cache line at a time, as far as it comes. Replaces those of before; none are
// read here, so that they need not exist for longer than the call.
void fetch_while_waiting(std::span<const std::byte> bytes);

}  // namespace heed
