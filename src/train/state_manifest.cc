#include "train/state_manifest.h"

#include <cmath>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/json_fields.h"

namespace heed {
namespace {

constexpr std::size_t largest_manifest = std::size_t{1} << 26;  // bytes: of 300,000 shards

// The members of an object, with errors that name the file.
class Members {
 public:
  Members(const Json& object, const std::string& source) : object_(object), source_(source) {
    require(object.is_object(), ErrorCode::corrupt_data, "{}: expected an object, not {}", source,
            shown_json(object));
  }

  bool has(const char* key) const { return find_json_member(object_, key) != nullptr; }
  const Json& at(const char* key) const {
    const Json* const value = find_json_member(object_, key);
    require(value != nullptr, ErrorCode::corrupt_data, "{}: the manifest has no '{}'", source_,
            key);
    return *value;
  }
  std::int64_t count(const char* key) const { return json_integer(at(key), label(key), 0); }
  double real(const char* key) const { return json_real(at(key), label(key)); }
  bool boolean(const char* key) const { return json_boolean(at(key), label(key)); }
  std::string text(const char* key) const { return json_string(at(key), label(key)); }

 private:
  JsonLabel label(const char* key) const { return {source_ + ": '" + key + "'"}; }

  const Json& object_;
  const std::string& source_;
};

ShardFile read_shard(const Json& json, const std::string& source) {
  const Members members(json, source);
  ShardFile shard{.name = members.text("file"),
                  .bytes = members.count("bytes"),
                  .sha256 = members.text("sha256")};
  const bool is_name = !shard.name.empty() && shard.name.find('/') == std::string::npos &&
                       shard.name.find('\0') == std::string::npos && shard.name.front() != '.';
  require(is_name, ErrorCode::corrupt_data, "{}: '{}' is not the name of a shard", source,
          shard.name);
  require(is_hash(HashKind::sha256, shard.sha256), ErrorCode::corrupt_data,
          "{}: '{}' is not a SHA-256 in hexadecimal", source, shard.sha256);
  return shard;
}

}  // namespace

std::string state_manifest_text(const StateManifest& manifest) {
  const RunPosition& position = manifest.position;
  OrderedJson json;
  json["run"] = manifest.run;
  json["step"] = position.step;
  json["evaluated"] = position.evaluated;
  json["epoch"] = position.data.epoch;
  json["index"] = position.data.index;
  json["best_cost"] = json_number(position.best_cost);  // null: none yet
  json["best_step"] = position.best_step;
  json["seconds"] = position.seconds;
  json["numbers"] = manifest.numbers;
  json["shards"] = OrderedJson::array();
  for (const ShardFile& shard : manifest.shards) {
    json["shards"].push_back(
        {{"file", shard.name}, {"bytes", shard.bytes}, {"sha256", shard.sha256}});
  }
  return json.dump(2) + "\n";
}

StateManifest parse_state_manifest(std::string_view text, const std::string& source) {
  const Json json = parse_json(text, source);
  const Members members(json, source);
  StateManifest manifest{
      .position = {.step = members.count("step"),
                   .evaluated = members.boolean("evaluated"),
                   .data = {.epoch = members.count("epoch"), .index = members.count("index")},
                   .best_step = members.count("best_step"),
                   .seconds = members.real("seconds")},
      .run = members.text("run"),
      .numbers = members.count("numbers"),
      .shards = {}};
  if (members.has("best_cost")) manifest.position.best_cost = members.real("best_cost");
  const Json& shards = members.at("shards");
  require(shards.is_array() && !shards.empty(), ErrorCode::corrupt_data,
          "{}: 'shards' must be a list of files, not {}", source, shown_json(shards));
  for (const Json& shard : shards) manifest.shards.push_back(read_shard(shard, source));
  return manifest;
}

StateManifest read_state_manifest(const std::filesystem::path& file) {
  return parse_state_manifest(read_text_file(file, largest_manifest), file.string());
}

}  // namespace heed
