// Named arrays written to a file that other programs read: for notebooks, spreadsheets and scripts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <variant>

#include "tensor/view.h"

namespace heed {

// Borrows contiguous elements; they must stay until the file is written.
struct NamedArray {
  std::string name;
  std::variant<View<const float>, View<const std::int32_t>> values;

  const Shape& shape() const;
};

// What the arrays are about: "model", "text", ... Free text.
using ArrayNotes = std::map<std::string, std::string>;

enum class ArrayFormat {
  npz,          // NumPy's: numpy.load(path)[name]; notes are a JSON document in the array "notes"
  safetensors,  // notes are its __metadata__
  json,  // {"notes": {…}, "arrays": {name: nested lists}}; null where a number is not finite
  csv,   // one number a line: array, index in each dimension, value; without notes
};

// By the extension: .npz, .safetensors, .json or .csv. Throws Error{invalid_argument} for another.
ArrayFormat array_format(const std::filesystem::path& path);

// Writes all arrays in the format of the extension, as a whole or not at all. Floats keep every
// bit in npz and safetensors, and their shortest exact digits in json and csv. Throws
// Error{invalid_argument} for no arrays, an empty or repeated name or another extension,
// Error{input_output} with the system's reason.
void write_arrays(const std::filesystem::path& path, std::span<const NamedArray> arrays,
                  const ArrayNotes& notes = {});

}  // namespace heed
