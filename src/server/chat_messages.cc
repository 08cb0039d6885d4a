#include "server/chat_messages.h"

#include <algorithm>
#include <array>

#include "server/fields.h"

namespace heed::server {
namespace {

constexpr std::size_t max_messages = 4096;
constexpr std::size_t max_tools = 1024;
constexpr std::size_t max_members = 1024;  // of one object that a template gets

// The fields of a request that a template gets as they are. An OrderedJson object compares every
// new name with all others, so that their number is limited before they are kept.
OrderedJson template_fields(std::string_view body) {
  constexpr std::array<std::string_view, 4> names{"messages", "tools", "chat_template_kwargs",
                                                  "documents"};
  std::vector<std::size_t> members;  // of the objects that are open
  bool is_kept = false;              // the field of the request that is being read
  const auto keep = [&](int depth, OrderedJson::parse_event_t event, OrderedJson& parsed) {
    using Event = OrderedJson::parse_event_t;
    if (event == Event::object_start) members.push_back(0);
    if (event == Event::object_end) members.pop_back();
    if (event != Event::key) return true;
    if (depth == 1) {
      const auto& name = parsed.get_ref<const std::string&>();
      return is_kept = std::ranges::find(names, name) != names.end();
    }
    if (!is_kept) return false;
    require_field(++members.back() <= max_members, "messages", field_code::invalid_value,
                  "an object of a chat may have {} members", max_members);
    return true;
  };
  return OrderedJson::parse(body.begin(), body.end(), keep);
}

std::string read_role(const Fields& message, const ChatTemplate& chat_template) {
  const std::string role = message.required_string("role");
  if (chat_template.is_program()) return role;
  constexpr std::array<std::string_view, 5> roles{"system", "developer", "user", "assistant",
                                                  "tool"};
  require_field(std::ranges::find(roles, role) != roles.end(), message.path("role"),
                field_code::invalid_value,
                "role must be system, developer, user, assistant or tool, not \"{}\"",
                role.substr(0, 40));
  return role;
}

std::string read_parts(const Json& parts, const std::string& path) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string part_path = fmt::format("{}[{}]", path, i);
    const Fields part(parts[i], part_path, part_path);
    const std::string type = part.required_string("type");
    require_field(type == "text", part.path("type"), field_code::unsupported,
                  "{} is of type \"{}\"; this model takes text only", part_path,
                  type.substr(0, 40));
    text += part.required_string("text");
  }
  return text;
}

// A message's calls of tools. Clients send the arguments of a function as the text of a JSON
// object, and templates expect the object.
void read_calls(const Fields& message, OrderedJson& shown) {
  const Json& calls = message.required_list("tool_calls");
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", message.path("tool_calls"), i);
    const Fields call(calls[i], path, path);
    if (!call.has("function")) continue;
    call.required_object("function");
    OrderedJson& function = shown.at("tool_calls").at(i).at("function");
    const auto arguments = function.find("arguments");
    if (arguments == function.end() || !arguments->is_string()) continue;
    try {
      const auto& text = arguments->get_ref<const std::string&>();
      parse_json(text, path);  // within its limits
      OrderedJson parsed = template_fields("{\"tools\":" + text + "}").at("tools");
      if (parsed.is_object()) *arguments = std::move(parsed);
    } catch (const Error&) {  // no JSON: it stays a text
    }
  }
}

void read_content(const Fields& message, const std::string& role, bool has_calls,
                  OrderedJson& shown) {
  const Json* const content = message.find("content");
  if (content != nullptr && content->is_array()) {
    shown["content"] = read_parts(*content, message.path("content"));
  } else if (content != nullptr || (role != "assistant" && !has_calls)) {
    shown["content"] = message.required_string("content");
  } else if (!has_calls) {
    shown["content"] = "";
  }
}

// Clients write null for fields that a message does not have. Only a content may be null itself.
void remove_nulls(OrderedJson& message) {
  for (auto field = message.begin(); field != message.end();) {
    const bool goes = field->is_null() && field.key() != "content";
    field = goes ? message.erase(field) : std::next(field);
  }
}

bool is_given(const Fields& fields, const char* name) {
  const Json* const value = fields.find(name);
  return value != nullptr && !value->empty();
}

