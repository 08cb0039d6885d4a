// What is refused, when, and with which words; the limits; undefined names.
#include <gtest/gtest.h>

#include <thread>

#include "chat/chat_test_support.h"

namespace heed::chat {
namespace {

void expect_parse_error(std::string_view source, ErrorCode code, const std::string& part) {
  expect_error([&] { ChatTemplate(source, "t.jinja"); }, code, part);
}

TEST(ChatRefusal, UnsupportedConstructsAreNamedWhenParsed) {
  const auto refused = [](std::string_view source, const std::string& part) {
    expect_parse_error(source, ErrorCode::unsupported, part);
  };
  refused("\n\n{% include 'x' %}", "t.jinja, line 3: the tag 'include' is not supported");
  refused("{% block x %}{% endblock %}", "line 1: the tag 'block'");
  refused("{% if 0 %}\n{{ x | wordwrap }}{% endif %}", "line 2: the filter 'wordwrap'");
  refused("{{ x is prime }}", "the test 'prime'");
  refused("{{ x[1, 2] }}", "an index of several values");
  refused("{{ 99999999999999999999 }}", "99999999999999999999");
  refused("{{ '\\N{BULLET}' }}", "\\N");
}

TEST(ChatRefusal, InvalidTemplatesNameTheirLine) {
  const auto invalid = [](std::string_view source, const std::string& part) {
    expect_parse_error(source, ErrorCode::corrupt_data, part);
  };
  invalid("a\n{{ 1 +\n}}", "t.jinja, line 3: expected an expression, not '}}'");
  invalid("{% if x %}\n", "expected {% endif %}, not the end of the template");
  invalid("{% endfor %}", "the tag 'endfor' has nothing to end");
  invalid("{{ 'abc }}", "the string ' is not closed");
  invalid("\n{{ x", "line 2: the tag {{ is not closed");
  invalid("{# x", "the comment {# is not closed");
  invalid("\n{% raw %}{{ x }}{% endfor %}", "line 2: the tag 'raw' is not closed");
  invalid("{{ f(*x, y) }}", "out of order");
  invalid("{{ f(**x, y=1) }}", "out of order");
  invalid("{% with a.b = 1 %}{% endwith %}", "'with' assigns to names");
  invalid("{{ (1] }}", "unexpected ']'");
  invalid("{% break %}", "'break' stands outside a for");
  invalid("{{ '\\x4' }}", "needs 2 digits");
  invalid("{{ '\\ud800' }}", "U+D800 is not a character");
}

TEST(ChatRefusal, MethodsOutsideTheSubsetAreNamed) {
  expect_error([] { rendered("{{ 'a'.encode() }}"); }, ErrorCode::unsupported,
               "the method 'encode' of a value of type string");
  expect_error([] { rendered("{% set d = {} %}{{ d.pop('a') }}"); }, ErrorCode::unsupported,
               "the method 'pop' of a value of type dict");
}

TEST(ChatRefusal, UndefinedNamesPrintNothingAndHaveNoAttributes) {
  EXPECT_EQ(rendered("[{{ nobody }}{% for x in nobody %}x{% endfor %}]"), "[]");
  const auto fails = [](std::string_view source, const std::string& part) {
    expect_error([&] { rendered(source); }, ErrorCode::invalid_argument, part);
  };
  fails("\n{{ nobody.name }}", "test, line 2: 'nobody' is undefined");
  fails("{{ {}.a.b }}", "'a' of a value of type dict is undefined");
  fails("{{ nobody() }}", "'nobody' is undefined");
  fails("{{ 1 + nobody }}", "'nobody' is undefined");
  fails("{{ strftime_now('%Y') }}", "'strftime_now' is undefined");
  fails("{{ 1 + 'a' }}", "'+' cannot be applied to values of type int and string");
  fails("{{ 9223372036854775807 + 1 }}", "does not fit into 64 bits");
  fails("{{ -9223372036854775807 - 1 - 1 }}", "does not fit into 64 bits");
  fails("{{ (-9223372036854775807 - 1) // -1 }}", "does not fit into 64 bits");
  fails("{{ raise_exception('No, ' ~ 1) }}", "test, line 1: No, 1");
}

TEST(ChatLimits, Steps) {
  const auto fails = [](std::string_view source) {
    expect_error([&] { rendered(source); }, ErrorCode::invalid_argument, "steps");
  };
  fails("{% for a in range(5000) %}{% for b in range(5000) %}{% endfor %}{% endfor %}");
  fails("{{ range(9999999999) | length }}");
  fails("{{ [1] * 99999999999 }}");
  fails(
      "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}"
      "{% endfor %}");
}

TEST(ChatLimits, Text) {
  const auto fails = [](std::string_view source) {
    expect_error([&] { rendered(source); }, ErrorCode::invalid_argument, "bytes");
  };
  fails("{{ 'a' * 99999999999 }}");
  fails(
      "{% set ns = namespace(t='aaaaaaaa') %}{% for i in range(60) %}"
      "{% set ns.t = ns.t ~ ns.t %}{% endfor %}");
  fails("{% set t = 'a' * 1000000 %}{% for i in range(100) %}{{ t }}{% endfor %}");
  fails("{% set t = 'a' * 10000 %}{{ t | replace('a', t) }}");
  fails("{% set t = 'a' * 1000000 %}{% set l = [t] * 1000 %}{{ l | join }}");
  fails("{% set t = 'a' * 1000000 %}{% set l = [t] * 1000 %}{{ l }}");
  fails("{% set t = 'a' * 1000000 %}{% set l = [t] * 1000 %}{{ l | tojson }}");
  fails("{% set t = 'a\n' * 10000 %}{{ t | indent(' ' * 10000) }}");
}

TEST(ChatLimits, TheCallerChoosesThem) {
  RenderLimits limits;
  limits.output_bytes = 4;
  const ChatTemplate chat_template("{% for c in 'abcde' %}{{ c }}{% endfor %}", "test");
  EXPECT_EQ(chat_template.render({}), "abcde");
  expect_error([&] { chat_template.render({}, limits); }, ErrorCode::invalid_argument, "4 bytes");
}

std::string repeated(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

TEST(ChatLimits, NestedSyntax) {
  const auto fails = [](const std::string& source, const std::string& part) {
    expect_parse_error(source, ErrorCode::invalid_argument, part);
  };
  constexpr int many = 80'000;
  fails("{{ " + repeated("(", many) + "1" + repeated(")", many) + " }}",
        "nests deeper than 100 levels");
  fails("{{ " + repeated("[", many) + repeated("]", many) + " }}", "nests deeper than 100 levels");
  fails("{{ " + repeated("- ", many) + "1 }}", "nests deeper than 100 levels");
  fails("{{ " + repeated("not ", many) + "1 }}", "nests deeper than 100 levels");
  fails("{{ " + repeated("1 if 1 else ", many) + "1 }}", "nests deeper than 100 levels");
  fails(repeated("{% if 1 %}", many), "nests deeper than 100 levels");
  fails("{{ 1" + repeated(" + 1", many) + " }}", "more than 1000 operators");
  fails("{{ a" + repeated(".a", many) + " }}", "more than 1000 operators");
  fails("{{ a" + repeated("|list", many) + " }}", "more than 1000 operators");
  fails(std::string(max_template + 1, ' '), "up to 1048576 bytes");
}

TEST(ChatLimits, Recursion) {
  const auto fails = [](const std::string& source, const std::string& part) {
    expect_error([&] { rendered(source); }, ErrorCode::invalid_argument, part);
  };
  fails("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "deeper than 400 levels");
  constexpr std::string_view circle = "{% set l = [] %}{% set _ = l.append(l) %}";
  fails(std::string(circle) + "{{ l }}", "nests deeper than 100 levels");
  fails(std::string(circle) + "{{ l | tojson }}", "nests deeper than 100 levels");
  fails(
      "{% set a = [] %}{% set b = [] %}{% set _ = a.append(b) %}{% set _ = b.append(a) %}"
      "{{ a == b }}",
      "nests deeper than 100 levels");
}

TEST(ChatLimits, LoopsThatOutliveTheirFor) {
  EXPECT_EQ(rendered("{% set ns = namespace() %}{% for i in [1, 2] %}{% set ns.l = loop %}"
                     "{% endfor %}{{ ns.l.index }}{{ ns.l.previtem }}{{ ns.l.cycle('a', 'b') }}"),
            "21b");
}

TEST(ChatInputs, MessagesMustBeAListOfObjects) {
  const auto fails = [](OrderedJson messages, const std::string& part) {
    expect_error([&] { rendered("x", conversation(std::move(messages))); },
                 ErrorCode::invalid_argument, part);
  };
  fails("x", "the messages must be a list, not a string");
  fails(OrderedJson::array({1}), "a message must be an object, not a int");
  fails(OrderedJson::array({{{"n", UINT64_MAX}}}), "does not fit into 64 bits");
}

TEST(ChatInputs, KeysKeepTheirOrder) {
  ChatInput input;
  input.tools = {{"z", 1}, {"a", 2}};
  EXPECT_EQ(rendered("{{ tools | tojson }}", input), "{\"z\": 1, \"a\": 2}");
}

TEST(ChatTemplates, OneTemplateSetsNothingForItsNextRendering) {
  const ChatTemplate chat_template(
      "{{ x }}{% set x = 1 %}{% set l = [] %}{% set _ = l.append(1) %}"
      "{{ l | length }}",
      "test");
  EXPECT_EQ(chat_template.render({}), "1");
  EXPECT_EQ(chat_template.render({}), "1");
}

TEST(ChatTemplates, ThreadsShareATemplate) {
  const ChatTemplate chat_template("{% for m in messages %}{{ m.role ~ 'x' * 3 }}{% endfor %}",
                                   "test");
  const ChatInput input = conversation(three_turns());
  std::vector<std::string> results(8);
  std::vector<std::thread> threads;
  for (std::string& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) result = chat_template.render(input);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& result : results) EXPECT_EQ(result, "userxxxassistantxxxuserxxx");
}

}  // namespace
}  // namespace heed::chat
