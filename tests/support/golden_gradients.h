// Gradients of golden files, in heed's arena: tensors "PREFIX.NAME" with the names of a
// format, read like a file of weights.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "formats/stored_tensors.h"

namespace heed::testing {

inline Parameters golden_gradients(const SafetensorsFile& file, const Architecture& architecture,
                                   const Format& format, const std::string& prefix = "gradient.") {
  std::vector<OutgoingTensor> renamed;
  for (const TensorEntry& entry : file.tensors()) {
    if (!entry.name.starts_with(prefix)) continue;
    renamed.push_back({.name = entry.name.substr(prefix.size()),
                       .shape = entry.shape,
                       .produce = [&entry](const ByteSink& sink) { sink(entry.bytes); }});
  }
  const auto path = std::filesystem::temp_directory_path() /
                    fmt::format("heed-gradients-{}.safetensors", ::getpid());
  write_safetensors(path, renamed);
  Parameters expected(architecture);
  // The gradient of a gain is that of the gain less 1.
  Format as_they_are = format;
  as_they_are.tensors = [&format](const Architecture& of) {
    std::vector<StoredTensor> tensors = format.tensors(of);
    for (StoredTensor& tensor : tensors) {
      if (tensor.storage == Storage::less_one) tensor.storage = Storage::straight;
    }
    return tensors;
  };
  StoredModel(as_they_are, architecture, RoundedParts{}).read(open_tensor_source(path), expected);
  std::filesystem::remove(path);
  return expected;
}

}  // namespace heed::testing
