// The bytes of PyTorch's checkpoints, right or wrong, for tests and fuzz targets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed::testing {

inline std::string little_bytes(std::uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) {
    bytes.push_back(i < 8 ? static_cast<char>(value >> (8 * i) & 0xFF) : '\0');
  }
  return bytes;
}

using ZipFiles = std::vector<std::pair<std::string, std::string>>;

// A ZIP archive of files stored by `method`: 0, as they are.
inline std::string zip_of(const ZipFiles& files, std::uint16_t method = 0) {
  std::string bytes, directory;
  for (const auto& [name, content] : files) {
    const std::string sizes = little_bytes(content.size(), 4) + little_bytes(content.size(), 4) +
                              little_bytes(name.size(), 2) + little_bytes(0, 2);
    const std::string how = little_bytes(0, 2) + little_bytes(method, 2) + little_bytes(0, 8);
    directory += "PK\x01\x02" + little_bytes(20, 2) + little_bytes(20, 2) + how + sizes +
                 little_bytes(0, 10) + little_bytes(bytes.size(), 4) + name;
    bytes += "PK\x03\x04" + little_bytes(20, 2) + how + sizes + name + content;
  }
  const std::size_t begin = bytes.size();
  return bytes + directory + "PK\x05\x06" + little_bytes(0, 4) + little_bytes(files.size(), 2) +
         little_bytes(files.size(), 2) + little_bytes(directory.size(), 4) +
         little_bytes(begin, 4) + little_bytes(0, 2);
}

inline std::string pickled_text(std::string_view text) {
  return "X" + little_bytes(text.size(), 4) + std::string(text);
}

// The pickle of a tensor (2, 3), which is some of the numbers of storage "0".
struct PickledTensor {
  std::string storage = "FloatStorage";
  std::uint8_t offset = 0;
  std::uint8_t rows = 2, columns = 3;
  std::uint8_t row_stride = 3;

  std::string text() const {
    const auto small = [](std::uint8_t number) { return "K" + little_bytes(number, 1); };
    return "ctorch._utils\n_rebuild_tensor_v2\n((" + pickled_text("storage") + "ctorch\n" +
           storage + "\n" + pickled_text("0") + pickled_text("cpu") + small(6) + "tQ" +
           small(offset) + small(rows) + small(columns) + "\x86" + small(row_stride) + small(1) +
           "\x86\x89"
           "ccollections\nOrderedDict\n)RtR";
  }
};

// The archive of a dictionary from "weight" to the tensor, with six numbers.
inline std::string torch_bytes(const std::string& pickle, const std::string& numbers) {
  return zip_of({{"archive/data.pkl", pickle},
                 {"archive/byteorder", "little"},
                 {"archive/data/0", numbers},
                 {"archive/version", "3\n"}});
}
inline std::string dictionary_of(const PickledTensor& tensor) {
  return "\x80\x02}q" + little_bytes(0, 1) + pickled_text("weight") + tensor.text() + "s.";
}

}  // namespace heed::testing
