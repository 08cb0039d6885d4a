// What a file of weights holds, whichever format it has: metadata, tensors, and statistics of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "tensor/shape.h"

namespace heed {

// Of the finite numbers of a tensor; 0 where there is none. Sums are in double, tensor by tensor
// the same for any number of threads.
struct TensorStatistics {
  double minimum = 0;
  double maximum = 0;
  double mean = 0;
  double deviation = 0;  // standard deviation, over all numbers
  std::int64_t zeros = 0;
  std::int64_t not_finite = 0;  // NaN and infinities
};

struct InspectedTensor {
  std::string name;
  std::string_view type;  // as its format calls it: "F32", "Q4_K"
  Shape shape;            // outermost first
  std::int64_t bytes = 0;
  std::optional<TensorStatistics> statistics;  // none unless asked for, and none of integers
};

struct InspectedFile {
  std::string format;                                         // "GGUF 3", "safetensors"
  std::vector<std::string> files;                             // one, or its parts
  std::vector<std::pair<std::string, std::string>> metadata;  // keys and values as shown
  std::vector<InspectedTensor> tensors;

  std::int64_t numbers() const;  // of all tensors
  std::int64_t bytes() const;
};

struct InspectOptions {
  enum class Statistics : std::uint8_t { none, all };
  Statistics statistics = Statistics::none;
  std::size_t max_elements = 8;  // of an array of the metadata that are shown
  ProgressCallback progress = nullptr;
  StopFlag stop = nullptr;
};

// Inspects a safetensors or GGUF file, an index or first part of several, or a directory that holds
// one. Throws what opening it does (checkpoint/tensor_source.h, checkpoint/gguf.h): what comes back
// has passed every check of its format. Throws Error{interrupted}.
InspectedFile inspect_file(const std::filesystem::path& path, const InspectOptions& options = {});

}  // namespace heed
