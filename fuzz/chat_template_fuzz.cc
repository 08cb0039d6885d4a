// libFuzzer target: any chat template with any conversation gives a text or a heed::Error, within
// its limits. The input is a template, a NUL, and JSON of the messages, which may be absent.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "allowed_errors.h"
#include "base/json.h"
#include "chat/chat_template.h"
#include "heed/error.h"

namespace {

using heed::OrderedJson;

constexpr std::size_t max_output = 1 << 16;

OrderedJson usual_messages() {
  return OrderedJson::array(
      {{{"role", "system"}, {"content", " Be brief. "}},
       {{"role", "user"}, {"content", "Größe \"1\"?\n"}},
       {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {{{"id", 7}, {"n", 1.5}}}}}});
}

OrderedJson messages_of(std::string_view bytes) {
  if (bytes.empty()) return usual_messages();
  return heed::parse_json(bytes, "messages");
}

// The parts of a rendering are its text, in turn from the template and from the conversation.
void check_parts(const std::vector<heed::chat::ChatPart>& parts, std::string_view text) {
  std::string joined;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].text.empty() || parts[i].origin == heed::chat::Origin::end_mark) std::abort();
    if (i > 0 && parts[i].origin == parts[i - 1].origin) std::abort();
    joined += parts[i].text;
  }
  if (joined != text) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t nul = std::min(input.find('\0'), input.size());
  heed::fuzz::allow_errors([&] {
    const heed::chat::ChatTemplate chat_template(input.substr(0, nul), "fuzzed");
    heed::chat::ChatInput given;
    given.messages = messages_of(input.substr(std::min(nul + 1, input.size())));
    given.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    given.tools = OrderedJson::array({{{"name", "f"}, {"parameters", OrderedJson::object()}}});
    given.strftime_now = [](const std::string& format) { return format; };
    heed::chat::RenderLimits limits;
    limits.steps = 20'000;
    limits.text_bytes = 1 << 20;
    limits.output_bytes = max_output;
    given.variables = {{"enable_thinking", false}, {"documents", OrderedJson::array()}};
    for (const auto end : {heed::chat::ChatEnd::reply_begun, heed::chat::ChatEnd::turn_open}) {
      given.end = end;
      const std::string text = chat_template.render(given, limits);
      if (text.size() > max_output) std::abort();
      check_parts(chat_template.render_parts(given, limits), text);
    }
  });
  return 0;
}
