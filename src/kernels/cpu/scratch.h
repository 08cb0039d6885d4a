// Working memory of a thread: grows to the largest request and is reused, so that the hot path
// allocates nothing.
#pragma once

#include <cstddef>

namespace heed::kernels {

// Separate buffers for what is in use at the same time.
enum class Scratch {
  item,    // one item of a parallel loop; a product's block of A
  memory,  // a head's keys and values, copied together; a product's block of B
  shared,  // what all items of a loop share, owned by the thread that started it
};

// At least `count` floats aligned to 64 bytes, with arbitrary contents, valid until the same thread
// asks for the same buffer again.
float* scratch(Scratch use, std::size_t count);

}  // namespace heed::kernels
