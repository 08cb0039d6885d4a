// Working memory of a thread: grows to the largest request and is reused, so that the hot path
// allocates nothing.
#pragma once

#include <cstddef>

namespace heed::kernels {

// Buffers that may be in use at the same time.
enum class Scratch {
  item,    // one item of a parallel loop; a product's block of A
  memory,  // a head's packed keys and values; a product's block of B
  shared,  // shared by all items of a loop, owned by the thread that started it
};

// At least `count` floats aligned to 64 bytes, uninitialised, valid until the next call for the
// same buffer on the same thread.
float* scratch(Scratch use, std::size_t count);

}  // namespace heed::kernels
