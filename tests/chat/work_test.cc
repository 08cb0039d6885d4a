// What hostile templates and messages cost: every operation counts steps for the bytes that it
// touches, and looks at the stop flag.
#include <gtest/gtest.h>

#include <atomic>

#include "chat/chat_test_support.h"

namespace heed::chat {
namespace {

constexpr std::size_t size = 1 << 20;                                      // bytes of the message
constexpr std::int64_t to_read_it = size / std::int64_t{bytes_of_a_step};  // steps

// {{ s }} is one long message; each template touches all of it.
ChatInput long_message(const std::string& content) {
  return conversation(OrderedJson::array({message("user", content)}));
}

std::string with_message(std::string_view source) {
  return "{% set s = messages[0].content %}" + std::string(source);
}

// Rendering takes at least `steps` more than reading the message in, and at most `most` times that.
void expect_work(std::string_view source, const std::string& content, std::int64_t steps,
                 std::int64_t most = 8) {
  const ChatTemplate chat_template(with_message(source), "test");
  const ChatInput input = long_message(content);
  RenderLimits limits;
  limits.steps = to_read_it + steps;
  expect_error([&] { chat_template.render(input, limits); }, ErrorCode::invalid_argument, "steps");
  limits.steps = to_read_it + steps * most + 100;
  chat_template.render(input, limits);
}

TEST(ChatWork, ReadingAMessageCountsItsBytes) {
  RenderLimits limits;
  limits.steps = to_read_it - 1;
  const ChatTemplate nothing("x", "test");
  const ChatInput input = long_message(std::string(size, 'a'));
  expect_error([&] { nothing.render(input, limits); }, ErrorCode::invalid_argument, "steps");
  limits.steps = to_read_it + 100;
  EXPECT_EQ(nothing.render(input, limits), "x");
}

// Each of these read the whole text for the price of one expression.
TEST(ChatWork, OperationsCountTheBytesThatTheyTouch) {
  const std::string digits(size, '1');
  const std::string letters(size, 'a');
  expect_work("{{ s | int(0) | string | length }}", std::string(size, ' '), to_read_it);
  expect_work("{{ s | float }}", letters, to_read_it);
  expect_work("{{ '%.3s' | format(s) }}", letters, to_read_it);
  expect_work("{{ '%.3s' % s }}", letters, to_read_it);
  expect_work("{{ {'b': 1}[s] }}", letters, to_read_it);
  expect_work("{{ {'b': 1}.get(s) }}", letters, to_read_it);
  expect_work("{{ s in {'b': 1} }}", letters, to_read_it);
  expect_work("{{ {s: 1} | length }}", letters, to_read_it);
  expect_work("{{ 'x' in s }}", letters, to_read_it);
  expect_work("{{ s.find('x') }}{{ s.rfind('x') }}", letters, 2 * to_read_it);
  expect_work("{{ s.count('x') }}", letters, to_read_it);
  expect_work("{{ s.split('x') | length }}", letters, to_read_it);
  expect_work("{{ s.rsplit('x') | length }}", letters, to_read_it);
  expect_work("{{ s.startswith(s) }}", letters, to_read_it);
  expect_work("{{ s.removesuffix(s) }}", letters, to_read_it);
  expect_work("{{ s.strip('x') | length }}", letters, to_read_it);
  expect_work("{{ s | trim | length }}", std::string(size, ' '), to_read_it);
  expect_work("{{ s.isalpha() }}", letters, to_read_it);
  expect_work("{{ s is lower }}", letters, to_read_it);
  expect_work("{{ s | wordcount }}", letters, to_read_it);
  expect_work("{{ s | truncate(9) }}", letters, to_read_it);
  expect_work("{{ s | urlencode | length }}", letters, to_read_it);
  expect_work("{{ s | e | length }}", letters, to_read_it);
  expect_work("{{ s | replace('x', 'y') | length }}", letters, to_read_it);
  expect_work("{{ [s] | tojson | length }}", letters, to_read_it);
  expect_work("{{ [s] | string | length }}", letters, to_read_it);
  expect_work("{{ (s ~ 'x') | length }}", letters, to_read_it);
  expect_work("{{ s[:9] }}", letters, to_read_it);
  expect_work("{{ s[9] }}", letters, to_read_it);
  expect_work("{{ s | default('x') | upper | length }}", letters, to_read_it);
  expect_work("{{ [s, s] | unique | length }}", letters, to_read_it, 16);
  expect_work("{{ [{'a': s}] | groupby('a') | length }}", letters, to_read_it, 16);
  expect_work("{{ s.zfill(9) | length }}", digits, to_read_it);
}

// The naive search compares both sizes' product: years.
TEST(ChatWork, SearchesAreLinear) {
  const std::string half = "'a' * 4000000";
  EXPECT_EQ(rendered("{{ (" + half + " ~ 'b') in ('a' * 8000000) }}"), "False");
  EXPECT_EQ(rendered("{{ ('a' * 8000000).rfind('b' ~ " + half + ") }}"), "-1");
  EXPECT_EQ(rendered("{{ ('a' * 8000000).count(" + half + " ~ 'b') }}"), "0");
  EXPECT_EQ(rendered("{{ ('a' * 8000000).split(" + half + " ~ 'b') | length }}"), "1");
  EXPECT_EQ(rendered("{{ ('a' * 8000000).rsplit('b' ~ " + half + ") | length }}"), "1");
  EXPECT_EQ(rendered("{{ ('a' * 8000000) | replace(" + half + " ~ 'b', '') | length }}"),
            "8000000");
}

TEST(ChatWork, LoopsOverLongTextsEndByTheirSteps) {
  const ChatInput input = long_message(std::string(8 << 20, 'a'));
  for (const char* const operation :
       {"{{ 'b' in s }}", "{{ s | int }}", "{{ s | float }}", "{{ '%.3s' | format(s) }}",
        "{{ {'b': 1}[s] }}", "{{ s.rfind('b') }}", "{{ s.isdigit() }}", "{{ s == s ~ '' }}"}) {
    const ChatTemplate chat_template(
        with_message("{% for i in range(1000000) %}" + std::string(operation) + "{% endfor %}"),
        "test");
    expect_error([&] { chat_template.render(input); }, ErrorCode::invalid_argument, "more than");
  }
}

TEST(ChatWork, FormatsOfDatesAreShort) {
  ChatInput input = long_message(std::string(max_date_format + 1, 'a'));
  input.strftime_now = [](const std::string& format) { return format; };
  expect_error([&] { rendered(with_message("{{ strftime_now(s) }}"), input); },
               ErrorCode::invalid_argument, "1024 bytes, not 1025");
}

TEST(ChatWork, ARaisedMessageIsCut) {
  expect_error([] { rendered("{{ raise_exception('é' * 3000) }}"); }, ErrorCode::invalid_argument,
               "é…");
  try {
    rendered("{{ raise_exception('é' * 3000) }}");
  } catch (const Error& error) {
    EXPECT_LT(std::string(error.what()).size(), 1100u);
  }
}

TEST(ChatWork, AStoppedRenderingEnds) {
  std::atomic<bool> stop{false};
  int calls = 0;
  ChatInput input = conversation(three_turns());
  input.strftime_now = [&](const std::string& format) {
    stop = ++calls == 3;
    return format;
  };
  RenderLimits limits;
  limits.stop = &stop;
  const ChatTemplate chat_template(
      "{% for i in range(100000) %}{{ strftime_now('x') }}{% endfor %}", "test");
  expect_error([&] { chat_template.render(input, limits); }, ErrorCode::interrupted, "stopped");
  EXPECT_EQ(calls, 3);
  expect_error([&] { ChatTemplate("x", "test").render(input, limits); }, ErrorCode::interrupted,
               "stopped");
}

// Bounds that are checked before the memory is taken.
TEST(ChatWork, WidthsAndCountsAreBounded) {
  const auto fails = [](std::string_view source, const std::string& part) {
    expect_error([&] { rendered(source); }, ErrorCode::invalid_argument, part);
  };
  fails("{{ 'a'.center(99999999999) }}", "longer than");
  fails("{{ 'a' | center(99999999999) }}", "longer than");
  fails("{{ 'a'.zfill(99999999999) }}", "longer than");
  fails("{{ '\t\t'.expandtabs(9223372036854775807) }}", "longer than");
  fails("{{ [1] | slice(99999999999) | list }}", "steps");
  fails("{{ [1] | batch(99999999999, 0) | list }}", "steps");
  fails(
      "{% set l = [1, 2] %}{% set _ = l.append(l) %}{% for x in l recursive %}"
      "{% if x is not number %}{{ loop(x) }}{% endif %}{% endfor %}",
      "deeper than 400 levels");
  fails("{% macro m() %}{{ m(*varargs, **kwargs) }}{% endmacro %}{{ m(1, a=2) }}",
        "deeper than 400 levels");
}

}  // namespace
}  // namespace heed::chat
