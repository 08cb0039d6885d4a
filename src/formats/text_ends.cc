#include "formats/text_ends.h"

#include <algorithm>
#include <map>

namespace heed {
namespace {

constexpr const char* token_fields[] = {"bos_token_id", "eos_token_id", "pad_token_id",
                                        "decoder_start_token_id"};
// Options of generation: a file that is for it says them by leaving them out.
constexpr const char* forced_fields[] = {"forced_bos_token_id", "forced_eos_token_id"};

constexpr std::size_t max_ends = 4096;  // published models have up to ten

}  // namespace

ConfigFields led_by_generation(const ConfigFields& config, const ConfigFields& generation) {
  Json led = config.object();
  std::map<std::string, std::string> sources;
  const auto take = [&](const char* key) {
    led[key] = generation.has(key) ? generation.at(key) : Json();
    sources[key] = generation.source();
  };
  for (const char* const key : token_fields) {
    if (generation.has(key)) take(key);
  }
  for (const char* const key : forced_fields) take(key);
  return {std::move(led), config.source(), std::move(sources)};
}

std::vector<std::int64_t> read_end_tokens(const ConfigFields& fields,
                                          std::int64_t vocabulary_size) {
  std::vector<std::int64_t> tokens;
  if (!fields.has("eos_token_id")) return tokens;
  const Json& stored = fields.at("eos_token_id");
  require(!stored.is_array() || stored.size() <= max_ends, ErrorCode::corrupt_data,
          "{}: eos_token_id lists {} tokens; expected at most {}", fields.source_of("eos_token_id"),
          stored.size(), max_ends);
  for (const Json& token : stored.is_array() ? stored : Json::array({stored})) {
    const std::int64_t id = fields.integer_of(token, "eos_token_id");
    require(id >= -1, ErrorCode::corrupt_data,
            "{}: eos_token_id is {}, outside the vocabulary of {}",
            fields.source_of("eos_token_id"), id, vocabulary_size);
    const bool is_known = std::ranges::find(tokens, id) != tokens.end();
    if (id >= 0 && id < vocabulary_size && !is_known) tokens.push_back(id);
  }
  return tokens;
}

std::int64_t read_end_of_text(const ConfigFields& fields, std::int64_t vocabulary_size) {
  const std::vector<std::int64_t> tokens = read_end_tokens(fields, vocabulary_size);
  return tokens.empty() ? -1 : tokens.front();
}

std::int64_t read_beginning_of_text(const ConfigFields& fields, std::int64_t vocabulary_size) {
  const std::int64_t id = fields.integer_or("bos_token_id", -1);
  return id >= 0 && id < vocabulary_size ? id : -1;
}

void read_special_tokens(const ConfigFields& fields, Architecture& architecture) {
  const std::int64_t vocabulary = architecture.decoder().vocabulary_size;
  architecture.padding = fields.token_or_none("pad_token_id", vocabulary);
  architecture.decoder_start = fields.token_or_none("decoder_start_token_id", vocabulary);
  if (architecture.decoder_start < 0) {
    architecture.decoder_start = read_beginning_of_text(fields, vocabulary);
  }
  architecture.forced_first = fields.token_or_none("forced_bos_token_id", vocabulary);
  architecture.forced_last = fields.token_or_none("forced_eos_token_id", vocabulary);
  for (StackSpecification& stack : architecture.stacks) {
    stack.end_of_text = read_end_of_text(fields, stack.vocabulary_size);
  }
  architecture.other_ends = read_end_tokens(fields, vocabulary);
  if (!architecture.other_ends.empty()) {
    architecture.other_ends.erase(architecture.other_ends.begin());
  }
}

void write_special_tokens(const Architecture& architecture, OrderedJson& json) {
  const auto write = [&](const char* key, std::int64_t token) {
    json[key] = token >= 0 ? OrderedJson(token) : OrderedJson(nullptr);
  };
  write("pad_token_id", architecture.padding);
  write("decoder_start_token_id", architecture.decoder_start);
  if (architecture.forced_first >= 0) json["forced_bos_token_id"] = architecture.forced_first;
  if (architecture.forced_last >= 0) json["forced_eos_token_id"] = architecture.forced_last;
  json["eos_token_id"] =
      written_end_tokens(architecture.decoder().end_of_text, architecture.other_ends);
}

OrderedJson written_end_tokens(std::int64_t end_of_text,
                               const std::vector<std::int64_t>& other_ends) {
  if (end_of_text < 0) return nullptr;
  if (other_ends.empty()) return end_of_text;
  OrderedJson list = OrderedJson::array({end_of_text});
  for (const std::int64_t other : other_ends) list.push_back(other);
  return list;
}

}  // namespace heed
