// Constructs of Jinja that published templates use; oracle_test.cc compares many more with Jinja.
#include <gtest/gtest.h>

#include "chat/chat_test_support.h"

namespace heed::chat {
namespace {

TEST(ChatConstructs, Statements) {
  EXPECT_EQ(rendered("{% raw %}{{ x }}{% if %}{% endraw %}!"), "{{ x }}{% if %}!");
  EXPECT_EQ(rendered("a  {%- raw -%}  {{ x }}  {%- endraw -%}  b"), "a{{ x }}b");
  EXPECT_EQ(rendered("{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}"),
            "155");
  EXPECT_EQ(rendered("{% filter trim | upper %} a{{ 'b' }} {% endfilter %}."), "AB.");
  EXPECT_EQ(rendered("{% for n in [1, [2, [3]]] recursive %}{{ loop(n) if n is sequence else n }}"
                     "{{ loop.depth }} {% endfor %}"),
            "11 22 33 2 1 ");
  EXPECT_EQ(rendered("{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}"
                     "{{ m(*[1, 2], **{'k': 3}) }}"),
            "1(2,){'k': 3}");
}

TEST(ChatConstructs, Expressions) {
  EXPECT_EQ(rendered("{{ 1 < 2 < 3 }}{{ 1 < 3 < 2 }}{{ 3 > 2 != 1 in [1] }}"), "TrueFalseTrue");
  EXPECT_EQ(rendered("{{ 2 < 1 < none }}"), "False") << "what follows is not evaluated";
  EXPECT_EQ(rendered("{{ dict(a=1, **{'b': 2}) }}{{ range(*[1, 3]) | list }}"),
            "{'a': 1, 'b': 2}[1, 2]");
  EXPECT_EQ(rendered("{% set j = joiner('|') %}{{ j() }}a{{ j() }}b{{ j() }}c"), "a|b|c");
  EXPECT_EQ(rendered("{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}{{ c.next() }}"
                     "{{ c.current }}"),
            "1212");
}

TEST(ChatConstructs, Filters) {
  EXPECT_EQ(rendered("{{ [{'r': 'b'}, {'r': 'a', 'n': 1}, {'r': 'b'}] | groupby('r') "
                     "| map(attribute='grouper') | list }}"),
            "['a', 'b']");
  EXPECT_EQ(rendered("{{ [1, 2, 3] | batch(2, 0) | list }}{{ [1, 2, 3] | slice(2) | list }}"),
            "[[1, 2], [3, 0]][[1, 2], [3]]");
  EXPECT_EQ(rendered("{{ 'one two' | wordcount }}{{ 'one two six' | truncate(6, leeway=0) }}"),
            "2one...");
  EXPECT_EQ(rendered("{{ '<a>' | escape }}{{ 'a b/é' | urlencode }}{{ 'ab' | center(5) }}."),
            "&lt;a&gt;a%20b/%C3%A9  ab .");
  EXPECT_EQ(rendered("{{ ('<' | e) + '<' }}{{ ('<' | e) ~ '<' }}"), "&lt;&lt;&lt;<");
  EXPECT_EQ(rendered("{{ none is sameas none }}{{ [] is sameas [] }}{{ 1 is sameas true }}"),
            "TrueFalseFalse");
  EXPECT_EQ(rendered("{{ '0x1F' | int(base=16) }}{{ '%-3s|' % 'a' }}{{ '{:>4}'.format(7) }}"),
            "31a  |   7");
  EXPECT_EQ(rendered("{{ none | selectattr('x') | list }}{{ [none, none] | sort }}"),
            "[][None, None]");
}

TEST(ChatConstructs, Letters) {
  EXPECT_EQ(rendered("{{ 'ß' | upper }}{{ 'ßa'.title() }}{{ 'ﬁ'.upper() }}{{ 'ΑΣ' | lower }}"),
            "SSSsaFIας");
  EXPECT_EQ(rendered("{{ 'Straße'.casefold() }}{{ 'aB'.swapcase() }}"), "strasseAb");
  EXPECT_EQ(rendered("{{ 'a-b-c'.rpartition('-') }}{{ 'abab'.rfind('a') }}{{ '7'.zfill(3) }}"),
            "('a-b', '-', 'c')2007");
  EXPECT_EQ(rendered("{{ ' a b '.rsplit(none, 1) }}{{ 'a\\r\\nb\\u2028c'.splitlines() }}"),
            "[' a', 'b']['a', 'b', 'c']");
}

}  // namespace
}  // namespace heed::chat
