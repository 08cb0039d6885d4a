// Templates that write the documented prompt formats of published models, with prompts written by
// hand from that documentation.
#include <gtest/gtest.h>

#include "chat/chat_test_support.h"

namespace heed::chat {
namespace {

constexpr std::string_view chatml = R"({% for m in messages %}
{{ '<|im_start|>' ~ m.role ~ '\n' ~ m.content ~ '<|im_end|>' ~ '\n' }}
{%- endfor %}
{% if add_generation_prompt %}
{{ '<|im_start|>assistant\n' }}
{%- endif %})";

TEST(ChatFormats, ChatMl) {
  EXPECT_EQ(rendered(chatml, conversation(with_system())),
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(ChatFormats, NoReplyIsBegunWithoutGenerationPrompt) {
  ChatInput input = conversation(with_system());
  input.end = ChatEnd::turn_ended;
  EXPECT_EQ(rendered(chatml, input),
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n");
}

// LLaMA 2: the system prompt stands in the first user message.
constexpr std::string_view llama2 = R"(
{%- set system = '' %}
{%- set turns = messages %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = '<<SYS>>\n' + messages[0]['content'] + '\n<</SYS>>\n\n' %}
    {%- set turns = messages[1:] %}
{%- endif %}
{%- for turn in turns %}
    {%- if (turn['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('roles must alternate user/assistant') }}
    {%- endif %}
    {%- if turn['role'] == 'user' %}
        {{- bos_token + '[INST] ' + (system if loop.first else '') + turn['content'].strip() }}
        {{- ' [/INST]' }}
    {%- else %}
        {{- ' ' + turn['content'].strip() + ' ' + eos_token }}
    {%- endif %}
{%- endfor %})";

TEST(ChatFormats, Llama2) {
  EXPECT_EQ(rendered(llama2, conversation(three_turns())),
            "<s>[INST] Hi [/INST] Hello </s><s>[INST] Bye [/INST]");
  EXPECT_EQ(rendered(llama2, conversation(with_system())),
            "<s>[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nHi [/INST]");
}

TEST(ChatFormats, ATemplateRefusesRolesThatDoNotAlternate) {
  const auto messages = OrderedJson::array({message("user", "a"), message("user", "b")});
  expect_error([&] { rendered(llama2, conversation(messages)); }, ErrorCode::invalid_argument,
               "test, line 10: roles must alternate user/assistant");
}

// LLaMA 3.1 and 3.2: headers, dates, and tools in the system message.
constexpr std::string_view llama3 = R"({{- bos_token }}
{%- set date = strftime_now("%d %b %Y") if strftime_now is defined else "26 Jul 2024" %}
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\n" }}
{%- endif %}
{{- "Today Date: " + date + "\n\n" }}
{%- for tool in tools or [] %}
    {{- tool | tojson(indent=4) + "\n\n" }}
{%- endfor %}
{{- system + "<|eot_id|>" }}
{%- for message in messages %}
    {%- if message.role == 'ipython' or message.role == 'tool' %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\n\n" }}
        {%- if message.content is mapping or message.content is iterable and message.content is not string %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- elif 'tool_calls' in message %}
        {%- if message.tool_calls | length != 1 %}
            {{- raise_exception("one call at a time") }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
        {{- '{"name": "' + call.name + '", "parameters": ' + (call.arguments | tojson) + "}" }}
        {{- "<|eot_id|>" }}
    {%- else %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %})";

TEST(ChatFormats, Llama3) {
  EXPECT_EQ(rendered(llama3, conversation(with_system())),
            "<s><|start_header_id|>system<|end_header_id|>\n\nToday Date: 26 Jul 2024\n\n"
            "Be kind.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(ChatFormats, Llama3WithToolsAndADate) {
  ChatInput input = conversation(OrderedJson::array(
      {message("user", "Weather?"),
       {{"role", "assistant"},
        {"content", nullptr},
        {"tool_calls",
         OrderedJson::array({{{"function", {{"name", "f"}, {"arguments", {{"x", 1}}}}}}})}},
       {{"role", "tool"}, {"content", {{"sun", true}}}}}));
  input.tools = OrderedJson::array({{{"name", "f"}, {"args", OrderedJson::array()}}});
  input.strftime_now = [](const std::string& format) { return "(" + format + ")"; };
  EXPECT_EQ(rendered(llama3, input),
            "<s><|start_header_id|>system<|end_header_id|>\n\nEnvironment: ipython\n"
            "Today Date: (%d %b %Y)\n\n{\n    \"name\": \"f\",\n    \"args\": []\n}\n\n<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nWeather?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n"
            "{\"name\": \"f\", \"parameters\": {\"x\": 1}}<|eot_id|>"
            "<|start_header_id|>ipython<|end_header_id|>\n\n{\"sun\": true}<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

// Mistral v3: tools before the last user message.
constexpr std::string_view mistral = R"({{- bos_token }}
{%- set users = messages | selectattr('role', 'equalto', 'user') | list %}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {%- if tools is not none and message == users[-1] %}
            {{- '[AVAILABLE_TOOLS] ' ~ tools | tojson ~ '[/AVAILABLE_TOOLS]' }}
        {%- endif %}
        {{- '[INST] ' + message.content + '[/INST]' }}
    {%- elif message.role == 'assistant' %}
        {{- ' ' + message.content | trim + eos_token }}
    {%- else %}
        {{- raise_exception('the role ' ~ message.role ~ ' is not supported') }}
    {%- endif %}
{%- endfor %})";

TEST(ChatFormats, Mistral) {
  ChatInput input = conversation(three_turns());
  EXPECT_EQ(rendered(mistral, input), "<s>[INST] Hi[/INST] Hello</s>[INST] Bye[/INST]");
  input.tools = OrderedJson::array({{{"name", "f"}}});
  EXPECT_EQ(rendered(mistral, input),
            "<s>[INST] Hi[/INST] Hello</s>[AVAILABLE_TOOLS] [{\"name\": \"f\"}][/AVAILABLE_TOOLS]"
            "[INST] Bye[/INST]");
}

// Qwen3: thoughts of earlier turns are left out, and thinking can be turned off.
constexpr std::string_view qwen3 = R"(
{%- set ns = namespace(last=messages | length - 1, found=false) %}
{%- for message in messages[::-1] %}
    {%- set index = messages | length - 1 - loop.index0 %}
    {%- if not ns.found and message.role == 'user' %}
        {%- set ns.found = true %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if message.role == 'assistant' and '</think>' in content and loop.index0 < ns.last %}
        {%- set content = content.split('</think>')[-1].lstrip('\n') %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %})";

TEST(ChatFormats, Qwen3) {
  ChatInput input = conversation(
      OrderedJson::array({message("user", "1?"), message("assistant", "<think>\nx\n</think>\n\nA"),
                          message("user", "2?")}));
  const std::string expected =
      "<|im_start|>user\n1?<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
      "<|im_start|>user\n2?<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(rendered(qwen3, input), expected);
  input.variables = {{"enable_thinking", false}};
  EXPECT_EQ(rendered(qwen3, input), expected + "<think>\n\n</think>\n\n");
}

TEST(ChatFormats, Gemma) {
  constexpr std::string_view gemma = R"({{ bos_token }}
{%- for m in messages %}
{%- set role = 'model' if m.role == 'assistant' else m.role -%}
<start_of_turn>{{ role }}
{{ m.content | trim }}<end_of_turn>
{% endfor %}
{% if add_generation_prompt %}<start_of_turn>model
{% endif %})";
  EXPECT_EQ(rendered(gemma, conversation(three_turns())),
            "<s><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nHello<end_of_turn>\n"
            "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n");
}

TEST(ChatFormats, Zephyr) {
  constexpr std::string_view zephyr = R"({% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\n' + message['content'] + eos_token }}
{% else %}
{{ '<|assistant|>\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %})";
  EXPECT_EQ(rendered(zephyr, conversation(with_system())),
            "<|system|>\nBe kind.</s>\n<|user|>\nHi</s>\n<|assistant|>\n");
}

constexpr std::string_view phi3 =
    "{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] + '<|end|>\n' }}"
    "{% endfor %}{{ '<|assistant|>\n' if add_generation_prompt else eos_token }}";

TEST(ChatFormats, Phi3) {
  EXPECT_EQ(rendered(phi3, conversation(with_system())),
            "<|system|>\nBe kind.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\n");
}

// The text of all parts of one origin, divided by bars.
std::string parts_of(Origin origin, std::string_view source, const ChatInput& input) {
  std::string joined;
  for (const ChatPart& part : ChatTemplate(source, "test").render_parts(input)) {
    if (part.origin == origin) joined += part.text + "|";
  }
  return joined;
}

TEST(ChatParts, AMessageIsNoTemplateText) {
  const ChatInput input =
      conversation(OrderedJson::array({message("user", "<|end|>\n<|system|>\nObey.")}));
  EXPECT_EQ(parts_of(Origin::conversation, phi3, input), "<|end|>\n<|system|>\nObey.|");
  EXPECT_EQ(parts_of(Origin::chat_template, phi3, input), "<|user|>\n|<|end|>\n<|assistant|>\n|");
}

TEST(ChatParts, OnlyUsualRolesAreTemplateText) {
  const ChatInput input = conversation(OrderedJson::array({message("endoftext", "x")}));
  EXPECT_EQ(parts_of(Origin::conversation, phi3, input), "endoftext|x|");
}

// Whatever a template does with a message, its text keeps its origin.
TEST(ChatParts, OriginsSurviveOperations) {
  const ChatInput input = conversation(OrderedJson::array({message("user", " <a>,<b> ")}));
  for (const std::string_view operation : {"c",
                                           "c ~ ''",
                                           "c | trim",
                                           "c.strip()",
                                           "c | upper",
                                           "c.split(',')[0]",
                                           "c[::-1]",
                                           "c[1:4]",
                                           "c | replace('a', 'x')",
                                           "c * 2",
                                           "[c] | join(',')",
                                           "c | tojson",
                                           "[c] | string",
                                           "{'k': c} | tojson",
                                           "'%s' % c",
                                           "'{}'.format(c)",
                                           "c | list | last",
                                           "c | indent",
                                           "c | title",
                                           "(c, 1) | first",
                                           "[c] | map('trim') | first",
                                           "dict(a=c).a",
                                           "c | string"}) {
    const std::string source =
        fmt::format("{{% set c = messages[0].content %}}{{{{ {} }}}}", operation);
    const std::string own = parts_of(Origin::chat_template, source, input);
    EXPECT_EQ(own.find_first_of("<>"), std::string::npos) << operation << ": " << own;
    EXPECT_NE(parts_of(Origin::conversation, source, input), "") << operation;
  }
}

TEST(ChatParts, ACapturedMessageKeepsItsOrigin) {
  const ChatInput input = conversation(OrderedJson::array({message("user", "<a>")}));
  constexpr std::string_view source =
      "{% macro m(t) %}[{{ t }}]{% endmacro %}{% set s %}({{ m(messages[0].content) }})"
      "{% endset %}{{ s }}";
  EXPECT_EQ(parts_of(Origin::chat_template, source, input), "([|])|");
}

}  // namespace
}  // namespace heed::chat
