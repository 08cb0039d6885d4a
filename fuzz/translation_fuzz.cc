// Any body of POST /v1/translations: translations, or a refusal with one JSON message. The model is
// a tiny one.
//
// The first byte chooses what stands around the rest: bytes alone would seldom come so far.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/json.h"
#include "server/translations.h"
#include "support/small_translator.h"

namespace heed::server {
namespace {

struct TranslatingServer {
  LoadedModel translator;
  Compute compute;
  Metrics metrics;
  TranslationContext context{.translator = translator,
                             .name = "tiny",
                             .aliases = {},
                             .compute = compute,
                             .metrics = metrics,
                             .created = 0,
                             .limits = {.inputs = 4, .beams = 8}};
  Router router;

  static LoadedModel make() {
    TranslationTokenizers tokenizers = heed::testing::small_joint_vocabulary();
    Transformer model = heed::testing::small_translator(tokenizers);
    return {.name = "tiny",
            .transformer = std::move(model),
            .tokenizer = std::move(tokenizers.target),
            .source_tokenizer = std::move(tokenizers.source)};
  }
  TranslatingServer() : translator(make()) { register_translation_service(router, context); }
};

struct TranslationFrame {
  std::string_view before;
  std::string_view after;
};
constexpr std::array<TranslationFrame, 4> translation_frames{{
    {"", ""},
    {R"({"max_tokens":2,"input":")", "\"}"},
    {R"({"input":["a",)", R"(],"max_tokens":2})"},
    {R"({"input":"the dog","max_tokens":2,)", "}"},
}};

}  // namespace
}  // namespace heed::server

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace heed::server;
  static TranslatingServer server;
  if (size == 0) return 0;
  const TranslationFrame& frame = translation_frames[data[0] % translation_frames.size()];
  Request request = parse_request("POST", "/v1/translations");
  request.body = std::string(frame.before) +
                 std::string(reinterpret_cast<const char*>(data) + 1, size - 1) +
                 std::string(frame.after);
  const Reply reply = server.router.handle(std::move(request));
  const heed::Json body = heed::parse_json(reply.body, "reply");
  if (reply.status == 200) {
    if (body.at("choices").empty()) std::abort();
  } else if (reply.status != 400 || body.at("error").at("message").get<std::string>().empty()) {
    std::abort();
  }
  return 0;
}
