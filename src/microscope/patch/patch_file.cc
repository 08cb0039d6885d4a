#include "microscope/patch/patch_file.h"

#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace heed {

PatchFile::PatchFile(std::filesystem::path path, std::string key)
    : path_(std::move(path)), key_(std::move(key)) {}

std::int64_t PatchFile::read(std::vector<double>& values) const {
  if (path_.empty() || !std::filesystem::exists(path_)) return 0;
  const Json document = parse_json(read_text_file(path_), path_.string());
  const bool is_ours = document.is_object() && document.contains("patch") &&
                       document["patch"].is_string() && document.contains("cells") &&
                       document["cells"].is_array();
  require(is_ours, ErrorCode::corrupt_data, "{} does not hold the cells of a patching sweep",
          path_.string());
  require(document["patch"] == key_ && document["cells"].size() == values.size(),
          ErrorCode::conflict,
          "{} holds the cells of another patching sweep; remove it or name another file",
          path_.string());
  std::int64_t known = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Json& cell = document["cells"][i];
    require(cell.is_number() || cell.is_null(), ErrorCode::corrupt_data,
            "cell {} of {} is neither a number nor null", i, path_.string());
    if (cell.is_null()) continue;
    values[i] = cell.get<double>();
    ++known;
  }
  return known;
}

void PatchFile::write(const std::vector<double>& values) const {
  if (path_.empty()) return;
  OrderedJson cells = OrderedJson::array();
  for (const double value : values) {
    cells.push_back(std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr));
  }
  write_text_file(path_, OrderedJson{{"patch", key_}, {"cells", std::move(cells)}}.dump() + "\n");
}

}  // namespace heed
