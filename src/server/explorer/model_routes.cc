// The model: its shape and vocabulary.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "engine/views/reading_json.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "heed/version.h"
#include "server/explorer/model_json.h"
#include "server/explorer/state.h"
#include "server/fields.h"

namespace heed::server {
namespace {

// Of POST /api/tokenize, more than a page can show: each is a JSON object of its own.
constexpr std::int64_t max_tokenized = std::int64_t{1} << 15;

// The longest text whose trace fits the budget.
std::int64_t max_prompt_tokens(const State& state, const LoadedModel& model) {
  const Architecture& architecture = model.transformer.architecture();
  std::int64_t fits = 0;
  std::int64_t fails = model.transformer.specification().context + 1;
  while (fails - fits > 1) {
    const std::int64_t middle = (fits + fails) / 2;
    const bool has_room = TraceStore::bytes_needed(architecture, middle) <= state.traces.budget();
    (has_room ? fits : fails) = middle;
  }
  return fits;
}

Reply describe_model(State& state, const Request& request) {
  const ChosenModel chosen = state.model_of(request);
  const LoadedModel& model = *chosen.model;
  const StackSpecification& config = model.transformer.specification();
  return json_reply(
      {{"name", chosen.model->name},
       {"embedded",
        model.embedded_name.empty() ? OrderedJson(nullptr) : OrderedJson(model.embedded_name)},
       {"version", version},
       {"dimensions", dimensions_json(config)},
       {"activation", activation_name(config.block.feed_forward.activation)},
       {"tied", config.tied_unembedding},
       {"architecture", architecture_json(config)},
       {"dtype", kernels::weight_format_name(model.transformer.parameters().prepared_format())},
       {"has_tokenizer", model.tokenizer != nullptr},
       {"read", read_json(model.reading)},
       {"examples", examples_json(model)},
       {"limits",
        {{"prompt_tokens", max_prompt_tokens(state, model)},
         {"trace_bytes", state.traces.budget()}}},
       {"runs", state.runs.names()}});
}

Reply tokenize(State& state, const Request& request) {
  const Json body = request.json();
  const Fields fields(body);
  fields.expect_only({"text", "model"});
  const ChosenModel chosen = state.pool.named(fields.string("model").value_or(""));
  const LoadedModel& model = *chosen.model;
  const std::string text = fields.required_string("text");
  const std::vector<std::int32_t> ids = model.require_tokenizer().encode(text);
  require_field(std::ssize(ids) <= max_tokenized, "text", field_code::invalid_value,
                "text has {} tokens; at most {} are given in one reply", ids.size(), max_tokenized);
  return json_reply({{"tokens", tokens_json(model, ids)},
                     {"read", read_json(model.reading)},
                     {"unread", unread_json(unread_in(model, text))}});
}

// Exact matches of `wanted` first, then prefix matches, then substring matches.
std::vector<std::int32_t> find_tokens(const LoadedModel& model, const std::string& wanted,
                                      std::size_t limit) {
  const std::string needle = ascii_lower(wanted);
  std::vector<std::pair<int, std::int32_t>> found;
  const auto count = static_cast<std::int32_t>(model.transformer.specification().vocabulary_size);
  for (std::int32_t id = 0; id < count; ++id) {
    const std::string text = ascii_lower(token_text(model, id));
    const std::size_t at = text.find(needle);
    if (at == std::string::npos) continue;
    const bool begins = at == 0 || (at == 1 && text.front() == ' ');
    const bool whole = begins && text.size() - at == needle.size();
    found.emplace_back(whole ? 0 : begins ? 1 : 2, id);
  }
  std::ranges::sort(found);
  std::vector<std::int32_t> ids;
  for (const auto& [rank, id] : std::span(found).first(std::min(limit, found.size()))) {
    ids.push_back(id);
  }
  return ids;
}

Reply vocabulary(State& state, const Request& request) {
  const ChosenModel chosen = state.model_of(request);
  const LoadedModel& model = *chosen.model;
  if (const auto wanted = request.parameter("find")) {
    const auto limit = static_cast<std::size_t>(bounded(request, "limit", 20, 1, 1000));
    return json_reply({{"tokens", tokens_json(model, find_tokens(model, *wanted, limit))}});
  }
  OrderedJson texts = OrderedJson::array();
  const auto count = static_cast<std::int32_t>(model.transformer.specification().vocabulary_size);
  for (std::int32_t id = 0; id < count; ++id) texts.push_back(token_text(model, id));
  return json_reply({{"tokens", std::move(texts)}});
}

}  // namespace

void add_model_routes(StateRoutes& routes) {
  routes.add("GET", "/api/model", describe_model);
  routes.add("POST", "/api/tokenize", tokenize);
  routes.add("GET", "/api/vocabulary", vocabulary);
}

}  // namespace heed::server
