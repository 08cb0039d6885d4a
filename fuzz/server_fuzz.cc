// Any method, address, header and body through the gate and the router: a reply with a status and,
// for a refusal, one JSON message; never anything else. The model is a tiny one.
//
// An input is parts that end with a zero byte, and a body. Two bytes in front choose a route, whose
// {names} and query the parts are, and a frame for the body: bytes alone would seldom come so far.
// Where a name is {id}, an empty part is a trace of one text, and "2" one of a source and a target.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "server/explorer.h"
#include "server/gate.h"
#include "server/service.h"
#include "tiny_translator.h"
#include "tokenizer/character_tokenizer.h"

namespace heed::server {
namespace {

LoadedModel tiny_model() {
  // Those of the plain chat template are among them.
  constexpr std::string_view characters = "abcdefgh {}[]\",:0123456789\u00e9UserAistn\n";
  Transformer model({.stacks = {make_gpt_config(1, 2, 8, 16, 64)}});
  model.parameters().initialize(1);
  return {.name = "tiny",
          .transformer = std::move(model),
          .tokenizer = train_character_tokenizer(std::span(&characters, 1))};
}

// With one vocabulary.
LoadedModel loaded_translator() {
  constexpr std::string_view characters = "abcdefgh {}[]\",:0123456789";
  const std::shared_ptr<const Tokenizer> tokenizer =
      train_character_tokenizer(std::span(&characters, 1));
  return {.name = "tiny",
          .transformer = tiny_translator(),
          .tokenizer = tokenizer,
          .source_tokenizer = tokenizer};
}

// Measuring them takes half a minute under the sanitizers.
const TrainingRates known_rates = TrainingRates::uniform(1e11, 1e10);

struct Server {
  LoadedModel model = tiny_model();
  ServeOptions options{.scheduler = {.parallel = 4, .waiting = 16},
                       .explorer = {.trace_budget = 1 << 18,
                                    .rates = {{"f32", known_rates}, {"bf16", known_rates}}}};
  Compute compute;
  Metrics metrics;
  Scheduler scheduler{model, compute, metrics, options.scheduler};
  HeldTranslator translator{loaded_translator};
  Context context{.model = model,
                  .options = options,
                  .name = "tiny",
                  .compute = compute,
                  .metrics = metrics,
                  .scheduler = scheduler,
                  .created = 0,
                  .translator = &translator};
  Gate gate{GateOptions{.api_key = "key", .allowed_origins = {"http://a"}}};
  Router router;
  std::vector<Router::Route> routes;
  Server() {
    register_service(router, context);
    register_explorer(router, context);
    routes = router.routes();
  }
};

class Collector : public StreamWriter {
 public:
  bool write(std::string_view bytes) override {
    size_ += bytes.size();
    return size_ < 4096;  // some clients leave
  }

