#include "download/hub_repository.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json_fields.h"
#include "download/hub_name.h"

namespace heed {
namespace {

constexpr std::int64_t largest_file = std::int64_t{1} << 44;  // sums of many do not overflow

ContentHash read_hash(const Json& value, HashKind kind, const std::string& label) {
  const std::string hex = json_string(value, {label});
  require(is_hash(kind, hex), ErrorCode::corrupt_data,
          "{} must be a {} hash in hexadecimal digits, not {}", label, hash_kind_name(kind),
          shown_json(value));
  return {.kind = kind, .hex = hex};
}

const Json& hub_field(const Json& object, const char* key, const std::string& source) {
  const Json* const value = find_json_member(object, key);
  require(value != nullptr, ErrorCode::corrupt_data, "{}: '{}' is missing", source, key);
  return *value;
}

HubFile read_hub_file(const Json& sibling, const std::string& source) {
  HubFile file;
  file.name = json_string(hub_field(sibling, "rfilename", source), {source + ": 'rfilename'"});
  require(is_safe_repository_path(file.name), ErrorCode::corrupt_data,
          "{}: the file name {} is refused: it leaves the repository or has control characters",
          source, shown_json(file.name));
  const std::string label = source + ": " + file.name + ": ";
  if (const Json* const size = find_json_member(sibling, "size")) {
    file.size = json_integer(*size, {label + "'size'"}, 0, largest_file);
  }
  if (const Json* const lfs = find_json_member(sibling, "lfs")) {
    file.hash =
        read_hash(hub_field(*lfs, "sha256", label + "'lfs'"), HashKind::sha256, label + "'sha256'");
    const std::int64_t size = json_integer(hub_field(*lfs, "size", label + "'lfs'"),
                                           {label + "'size' of 'lfs'"}, 0, largest_file);
    require(file.size < 0 || file.size == size, ErrorCode::corrupt_data,
            "{}'size' is {}, but that of 'lfs' is {}", label, file.size, size);
    file.size = size;
  } else if (const Json* const blob = find_json_member(sibling, "blobId")) {
    file.hash = read_hash(*blob, HashKind::git_blob, label + "'blobId'");
  }
  return file;
}

}  // namespace

const HubFile* HubRepository::find(std::string_view name) const {
  const auto found = std::ranges::find(files, name, &HubFile::name);
  return found == files.end() ? nullptr : &*found;
}

HubRepository parse_hub_repository(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source);
  HubRepository repository;
  const Json& sha = hub_field(document, "sha", source);
  repository.commit = json_string(sha, {source + ": 'sha'"});
  // A commit and a blob have names of one form.
  require(is_hash(HashKind::git_blob, repository.commit), ErrorCode::corrupt_data,
          "{}: 'sha' must be a commit, 40 hexadecimal digits, not {}", source, shown_json(sha));
  const Json& siblings = hub_field(document, "siblings", source);
  require(siblings.is_array(), ErrorCode::corrupt_data, "{}: 'siblings' must be an array, not {}",
          source, shown_json(siblings));
  std::set<std::string_view> names;
  repository.files.reserve(siblings.size());  // the names stay where they are
  for (const Json& sibling : siblings) {
    repository.files.push_back(read_hub_file(sibling, source));
    const std::string& name = repository.files.back().name;
    require(names.insert(name).second, ErrorCode::corrupt_data, "{}: the file {} is listed twice",
            source, shown_json(name));
  }
  return repository;
}

}  // namespace heed
