#include "base/error.h"
#include "base/files.h"

namespace heed {

std::string read_gzip_file(const std::filesystem::path& path, std::size_t) {
  fail(ErrorCode::unsupported, "'{}' is compressed by gzip: a browser's heed reads text alone",
       path.string());
}

}  // namespace heed