// A message as the template gets it; `shown` is how the request has it.
OrderedJson read_message(const Fields& message, OrderedJson shown,
                         const ChatTemplate& chat_template, ChatRequestPrompt& request) {
  const bool has_calls = is_given(message, "tool_calls");
  require_field(!is_given(message, "function_call"), message.path("function_call"),
                field_code::unsupported, "function_call is not supported: give tool_calls");
  require_field(
      !has_calls || chat_template.is_program(), message.path("tool_calls"), field_code::unsupported,
      "tool_calls need a model with a chat template in Jinja: give their text as content");
  const std::string role = read_role(message, chat_template);
  read_content(message, role, has_calls, shown);
  if (has_calls) {
    read_calls(message, shown);
  } else {
    shown.erase("tool_calls");
  }
  remove_nulls(shown);
  if (chat_template.is_program()) return shown;
  for (const std::string& name : message.unread())
    if (message.has(name.c_str())) request.ignored.push_back(message.path(name.c_str()));
  return {{"role", role}, {"content", shown["content"]}};
}

void read_messages(const Fields& fields, OrderedJson& given, const ChatTemplate& chat_template,
                   ChatRequestPrompt& request) {
  const Json& list = fields.required_list("messages");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("messages[{}]", i);
    request.prompt.messages.push_back(read_message(
        Fields(list[i], path, path), std::move(given["messages"][i]), chat_template, request));
  }
}

void read_tools(const Fields& fields, OrderedJson& given, ChatPrompt& prompt) {
  if (!is_given(fields, "tools")) return;
  const Json& tools = fields.required_list("tools");
  require_field(tools.size() <= max_tools, "tools", field_code::invalid_value,
                "tools may hold {} tools, not {}", max_tools, tools.size());
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const std::string path = fmt::format("tools[{}]", i);
    Fields(tools[i], path, path);
  }
  const Json* const choice = fields.find("tool_choice");
  if (choice != nullptr && *choice == "none") return;
  require_field(
      choice == nullptr || *choice == "auto", "tool_choice", field_code::unsupported,
      "tool_choice must be \"auto\" or \"none\": whether the model calls a tool is its own "
      "choice");
  prompt.tools = std::move(given["tools"]);
}

void read_variables(const Fields& fields, OrderedJson& given, ChatPrompt& prompt) {
  if (fields.has("chat_template_kwargs")) {
    fields.required_object("chat_template_kwargs");
    prompt.variables = std::move(given["chat_template_kwargs"]);
    for (const char* const name :
         {"messages", "tools", "add_generation_prompt", "continue_final_message"}) {
      require_field(!prompt.variables.contains(name), "chat_template_kwargs",
                    field_code::invalid_value,
                    "{} is a field of the request, not of its chat_template_kwargs", name);
    }
  }
  if (fields.has("documents")) {
    fields.required_list("documents");
    prompt.variables["documents"] = std::move(given["documents"]);
  }
  if (const auto effort = fields.string("reasoning_effort")) {
    prompt.variables["reasoning_effort"] = *effort;
  }
}

chat::ChatEnd read_end(const Fields& fields) {
  const bool continues = fields.boolean("continue_final_message").value_or(false);
  const auto begins_reply = fields.boolean("add_generation_prompt");
  require_field(!continues || !begins_reply.value_or(false), "continue_final_message",
                field_code::invalid_value,
                "continue_final_message and add_generation_prompt exclude each other");
  if (continues) return chat::ChatEnd::turn_open;
  return begins_reply.value_or(true) ? chat::ChatEnd::reply_begun : chat::ChatEnd::turn_ended;
}

}  // namespace

ChatRequestPrompt read_chat_prompt(const Fields& fields, std::string_view body,
                                   const ChatTemplate& chat_template) {
  const Json& list = fields.required_list("messages");
  require_field(!list.empty() && list.size() <= max_messages, fields.path("messages"),
                field_code::invalid_value, "messages must hold 1 to {} messages, not {}",
                max_messages, list.size());
  ChatRequestPrompt request;
  request.prompt.end = read_end(fields);
  OrderedJson given = template_fields(body);
  read_messages(fields, given, chat_template, request);
  if (chat_template.is_program()) {
    read_tools(fields, given, request.prompt);
    read_variables(fields, given, request.prompt);
  } else {
    refuse_field(fields, "tools");
    refuse_field(fields, "tool_choice");
  }
  return request;
}

}  // namespace heed::server