 private:
  std::size_t size_ = 0;
};

// What stands before the next zero byte.
std::string_view next_part(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\0'), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

std::size_t next_byte(std::string_view& rest) {
  if (rest.empty()) return 0;
  const auto byte = static_cast<unsigned char>(rest.front());
  rest.remove_prefix(1);
  return byte;
}

// The id of a trace that is there.
std::string living_trace(Server& server, const char* texts) {
  Request request = parse_request("POST", "/api/traces");
  request.body = texts;
  const Reply reply = server.router.handle(std::move(request));
  if (reply.status != 200) std::abort();
  return parse_json(reply.body, "reply")["id"];
}

// The route's pattern with parts of the input as its names; an empty one is 0, or a site.
std::string address_of(Server& server, const std::string& pattern, std::string_view& rest) {
  std::string address;
  bool has_two_texts = false;
  for (std::size_t begin = 0; begin < pattern.size();) {
    const std::size_t brace = std::min(pattern.find('{', begin), pattern.size());
    address += pattern.substr(begin, brace - begin);
    if (brace == pattern.size()) break;
    const std::size_t end = pattern.find('}', brace);
    const std::string_view part = next_part(rest);
    const std::string name = pattern.substr(brace + 1, end - brace - 1);
    if (name == "id" && (part.empty() || part == "2")) {
      has_two_texts = !part.empty();
      address += living_trace(
          server, has_two_texts ? R"({"source":"abc","target":"de"})" : R"({"tokens":[1,2,3,4]})");
    } else if (part.empty()) {
      address += name != "site" ? "0" : has_two_texts ? "cross" : "self";
    } else {
      address += part;
    }
    begin = end + 1;
  }
  const std::string_view query = next_part(rest);
  return query.empty() ? address : address + "?" + std::string(query);
}

struct Frame {
  std::string_view before;
  std::string_view after;
};
constexpr std::array<Frame, 12> frames{{
    {"", ""},
    {R"({"text":"abc",)", "}"},
    {R"({"tokens":[1,2,3],)", "}"},
    {R"({"tokens":[1,2,3],"interventions":[{)", "}]}"},
    {R"({"source":"abc","target":"de",)", "}"},
    {R"({"source":"abc","target":"de","interventions":[{)", "}]}"},
    {R"({"text":"ab","max_new_tokens":3,)", "}"},
    {R"({"prompt":"ab","max_tokens":3,)", "}"},
    {R"({"prompt":[[1,2],[3]],"max_tokens":2,"logprobs":2,)", "}"},
    {R"({"input":["a","b"],)", "}"},
    {R"({"messages":[{"role":"user","content":"ab"}],"max_tokens":3,)", "}"},
    {R"({"max_tokens":2,"logprobs":true,"messages":[{"role":"user",)", "}]}"},
}};

void check_reply(const Reply& reply) {
  if (reply.status < 200 || reply.status > 599 || reply.status == 500) std::abort();
  if (reply.status < 400) return;
  const Json error = parse_json(reply.body, "reply")["error"];
  const auto is_text_or_null = [&](const char* name) {
    return error.at(name).is_null() || error.at(name).is_string();
  };
  if (!is_text_or_null("code") || !is_text_or_null("param")) std::abort();
  if (error["message"].get<std::string>().empty()) std::abort();
}

// The head of a request, or none where its address is refused.
std::optional<Request> read_request(Server& server, std::string_view& rest) {
  const std::size_t choice = next_byte(rest);
  try {
    if (choice >= server.routes.size()) {
      const std::string method(next_part(rest));
      return parse_request(method, next_part(rest));
    }
    const Router::Route& route = server.routes[choice];
    return parse_request(route.method, address_of(server, route.pattern, rest));
  } catch (const heed::Error& error) {
    if (error.code() != heed::ErrorCode::invalid_argument) std::abort();
    return std::nullopt;
  }
}

// Whether the gate lets it in.
bool enters(Server& server, const Request& request) {
  std::optional<Reply> refusal = server.gate.check(request);
  if (!refusal) return true;
  server.gate.add_headers(request, *refusal);
  if (refusal->status != 204) check_reply(*refusal);
  return false;
}

void answer(Server& server, const Request& request) {
  const Reply reply = server.router.handle(request);
  check_reply(reply);
  if (!reply.stream) return;
  Collector collector;
  try {
    reply.stream(collector);
  } catch (const heed::Error&) {  // cuts the reply short
  }
}

}  // namespace
}  // namespace heed::server

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace heed::server;
  static Server server;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const Frame& frame = frames[next_byte(rest) % frames.size()];
  std::optional<Request> request = read_request(server, rest);
  if (!request) return 0;
  request->headers = {{"host", "localhost"}, {"authorization", "Bearer key"}};
  const std::string header(next_part(rest));
  const std::string value(next_part(rest));
  if (!header.empty()) request->headers[header] = value;
  if (!enters(server, *request)) return 0;
  request->body = std::string(frame.before) + std::string(rest) + std::string(frame.after);
  answer(server, *request);
  return 0;
}
