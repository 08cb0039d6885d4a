// Pairs of lines from any bytes, as two files, as one with tabs, or compressed: they are read whole
// or refused with an Error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "train/pair_data.h"

namespace {

namespace fs = std::filesystem;

// One directory, as one process is one fuzzer.
const fs::path& pair_directory() {
  static const fs::path path = [] {
    std::string pattern = (fs::temp_directory_path() / "heed-fuzz-pairs-XXXXXX").string();
    return fs::path(mkdtemp(pattern.data()));
  }();
  return path;
}

fs::path put_file(const char* name, std::string_view text) {
  const fs::path file = pair_directory() / name;
  std::FILE* const out = std::fopen(file.c_str(), "wb");
  if (out == nullptr) std::abort();
  std::fwrite(text.data(), 1, text.size(), out);
  std::fclose(out);
  return file;
}

void read_pairs(const std::vector<fs::path>& files) {
  try {
    const heed::PairText text(files);
    if (text.size() < 1) std::abort();
    for (std::int64_t pair = 0; pair < text.size(); ++pair) {
      for (const heed::PairSide side : {heed::PairSide::source, heed::PairSide::target}) {
        const std::string_view line = text.line(side, pair);
        if (line.empty() || !heed::is_valid_utf8(line)) std::abort();
        if (line.find('\n') != std::string_view::npos) std::abort();
        if (text.place(side, pair).empty()) std::abort();
      }
    }
  } catch (const heed::Error&) {
  }
}

}  // namespace

// The first byte says how the others are read; two files are divided at the first zero.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0: read_pairs({put_file("pairs.tsv", text)}); break;
    case 1: read_pairs({put_file("pairs.tsv.gz", text)}); break;
    default: {
      const std::size_t middle = std::min(text.find('\0'), text.size());
      const std::string_view rest = text.substr(std::min(middle + 1, text.size()));
      read_pairs({put_file("source", text.substr(0, middle)), put_file("target", rest)});
    }
  }
  return 0;
}
