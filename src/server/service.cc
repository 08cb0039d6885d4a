#include "server/service.h"

#include "base/error.h"
#include "heed/version.h"
#include "server/completions.h"
#include "server/embeddings.h"
#include "server/fields.h"
#include "server/openapi.h"
#include "tokenizer/utf8.h"

namespace heed::server {
namespace {

OrderedJson model_json(const Context& context) {
  const GptConfig& config = context.model.gpt.config();
  return {{"id", context.name},
          {"object", "model"},
          {"created", context.created},
          {"owned_by", "heed"},
          {"meta",
           {{"n_vocab", config.vocabulary_size},
            {"n_ctx_train", config.context},
            {"n_embd", config.channels},
            {"n_params", context.model.gpt.parameters().all().size()}}}};
}

Reply props(const Context& context) {
  const CompletionLimits limits = context.completion_limits();
  return json_reply({{"default_generation_settings",
                      {{"n_ctx", context.scheduler.context()},
                       {"params",
                        {{"max_tokens", 16},
                         {"temperature", 1.0},
                         {"top_k", 0},
                         {"top_p", 1.0},
                         {"min_p", 0.0},
                         {"repeat_penalty", 1.0},
                         {"repeat_last_n", -1},
                         {"presence_penalty", 0.0},
                         {"frequency_penalty", 0.0}}}}},
                     {"total_slots", context.options.scheduler.parallel},
                     {"model_path", context.name},
                     {"build_info", std::string("heed ") + version},
                     {"limits",
                      {{"prompt_tokens", limits.prompts.tokens},
                       {"max_tokens", limits.max_tokens},
                       {"prompts", limits.prompts.most},
                       {"choices", limits.choices},
                       {"body_bytes", context.options.gate.max_body_bytes},
                       {"connections", context.options.http.max_connections},
                       {"request_seconds", context.options.http.request_time.count()}}}});
}

// A token's text, or its bytes where they are no whole characters, as llama.cpp gives them.
OrderedJson piece_json(const LoadedModel& model, std::int32_t token) {
  const std::string bytes = model.token_bytes(token);
  if (is_valid_utf8(bytes)) return bytes;
  OrderedJson list = OrderedJson::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return list;
}

Reply tokenize(const Request& request, const Context& context) {
  const Json body = request.json();
  const Fields fields(body);
  const std::string content = fields.string("content").value_or("");
  const EncodeOptions options{.special_tokens = fields.boolean("parse_special").value_or(true)};
  const auto ids = context.model.require_tokenizer().encode(content, options);
  OrderedJson tokens = OrderedJson::array();
  const bool with_pieces = fields.boolean("with_pieces").value_or(false);
  for (const std::int32_t id : ids) {
    if (with_pieces) {
      tokens.push_back({{"id", id}, {"piece", piece_json(context.model, id)}});
    } else {
      tokens.push_back(id);
    }
  }
  return json_reply({{"tokens", std::move(tokens)}});
}

Reply detokenize(const Request& request, const Context& context) {
  const Json body = request.json();
  const Tokenizer& tokenizer = context.model.require_tokenizer();
  const auto ids = Fields(body).required_token_ids("tokens", tokenizer.vocabulary_size());
  TextStream stream;  // valid UTF-8 of any bytes
  std::string content = stream.push(tokenizer.decode(ids));
  content += stream.finish();
  return json_reply({{"content", content}});
}

}  // namespace

void register_service(Router& router, Context& context) {
  router.add("GET", "/health", [](const Request&) { return json_reply({{"status", "ok"}}); });
  router.add("GET", "/metrics", [&context](const Request&) {
    return text_reply(context.metrics.text(), "text/plain; version=0.0.4; charset=utf-8");
  });
  router.add("GET", "/props", [&context](const Request&) { return props(context); });
  router.add("GET", "/openapi.json", [](const Request&) {
    return text_reply(std::string(openapi_document()), "application/json");
  });
  router.add("POST", "/tokenize",
             [&context](const Request& request) { return tokenize(request, context); });
  router.add("POST", "/detokenize",
             [&context](const Request& request) { return detokenize(request, context); });
  router.add("GET", "/v1/models", [&context](const Request&) {
    return json_reply({{"object", "list"}, {"data", OrderedJson::array({model_json(context)})}});
  });
  router.add("GET", "/v1/models/{model}", [&context](const Request& request) {
    check_model_name({{"model", request.in_path("model")}}, context.name);
    return json_reply(model_json(context));
  });
  router.add("POST", "/v1/completions",
             [&context](const Request& request) { return complete(request, context); });
  router.add("POST", "/v1/embeddings",
             [&context](const Request& request) { return embed(request, context); });
}

}  // namespace heed::server
