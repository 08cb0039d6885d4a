#include "server/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/utf8.h"
#include "heed/version.h"
#include "server/completions.h"
#include "server/embeddings.h"
#include "server/exchange.h"
#include "server/fields.h"
#include "server/openapi.h"
#include "server/sampling_fields.h"
#include "server/translations.h"

namespace heed::server {
namespace {

OrderedJson model_json(const ServedModel& model, const std::string& name) {
  return {{"id", name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "heed"},
          {"meta",
           {{"n_vocab", model.vocabulary},
            {"n_ctx_train", model.context},
            {"n_embd", model.channels},
            {"n_params", model.parameters}}}};
}

Reply list_models(const ServedModel& model) {
  OrderedJson data = OrderedJson::array();
  for (const std::string& name : model.names) data.push_back(model_json(model, name));
  return json_reply({{"object", "list"}, {"data", std::move(data)}});
}

Reply describe_model(const Request& request, const ServedModel& model) {
  const std::string& name = request.in_path("model");
  if (std::ranges::find(model.names, name) == model.names.end()) {
    return error_reply(
        404, ErrorDetails{.message = fmt::format("there is no model '{}' here, only '{}'",
                                                 name.substr(0, 100), model.names.front()),
                          .param = "model",
                          .code = "model_not_found"});
  }
  return json_reply(model_json(model, name));
}

constexpr std::int64_t max_tokenized = std::int64_t{1} << 20;  // of POST /tokenize

Reply props(const Context& context) {
  const CompletionLimits limits = context.completion_limits();
  OrderedJson defaults = sampling_json(SamplingOptions{});
  defaults["max_tokens"] = default_max_tokens;
  return json_reply({{"default_generation_settings",
                      {{"n_ctx", context.scheduler.context()}, {"params", std::move(defaults)}}},
                     {"sampling_options", sampling_table_json()},
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

// Appends a token's text, or its bytes if they are not valid UTF-8, in llama.cpp's format.
void append_piece(const LoadedModel& model, std::int32_t token, std::string& text) {
  const std::string bytes = model.token_bytes(token);
  if (is_valid_utf8(bytes)) {
    text += Json(bytes).dump();
    return;
  }
  char before = '[';
  for (const char byte : bytes) {
    text += fmt::format("{}{}", before, static_cast<unsigned char>(byte));
    before = ',';
  }
  text += ']';
}

// The reply is written as text: a document would take ten times its memory.
Reply tokenize(const Request& request, const Context& context) {
  std::vector<std::int32_t> ids;
  bool with_pieces = false;
  {
    const Json body = request.json();
    const Fields fields(body);
    const std::string content = fields.string("content").value_or("");
    const EncodeOptions options{.special_tokens = fields.boolean("parse_special").value_or(true),
                                .add_beginning = fields.boolean("add_special").value_or(false)};
    with_pieces = fields.boolean("with_pieces").value_or(false);
    ids = context.model.require_tokenizer().encode(content, options);
  }
  require_field(std::ssize(ids) <= max_tokenized, "content", field_code::invalid_value,
                "content has {} tokens; at most {} are given in one reply", ids.size(),
                max_tokenized);
  std::string text = R"({"tokens":[)";
  for (const std::int32_t id : ids) {
    if (text.back() != '[') text += ',';
    if (with_pieces) {
      text += fmt::format(R"({{"id":{},"piece":)", id);
      append_piece(context.model, id, text);
      text += '}';
    } else {
      text += std::to_string(id);
    }
  }
  return text_reply(text + "]}", "application/json");
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

// With the translator that is held beside the model.
void add_translations(Router& router, const Context& context) {
  if (HeldTranslator* const held = context.translator) {
    return register_translations(
        router, {.translator = [held]() -> const LoadedModel& { return held->get(); },
                 .compute = context.compute,
                 .metrics = context.metrics,
                 .created = context.created});
  }
  router.add("POST", "/v1/translations", [&context](const Request&) {
    return error_reply(422, fmt::format("'{}' continues texts and does not translate: POST "
                                        "/v1/completions, or serve a translator",
                                        context.name));
  });
}

}  // namespace

void register_operation(Router& router, const Metrics& metrics) {
  router.add("GET", "/health", [](const Request&) { return json_reply({{"status", "ok"}}); });
  router.add("GET", "/metrics", [&metrics](const Request&) {
    return text_reply(metrics.text(), "text/plain; version=0.0.4; charset=utf-8");
  });
  router.add("GET", "/openapi.json", [](const Request&) {
    return text_reply(std::string(openapi_document()), "application/json");
  });
}

void register_models(Router& router, ServedModel model) {
  const auto served = std::make_shared<const ServedModel>(std::move(model));
  router.add("GET", "/v1/models", [served](const Request&) { return list_models(*served); });
  router.add("GET", "/v1/models/{model...}",
             [served](const Request& request) { return describe_model(request, *served); });
}

void register_service(Router& router, Context& context) {
  register_operation(router, context.metrics);
  const StackSpecification& config = context.model.transformer.specification();
  std::vector<std::string> names{context.name};
  names.insert(names.end(), context.aliases.begin(), context.aliases.end());
  register_models(router, {.names = std::move(names),
                           .created = context.created,
                           .vocabulary = config.vocabulary_size,
                           .context = config.context,
                           .channels = config.channels,
                           .parameters = context.model.transformer.parameters().size()});
  router.add("GET", "/props", [&context](const Request&) { return props(context); });
  router.add("POST", "/tokenize",
             [&context](const Request& request) { return tokenize(request, context); });
  router.add("POST", "/detokenize",
             [&context](const Request& request) { return detokenize(request, context); });
  router.add("POST", "/v1/completions",
             [&context](const Request& request) { return complete(request, context); });
  router.add("POST", "/v1/chat/completions",
             [&context](const Request& request) { return complete_chat(request, context); });
  router.add("POST", "/v1/embeddings",
             [&context](const Request& request) { return embed(request, context); });
  add_translations(router, context);
}

}  // namespace heed::server
