// Fields of a config.json, read with errors that name the document, the field and the value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/json_fwd.h"
#include "model/architecture.h"

namespace heed {

class ConfigFields {
 public:
  // A copy: an object within a document may be a temporary. `sources` names, by field, where a
  // value is from that another document gave.
  ConfigFields(Json object, std::string source, std::map<std::string, std::string> sources = {})
      : object_(std::move(object)), source_(std::move(source)), sources_(std::move(sources)) {
    require(object_.is_object(), ErrorCode::corrupt_data, "{}: expected a JSON object", source_);
  }

  const std::string& source() const { return source_; }
  const std::string& source_of(const char* key) const {
    const auto found = sources_.find(key);
    return found == sources_.end() ? source_ : found->second;
  }
  const Json& object() const { return object_; }
  bool has(const char* key) const { return find(key) != nullptr; }

  std::int64_t integer(const char* key) const {
    require(has(key), ErrorCode::corrupt_data, "{}: '{}' is missing", source_, key);
    return integer_of(*find(key), key);
  }
  // Of a value of the field `key`. Whole numbers may be written as 8192.0.
  std::int64_t integer_of(const Json& value, const char* key,
                          std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                          std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  std::int64_t integer_or(const char* key, std::int64_t otherwise) const {
    return has(key) ? integer(key) : otherwise;
  }
  // A field of several names. Throws Error{corrupt_data} where two of them contradict each other.
  std::int64_t integer_under(std::initializer_list<const char*> keys) const;
  double real_or(const char* key, double otherwise) const {
    return has(key) ? json_real(*find(key), label(key)) : otherwise;
  }
  float number_or(const char* key, float otherwise) const {
    return has(key) ? static_cast<float>(json_real(*find(key), label(key))) : otherwise;
  }
  bool boolean_or(const char* key, bool otherwise) const {
    return has(key) ? json_boolean(*find(key), label(key)) : otherwise;
  }
  std::string text_or(const char* key, const char* otherwise) const {
    return has(key) ? json_string(*find(key), label(key)) : otherwise;
  }
  // An object within the document; empty where it is absent or null.
  ConfigFields object_or_empty(const char* key) const {
    return {has(key) ? *find(key) : Json::object(), source_ + ": " + key};
  }
  const Json& at(const char* key) const { return *find(key); }

  // The id of a token, at least 0 and below `vocabulary_size`; −1 where it is absent.
  std::int64_t token_or_none(const char* key, std::int64_t vocabulary_size) const {
    return has(key) ? integer_of(*find(key), key, 0, vocabulary_size - 1) : -1;
  }

  // Options that heed would compute differently: they must be false, or absent.
  void refuse(std::initializer_list<const char*> keys) const {
    for (const char* const key : keys) {
      require(!boolean_or(key, false), ErrorCode::unsupported,
              "{}: '{}' is true; heed does not support it", source_, key);
    }
  }
  // The reverse: options that must be true, or absent.
  void need(std::initializer_list<const char*> keys) const {
    for (const char* const key : keys) {
      require(boolean_or(key, true), ErrorCode::unsupported,
              "{}: '{}' is false; heed does not support it", source_, key);
    }
  }

 private:
  // Null counts as absent.
  const Json* find(const char* key) const { return find_json_member(object_, key); }
  JsonLabel label(const char* key) const { return {fmt::format("{}: '{}'", source_of(key), key)}; }

  const Json object_;
  std::string source_;
  std::map<std::string, std::string> sources_;
};

// Of Hugging Face's names ("gelu_new", "gelu", "relu", "silu", and their synonyms). Throws
// Error{unsupported} naming `key` for another.
Activation activation_from_name(const ConfigFields& fields, const char* key, const char* otherwise);

// Checks what can be checked before other values are derived from it: what is impossible in a
// document is corrupt data.
struct ConfigExtent {
  const char* name;
  std::int64_t value;
  std::int64_t most = max_extent;
};
void require_config_extents(const ConfigFields& fields,
                            std::initializer_list<ConfigExtent> extents);

// Through a decimal of seven digits, so that 1e-5F is written as 1e-05 and not 9.99999974e-06.
double short_decimal(float value);

// The fields of rotary positions, shared by the formats that have them. `context` is that of the
// config: what a scaling begins from, unless it names another. `rope_theta` and `rope_scaling`, or
// `rope_parameters`. Throws Error{unsupported} for a scaling that heed does not know.
// Of longrope, `original_max_position_embeddings` stands outside.
void read_rotary(const ConfigFields& fields, std::int64_t context, RotarySpecification& rotary);
// `rope_scaling`, where there is one.
void write_rotary_scaling(const RotarySpecification& rotary, OrderedJson& json);

}  // namespace heed
