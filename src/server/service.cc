#include "server/service.h"

#include <algorithm>

#include "heed/version.h"
#include "server/completions.h"
#include "server/embeddings.h"
#include "server/fields.h"
#include "server/openapi.h"
#include "server/sampling_fields.h"
#include "tokenizer/utf8.h"

namespace heed::server {
namespace {

OrderedJson model_json(const Context& context, const std::string& name) {
  const GptConfig& config = context.model.gpt.config();
  return {{"id", name},
          {"object", "model"},
          {"created", context.created},
          {"owned_by", "heed"},
          {"meta",
           {{"n_vocab", config.vocabulary_size},
            {"n_ctx_train", config.context},
            {"n_embd", config.channels},
            {"n_params", context.model.gpt.parameters().all().size()}}}};
}

Reply models(const Context& context) {
  OrderedJson data = OrderedJson::array({model_json(context, context.name)});
  for (const std::string& alias : context.aliases) data.push_back(model_json(context, alias));
  return json_reply({{"object", "list"}, {"data", std::move(data)}});
}

Reply model(const Request& request, const Context& context) {
  const std::string& name = request.in_path("model");
  if (name != context.name && std::ranges::find(context.aliases, name) == context.aliases.end()) {
    return error_reply(404, {.message = fmt::format("there is no model '{}' here, only '{}'",
                                                    name.substr(0, 100), context.name),
                             .param = "model",
                             .code = "model_not_found"});
  }
  return json_reply(model_json(context, name));
}

Reply props(const Context& context) {
  const CompletionLimits limits = context.completion_limits();
  OrderedJson defaults = sampling_json(SamplingOptions{});
  defaults["max_tokens"] = default_max_tokens;
  return json_reply({{"default_generation_settings",
                      {{"n_ctx", context.scheduler.context()}, {"params", std::move(defaults)}}},
                     {"chat_template", context.chat_template.name()},
                     {"total_slots", context.options.scheduler.parallel},
                     {"model_path", context.name},
                     {"build_info", std::string("heed ") + version},
                     {"limits",
                      {{"prompt_tokens", limits.prompts.tokens},
                       {"prompts", limits.prompts.most},
                       {"choices", limits.choices},
                       {"body_bytes", context.options.gate.max_body_bytes},
                       {"connections", context.options.http.max_connections},
                       {"request_seconds", context.options.http.request_time.count()}}}});
}

// A token's text, or its bytes if they are not valid UTF-8, in llama.cpp's format.
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
  router.add("GET", "/v1/models", [&context](const Request&) { return models(context); });
  router.add("GET", "/v1/models/{model}",
             [&context](const Request& request) { return model(request, context); });
  router.add("POST", "/v1/completions",
             [&context](const Request& request) { return complete(request, context); });
  router.add("POST", "/v1/chat/completions",
             [&context](const Request& request) { return complete_chat(request, context); });
  router.add("POST", "/v1/embeddings",
             [&context](const Request& request) { return embed(request, context); });
}

}  // namespace heed::server
