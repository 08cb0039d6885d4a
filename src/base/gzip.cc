#include <unistd.h>
#include <zlib.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "base/files.h"

namespace heed {
namespace {

struct CloseGzip {
  void operator()(gzFile file) const { gzclose_r(file); }
};
using GzipHandle = std::unique_ptr<gzFile_s, CloseGzip>;

GzipHandle open_gzip(const RegularFile& file, const std::string& name) {
  const int descriptor = dup(file.descriptor());  // closed by zlib
  require(descriptor >= 0, ErrorCode::input_output, "cannot open '{}'", name);
  GzipHandle handle(gzdopen(descriptor, "rb"));
  if (handle == nullptr) close(descriptor);
  require(handle != nullptr, ErrorCode::input_output, "cannot open '{}': not enough memory", name);
  return handle;
}

}  // namespace

std::string read_gzip_file(const std::filesystem::path& path, std::size_t largest) {
  constexpr unsigned part_bytes = 1U << 18;
  const std::string name = path.string();
  const RegularFile file(path);
  GzipHandle handle = open_gzip(file, name);
  gzbuffer(handle.get(), part_bytes);
  std::string content;
  std::string part(part_bytes, '\0');
  for (;;) {
    const int count = gzread(handle.get(), part.data(), part_bytes);
    // zlib hands the bytes of other files through.
    require(gzdirect(handle.get()) == 0, ErrorCode::corrupt_data, "'{}' is not a gzip file", name);
    int code = Z_OK;
    const std::string problem = gzerror(handle.get(), &code);
    require(count >= 0 && (code == Z_OK || code == Z_STREAM_END), ErrorCode::corrupt_data,
            "'{}' is a damaged gzip file: {}", name, problem);
    if (count == 0) break;
    require(content.size() + static_cast<std::size_t>(count) <= largest, ErrorCode::corrupt_data,
            "'{}' holds more than {} bytes", name, largest);
    content.append(part, 0, static_cast<std::size_t>(count));
  }
  return content;
}

}  // namespace heed
