// Export of named arrays for notebooks, spreadsheets and scripts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "tensor/view.h"

namespace heed {

// The header of a .npy file, version 1.0 (NumPy Enhancement Proposal 1) for elements in C order,
// such as "<f4": magic, length of the description, and the description, padded with spaces so that
// the elements start at a multiple of 64 bytes.
std::string npy_header(std::string_view element_type, std::span<const std::int64_t> shape);

// Borrows contiguous elements, which must outlive the writing of the file.
struct NamedArray {
  std::string name;
  std::variant<View<const float>, View<const std::int32_t>> values;

  const Shape& shape() const;
};

// Metadata as free text: "model", "text", ...
using ArrayNotes = std::map<std::string, std::string>;

enum class ArrayFormat {
  npz,          // NumPy: numpy.load(path)[name]; notes are a JSON document in the array "notes"
  safetensors,  // notes are its __metadata__
  json,  // {"notes": {…}, "arrays": {name: nested lists}}; null where a number is not finite
  csv,   // one element per line: array, index in each dimension, value; no notes
};

// The format of an extension: .npz, .safetensors, .json or .csv. Throws Error{invalid_argument} for
// another extension.
ArrayFormat array_format(const std::filesystem::path& path);

// Writes all arrays atomically, in the format of the extension. Floats are exact in npz and
// safetensors, and in json and csv as their shortest round-trip decimal. Throws
// Error{invalid_argument} for no arrays, an empty or repeated name or another extension,
// Error{input_output} with the system's reason.
void write_arrays(const std::filesystem::path& path, std::span<const NamedArray> arrays,
                  const ArrayNotes& notes = {});

}  // namespace heed
