#include "chat/chat_template.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/tokenizer_config.h"
#include "chat/evaluator.h"
#include "chat/syntax.h"
#include "chat/value.h"

namespace heed::chat {
namespace {

Value strftime_function(Runtime& runtime, const ChatInput& input) {
  return runtime.new_callable("strftime_now", [&runtime, &input](const Arguments& given) {
    if (given.positional.size() != 1 || !given.named.empty()) {
      runtime.fail("strftime_now() takes a format");
    }
    const Text format = to_text(runtime, given.positional[0]);
    if (format.size() > max_date_format) {
      runtime.fail("the format of a date has up to {} bytes, not {}", max_date_format,
                   format.size());
    }
    return runtime.text(input.strftime_now(std::string(format.bytes())));
  });
}

Evaluator::Variables globals(Runtime& runtime, const ChatInput& input) {
  Evaluator::Variables variables;
  for (const auto& [name, value] : input.variables.items()) {
    variables.insert_or_assign(name, json_value(runtime, value));
  }
  const Value messages = messages_value(runtime, input.messages);
  if (input.end == ChatEnd::turn_open) mark_last_content(runtime, messages);
  variables.insert_or_assign("messages", messages);
  variables.insert_or_assign("tools", json_value(runtime, input.tools));
  variables.insert_or_assign("add_generation_prompt", Value(input.end == ChatEnd::reply_begun));
  variables.emplace("documents", None{});
  for (const auto& [name, token] : input.special_tokens) {
    variables.insert_or_assign(name, runtime.text(token));
  }
  if (input.strftime_now) {
    variables.insert_or_assign("strftime_now", strftime_function(runtime, input));
  }
  return variables;
}

// The text before the last end mark, without any others. Where the template strips contents, white
// space before the mark goes, too.
Text up_to_mark(const Runtime& runtime, const Text& text) {
  std::size_t end = text.size();
  while (end > 0 && text.origin(end - 1) != Origin::end_mark) --end;
  std::size_t begin = end;
  while (begin > 0 && text.origin(begin - 1) == Origin::end_mark) --begin;
  if (begin == end) {
    runtime.fail("the template does not write the last message, so it cannot be continued");
  }
  const bool is_stripped = text.bytes()[end - 1] != ' ';
  if (is_stripped) begin = size_without_trailing_space(text.bytes().substr(0, begin));
  Text kept;
  for (std::size_t i = 0; i < begin;) {
    std::size_t run = i;
    while (run < begin && text.origin(run) == text.origin(i)) ++run;
    if (text.origin(i) != Origin::end_mark) kept.append(text, i, run - i);
    i = run;
  }
  return kept;
}

void read_named_templates(const Json& list, const std::string& file, FoundChatTemplate& found) {
  for (const Json& named : list) {
    const Json* const name = find_json_member(named, "name");
    const Json* const text = find_json_member(named, "template");
    require(name != nullptr && text != nullptr, ErrorCode::corrupt_data,
            "{}: chat_template must be a list of {{\"name\", \"template\"}}", file);
    const std::string source = json_string(*text, {file + ": a chat template"});
    if (*name == "default") found.source = source;
    if (*name == "tool_use") found.tool_use = source;
  }
}

}  // namespace

struct ChatTemplate::Program {
  Block block;
};

ChatTemplate::ChatTemplate(std::string_view source, std::string name_for_errors)
    : name_(std::move(name_for_errors)),
      program_(std::make_unique<const Program>(Program{parse_template(source, name_)})) {}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&& other) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&& other) noexcept = default;

Text ChatTemplate::rendered(const ChatInput& input, const RenderLimits& limits) const {
  require(input.variables.is_object(), ErrorCode::invalid_argument,
          "{}: the variables of a chat must be a JSON object", name_);
  Runtime runtime(limits, name_);
  Evaluator evaluator(runtime, globals(runtime, input));
  Text text = evaluator.render(program_->block);
  return input.end == ChatEnd::turn_open ? up_to_mark(runtime, text) : text;
}

std::string ChatTemplate::render(const ChatInput& input, const RenderLimits& limits) const {
  return std::string(rendered(input, limits).bytes());
}

std::vector<ChatPart> ChatTemplate::render_parts(const ChatInput& input,
                                                 const RenderLimits& limits) const {
  const Text text = rendered(input, limits);
  std::vector<ChatPart> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && text.origin(end) == text.origin(begin)) ++end;
    parts.push_back({std::string(text.bytes().substr(begin, end - begin)), text.origin(begin)});
    begin = end;
  }
  return parts;
}

std::optional<FoundChatTemplate> find_chat_template(const std::filesystem::path& directory) {
  const std::filesystem::path jinja_path = directory / "chat_template.jinja";
  const TokenizerConfig config(directory);
  if (!std::filesystem::is_regular_file(jinja_path)) return find_chat_template(config);
  FoundChatTemplate found;
  found.special_tokens = config.special_tokens();
  found.name = jinja_path.filename().string();
  found.source = read_text_file(jinja_path, max_template);
  return found;
}

std::optional<FoundChatTemplate> find_chat_template(const TokenizerConfig& config) {
  const std::string& file = config.source();
  FoundChatTemplate found;
  found.special_tokens = config.special_tokens();
  const Json* const published = config.find("chat_template");
  if (published == nullptr) return std::nullopt;
  found.name = "chat_template of tokenizer_config.json";
  if (published->is_array()) {
    read_named_templates(*published, file, found);
    if (found.source.empty()) return std::nullopt;
  } else {
    found.source = json_string(*published, {file + ": chat_template"});
  }
  return found;
}

}  // namespace heed::chat
