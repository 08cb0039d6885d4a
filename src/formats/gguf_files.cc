#include "formats/gguf_files.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "formats/gguf_config.h"
#include "formats/gguf_tokenizer.h"

namespace heed {
namespace {

constexpr std::string_view ending = ".gguf";

using RequireKind = void(const Format& format, const std::string& source);

GgufModel described(std::vector<GgufFile> parts, RequireKind* require_kind) {
  // The metadata is read before the parts move, the tensors after that: the maps stay in place.
  const GgufFile& first = parts.front();
  const std::string source = first.source();
  std::unordered_map<std::string_view, TensorEntry> entries;
  for (const GgufFile& part : parts) {
    for (const GgufTensor& tensor : part.tensors()) entries.emplace(tensor.name, entry_of(tensor));
  }
  Json config = gguf_config(first, [&](std::string_view name) -> const TensorEntry* {
    const auto found = entries.find(name);
    return found == entries.end() ? nullptr : &found->second;
  });
  const ConfigFields fields(config, source);
  const Format& format = format_of_config(fields);
  if (require_kind != nullptr) require_kind(format, source);
  Architecture architecture = read_described(format, fields);
  const GgufFamily& family = *find_gguf_family_of(config["model_type"].get<std::string>());
  return {.source = source,
          .format = gguf_format(family, format),
          .config = std::move(config),
          .architecture = std::move(architecture),
          .tensors = std::make_shared<const TensorSource>(std::move(parts))};
}

}  // namespace

bool is_gguf_path(const std::filesystem::path& path) { return path.extension() == ending; }

std::string gguf_model_name(const std::filesystem::path& path) {
  std::string name = path.stem().string();
  constexpr std::string_view part = "-00001-of-00001";
  const std::size_t begin = name.size() - std::min(name.size(), part.size());
  const auto is_like = [&](std::size_t i) {
    const char c = name[begin + i];
    return part[i] >= '0' && part[i] <= '9' ? c >= '0' && c <= '9' : c == part[i];
  };
  bool is_part = begin > 0;
  for (std::size_t i = 0; is_part && i < part.size(); ++i) is_part = is_like(i);
  if (is_part) name.resize(begin);
  return name;
}

GgufModel open_gguf_model(const std::filesystem::path& path,
                          void (*require_kind)(const Format& format, const std::string& source)) {
  return described(open_gguf_parts(path), require_kind);
}

SourceFiles read_gguf_source_files(const std::filesystem::path& path) {
  SourceFiles files;
  std::vector<GgufFile> parts = open_gguf_parts(path);
  if (const auto tokenizer = read_gguf_tokenizer(parts.front())) {
    for (TokenizerFile& file : tokenizer->files()) {
      files.companions.push_back({std::move(file.name), std::move(file.content)});
    }
  }
  const Json config = gguf_tokenizer_config(parts.front());
  if (!config.empty()) files.companions.push_back({tokenizer_config_name, config.dump(2) + "\n"});
  files.config = OrderedJson(described(std::move(parts), nullptr).config);
  return files;
}

}  // namespace heed
