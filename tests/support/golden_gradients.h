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
  StoredModel(format, architecture, RoundedParts{}).read(open_tensor_source(path), expected);
  std::filesystem::remove(path);
  return expected;
}

}  // namespace heed::testing
