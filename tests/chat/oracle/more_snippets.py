"""Snippets of what published templates use less often: statements, filters, methods and functions."""

import re

EXPRESSIONS = """
1 < 2 < 3|1 < 3 < 2|3 > 2 > 1 > 0|1 < 2 > 1|1 == 1.0 == true|1 < 2 == true|0 in [0] in [[0]]|1 < foo < 2|1 not in [2] in [[2]]|'a' < 'b' <= 'b' != 'c'
none < 1 < 2|2 < 1 < none|1 <= 1 <= 1|not 1 < 2 < 3|1 < 2 < 3 and 3 < 2|(1 < 2) < 3
range(*[1, 7, 2]) | list|dict(**{'a': 1, 'b': 2})|dict(*[[('x', 1)]], **{'y': 2})|dict(a=1, **{'b': 2})|dict(a=1, **{'a': 2})|range(*5)|dict(**[1])|dict(**{1: 2})
'{}-{}'.format(*'ab')|'{a}{b}'.format(**{'a': 1, 'b': 2})|'%s %s' | format(*[1, 2])|'%(a)s' | format(**{'a': 5})|'a-b'.split(*['-'])|[1, 2] | join(*[';'])
messages | groupby('role') | list | length|messages | groupby('role') | map(attribute='grouper') | list|messages | groupby('role') | map(attribute='list') | map('length') | list
words | groupby('0') | list|[{'a': 'x', 'b': 1}, {'a': 'y'}, {'a': 'X', 'b': 2}] | groupby('a')|[{'a': 'x'}, {'a': 'X'}] | groupby('a', case_sensitive=true)|[{'a': 1}, {}] | groupby('a', default=0)
[{'a': {'b': 2}}, {'a': {'b': 1}}] | groupby('a.b')|[[1, 'p'], [0, 'q'], [1, 'r']] | groupby(0)|([{'a': 1}] | groupby('a'))[0].grouper|([{'a': 1}] | groupby('a') | first).list|[{'a': 1}, {'a': 'x'}] | groupby('a')|[] | groupby('a')
numbers | batch(2) | list|numbers | batch(3, 0) | list|[] | batch(2) | list|numbers | batch(9, 'x') | list|numbers | batch(1) | map('length') | list|'abcde' | batch(2) | list|5 | batch(2) | list|numbers | batch(2, none) | list
numbers | slice(2) | list|numbers | slice(3, 0) | list|[] | slice(2) | list|numbers | slice(9) | list|[1, 2, 3, 4, 5, 6, 7] | slice(3) | list|[1, 2, 3, 4, 5, 6, 7] | slice(3, 'x') | list|numbers | slice(0) | list|'abc' | slice(2) | list
'one two  three' | wordcount|'' | wordcount|"it's a-b c_d 12" | wordcount|'日本 語' | wordcount|5 | wordcount|none | wordcount|'é¼² x' | wordcount
'foo bar baz qux' | truncate(9)|'foo bar baz qux' | truncate(9, true)|'foo bar baz qux' | truncate(11)|'foo bar baz qux' | truncate(11, false, '...', 0)|'foobarbazqux' | truncate(6)|'foo' | truncate(2)|'foo' | truncate
'Größe und Länge sind' | truncate(12, leeway=0)|'a b c d e f g h' | truncate(5, end='…', leeway=0)|foo | truncate|5 | truncate|'abcdef' | truncate(4, true, '', 0)|'x' | truncate(0, true, '', 0)
'<a href="x">&\\'</a>' | escape|'<' | e|5 | e|none | escape|foo | escape ~ '|'|'<' | e | e|'<' | e | forceescape|'<' | forceescape|['<'] | e|('<' | e) + '<'|'<' + ('<' | e)|('<' | e) ~ '<'
('<' | e) * 2 + '<'|('<' | e) is escaped|'<' is escaped|('x' | safe) is escaped|('<b>' | safe) + '<i>'|('<b>' | safe) ~ '<i>'|('a<' | safe | upper) + '<'|('a < b' | safe)[:3] + '<'|('%s' | safe) % '<'|['<' | e]|(5 | safe) + '<'
'<' | e | trim + '<'|('<' | e | string) + '<'|('<a' | e | length)|('<' | safe) == '<'|{'<' | safe: 1}['<']|('<&' | e) | tojson
'a b/c?d=é&' | urlencode|{'a b': 'c/d', 'x': 1} | urlencode|[('a', 'b'), ('c', 'd e')] | urlencode|5 | urlencode|none | urlencode|'~_.-' | urlencode|{} | urlencode|[1] | urlencode
'ab' | center(7) ~ '^'|'abc' | center(8) ~ '^'|'abc' | center(6) ~ '^'|'abc' | center(2)|5 | center(4) ~ '^'|'é' | center(4) ~ '^'|('x' | center | length)
none is sameas none|true is sameas true|1 is sameas true|1 is sameas 1|numbers is sameas numbers|[1] is sameas [1]|false is sameas zero|'a' is sameas 'b'|none is sameas foo|foo is sameas none|1.5 is sameas 1
'upper' is filter|'nope' is filter|'defined' is test|'nope' is test|5 is filter|{'a': 1} | attr('a') is defined|'x' | attr('upper') is defined|{'a': 1} | attr('items') is defined|messages[0] | attr('role')
'ß' | upper|'Straße ﬁ ŉ' | upper|'ß' | capitalize|'ßa ßb' | title|'ﬀ'.title()|'ǆ'.title()|'ǆ' | upper|'ΐ' | upper|'ᾳ'.upper()|'ᾳ'.title()|'İ' | lower | length|'İ'.lower()|'ΑΣ ΣΑ Σ' | lower|"ΑΣ'Α ΑΣ." | lower|'ΣΑΣ' | title
'AbC ß'.swapcase()|'Straße ΣΊΣΥΦΟΣ'.casefold()|'ﬁ'.casefold()|'µ'.casefold()|'ab'.center(5, '*')|'ab'.center(4)|'abc'.center(6, '-')|'ab'.center(5, '')|'ab'.ljust(4) ~ '^'|'ab'.rjust(4, '.')|'ab'.rjust(1)|'ab'.ljust('x')
'7'.zfill(3)|'-7'.zfill(4)|'+'.zfill(3)|'abc'.zfill(2)|''.zfill(2)|'a\\tb'.expandtabs()|'a\\tbc\\td'.expandtabs(4)|'a\\n\\tb'.expandtabs(2)|'\\t'.expandtabs(0)|'ab\\t'.expandtabs(-1)
'a-b-c'.partition('-')|'a-b-c'.rpartition('-')|'abc'.partition('-')|'abc'.rpartition('-')|'abc'.partition('')|'a--b'.partition('--')[2]|'a b  c '.rsplit()|' a b c '.rsplit(none, 1)|'a b c'.rsplit(' ', 1)|'a,b'.rsplit(',', 0)|'aaa'.rsplit('aa')|' a  b '.rsplit(maxsplit=1)
'abcabc'.find('c', 3)|'abcabc'.find('c', -2)|'abcabc'.find('a', 1, 3)|'abc'.find('', 3)|'abc'.find('', 4)|'abcabc'.rfind('b')|'abcabc'.rfind('b', 0, 4)|'abcabc'.rfind('z')|'éaéa'.find('a', 2)|'éaéa'.rfind('é')|'aaa'.rfind('aa')|''.rfind('')|'abc'.find('c', none, 2)
'abc'.index('c')|'abc'.index('z')|'abca'.rindex('a')|'abc'.rindex('z')|'abab'.count('a', 1)|'abab'.count('', 2)|'abab'.count('a', 3, 2)|'aaaa'.count('aa')|'abc'.startswith('b', 1)|'abc'.endswith('b', 0, 2)|'abc'.startswith('', 4)|'abc'.startswith(('z', 'b'), 1)
'abc'.isalnum()|'a c'.isalnum()|''.isalnum()|'²'.isdigit()|'²'.isdecimal()|'½'.isnumeric()|'٣'.isdecimal()|'五'.isnumeric()|'abc'.isascii()|'é'.isascii()|''.isascii()|'ab'.islower()|'aB'.islower()|'1'.islower()|'AB1'.isupper()|'Ab'.isupper()
'Ab Cd'.istitle()|'AB'.istitle()|'ab'.istitle()|'1'.istitle()|"They'Re".istitle()|'a_1'.isidentifier()|'1a'.isidentifier()|''.isidentifier()|'a b'.isidentifier()|'é'.isidentifier()|'a b'.isprintable()|'a\\n'.isprintable()|''.isprintable()
'a\\r\\nb\\rc\\x0bd\\u2028e'.splitlines()|'a\\n\\nb\\n'.splitlines(true)|'a\\r\\n'.splitlines(keepends=true)|''.splitlines()|'a\\r\\nb' | indent(2)|'a\\n\\nb\\n' | indent(2, blank=true) ~ '^'|'' | indent(2, true) ~ '^'|'\\n' | indent(2, true) ~ '^'
'%-5s|' % 'ab'|'%+d' % 5|'% d' % 5|'%05d' % -42|'%-05d|' % 42|'%o' % 8|'%X' % 255|'%e' % 12345.678|'%.2e' % 0.5|'%g' % 1e-7|'%g' % 100000.0|'%r' % 'a\\'b'|'%c' % 65|'%c' % 'é'|'%c' % 'ab'|'%i' % 2.9|'%x' % 2.5|'%5.1f|' % 3.14159|'%.3s' % 'éàü!'
'%(a)s-%(b)05d' % {'a': 'x', 'b': 7}|'%(a)s' % {'b': 1}|'%(a)s' % 5|'%s' % {'a': 1}|'%s %s' % {'a': 1}|'%q' % 1|'%' % 1|'%5' % 1|'%.2f%%' % 12.345|'%s' % [1, 2]|'%d %d' % (1,)|'%(a' % {}
'{:>5}|{:<5}|{:^5}|'.format('ab', 'ab', 'ab')|'{:*^7}'.format('ab')|'{:05d}'.format(-42)|'{:,}'.format(1234567)|'{:_}'.format(1234567)|'{:,.2f}'.format(1234567.891)|'{:.3f}'.format(2)|'{:.1%}'.format(0.256)|'{:x}'.format(255)|'{:+}'.format(5)
'{:.2}'.format('abc')|'{:5}|'.format(7)|'{:5}|'.format('a')|'{:<5}|'.format(7)|'{:=+6d}'.format(5)|'{:d}'.format(2.5)|'{:s}'.format(5)|'{:d}'.format('a')|'{:é>4}'.format('a')|'{:e}'.format(1234.5)|'{:g}'.format(0.5)|'{:b}'.format(5)|'{:.2f}'.format(true)
'{0[role]}'.format(messages[0])|'{0[0]}{0[1]}'.format('ab')|'{a[b][0]}'.format(a={'b': [7]})|'{!r}'.format('x')|'{!s:>4}'.format(5)|'{!x}'.format(1)|'{x}{y}'.format_map({'x': 1, 'y': 2})|'{'.format()|'}'.format()|'{0}'.format()
'0x1F' | int(0, 16)|'ff' | int(0, 16)|'0b101' | int(0, 2)|'0o17' | int(0, 8)|'0x1f' | int(9, 0)|'12' | int(0, 8)|'9' | int(7, 8)|'1_000' | int|'_1' | int(5)|'1__0' | int(5)|'1_0.5' | float|'+7' | int|'-0x1f' | int(0, 16)|'z' | int(0, 36)|' +5.5 ' | float|'1e3' | int
'5' | int(base=16)|'' | int(3)|'inf' | float|'nan' | float|'infinity' | float|'- 5' | int(1)|'٣' | string | length
(cycler('a', 'b')).next()|cycler()|cycler(1, 2).current|cycler(1, 2).reset()|cycler(1).foo is defined|joiner()()|joiner('x')()|joiner(1, 2)|cycler('a') is callable or true
none | map('upper') | list|none | select | list|0 | selectattr('a') | list|5 | map('upper') | list|[none, none] | sort|[foo, bar] | sort|{foo: 1}[bar]|numbers | sort(attribute='x') | list
[3, 1].copy()|{'a': 1}.copy()|(1, 2).index(2)|(1, 1).count(1)|words | join('<' | e)|'%s' | format(a=1)
"""

STATEMENTS = [
    # raw
    "{% raw %}{{ x }} {% if %} {# c #}{% endraw %}", "a {%- raw -%} \n {{ x }} \n {%- endraw -%} b", "{% raw %}\n{{ x }}\n{% endraw %}\nb",
    "a\n  {% raw %}  x\n  {% endraw %}\n  b", "{%+ raw %} x {%+ endraw +%}\nb", "{% raw %}", "{% raw %}{% endraw", "{% raw %}{% endrawx %}{% endraw %}",
    "{%raw%}{{%}{%endraw%}", "{% raw x %}{% endraw %}", "{% if 1 %}{% raw %}{% endif %}{% endraw %}{% endif %}", "{% raw -%}  x{% endraw %}", "{% endraw %}",
    "  {% raw %}a{% endraw %}  {% raw %}b{% endraw %}\n", "{{ 'x' }}{% raw %}{% raw %}{% endraw %}y", "{% raw %}\r\na{% endraw %}\r\nb",
    # with
    "{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a is defined }}", "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}",
    "{% set a = 5 %}{% with a = 1, b = a %}{{ b }}{% endwith %}{{ a }}", "{% with (a, b) = (1, 2) %}{{ b }}{{ a }}{% endwith %}", "{% with a %}{% endwith %}",
    "{% with a = 1 b = 2 %}{% endwith %}", "{% for n in numbers %}{% with m = n * 2 %}{% if m > 4 %}{% break %}{% endif %}{{ m }}{% endwith %}{% endfor %}",
    "{% with a = 1 %}{% with a = 2 %}{{ a }}{% endwith %}{{ a }}{% endwith %}", "{% with m = messages[0] %}\n{{ m.role }}\n{% endwith %}\n", "{% with a = 1 %}", "{% endwith %}",
    "{% set ns = namespace(x=0) %}{% with y = 3 %}{% set ns.x = y %}{% endwith %}{{ ns.x }}",
    # filter blocks
    "{% filter upper %}ab{{ name }}{% endfilter %}", "{% filter trim | upper %}  ab {% endfilter %}|", "{% filter replace('a', 'b') %}aaa{% set x = 1 %}{% endfilter %}{{ x is defined }}",
    "{% filter indent(2, true) %}\na\nb\n{% endfilter %}", "{% filter length %}abc{% endfilter %}", "{% filter upper %}{% filter lower %}aB{% endfilter %}c{% endfilter %}",
    "{% for n in numbers %}{% filter string %}{{ n }}{% if n == 1 %}{% continue %}{% endif %}!{% endfilter %}{% endfor %}", "{% filter upper %}a", "{% filter %}a{% endfilter %}",
    # recursive loops
    "{% for n in [[1, [2]], [3]] recursive %}{{ loop.depth }}{% if n is iterable %}<{{ loop(n) }}>{% else %}{{ n }}{% endif %}{% endfor %}",
    "{% for k, v in {'a': {'b': {}}, 'c': {}}.items() recursive %}{{ k }}{{ loop.depth0 }}({{ loop(v.items()) }}){% endfor %}",
    "{% for n in [1, [2, 3], [4, [5]]] recursive %}{% if n is sequence %}[{{ loop(n) }}]{% else %}{{ n }}{{ loop.index }}/{{ loop.length }}{% endif %}{% endfor %}",
    "{% for n in [3, [1, 2]] if n is sequence or n > 1 recursive %}{% if n is sequence %}({{ loop(n) }}){% else %}{{ n }}{% endif %}{% else %}-{% endfor %}",
    "{% for n in [[]] recursive %}{{ loop(n) }}{% else %}e{% endfor %}", "{% for n in [1] %}{{ loop([2]) }}{% endfor %}", "{% for n in [[1]] recursive %}{{ loop() }}{% endfor %}",
    "{% set x = 7 %}{% for n in [[1]] recursive %}{{ x }}{% if n is iterable %}{% set x = 8 %}{{ loop(n) }}{% endif %}{% endfor %}{{ x }}",
    "{% for n in [[1, 2], [3]] recursive %}{% if n is iterable %}{{ loop(n) | upper }}{% for q in [9] %}{{ loop.depth }}{% endfor %}{% else %}{{ n }}{% if n == 1 %}{% break %}{% endif %}{% endif %}{% endfor %}",
    # varargs, kwargs, caller
    "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1) }}{{ m(1, 2, 3) }}{{ m(1, x=2) }}{{ m(1, 2, y=3, z=4) }}",
    "{% macro m() %}{{ varargs | join(',') }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(1, *[2, 3]) }}{{ m() }}", "{% macro m() %}{{ kwargs.items() | list }}{% endmacro %}{{ m(**{'a': 1}) }}{{ m(b=2, **{'a': 1}) }}",
    "{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 3]) }}{{ m(**{'a': 1, 'b': 5}) }}{{ m(1, **{'b': 6}) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, **{'a': 2}) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1, 2]) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(**{'z': 2}) }}", "{% macro m(a) %}{{ varargs }}{% endmacro %}{{ m(1, 2, q=3) }}",
    "{% macro m() %}{% for v in varargs %}<{{ v }}>{% endfor %}{% endmacro %}{% macro n() %}{{ m(*varargs, **kwargs) }}{% endmacro %}{{ n(1, 2) }}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}",
    "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) m() %}{{ a }}{{ b }}{% endcall %}", "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a) m() %}{{ a }}{{ varargs }}{% endcall %}",
    "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}", "{% macro m(x) %}{% if caller %}{{ caller() }}{% endif %}{{ x }}{% endmacro %}{{ m(1) }}{% call m(*[2]) %}c{% endcall %}",
    "{{ f(*x, 1) }}", "{{ f(*x, *y) }}", "{{ f(**x, a=1) }}", "{{ dict(*[], a=1) }}", "{{ dict(**{}, ) }}", "{{ range(1, *[4]) | list }}",
    # cyclers and joiners
    "{% set c = cycler('a', 'b', 'c') %}{% for n in range(5) %}{{ c.next() }}{% endfor %}{{ c.current }}{% set _ = c.reset() %}{{ c.current }}{{ c.next() }}{{ c.next() }}",
    "{% set j = joiner(', ') %}{% for n in numbers %}{{ j() }}{{ n }}{% endfor %}", "{% set j = joiner() %}{% set k = joiner('|') %}{% for n in [1, 2] %}{{ j() }}{{ k() }}{{ n }}{% endfor %}",
    # groups, batches and comparisons in templates
    "{% for role, group in messages | groupby('role') %}{{ role }}:{% for m in group %}{{ m.content }},{% endfor %};{% endfor %}", "{% for g in messages | groupby('role') %}{{ g.grouper }}={{ g.list | length }} {% endfor %}",
    "{% for row in numbers | batch(2, '-') %}{{ row | join(' ') }}\n{% endfor %}", "{% for column in numbers | slice(3) %}{{ loop.index }}:{{ column }}{% endfor %}", "{% if 0 < numbers | length < 9 %}y{% endif %}",
    "{% for n in numbers if 0 < n < 3 %}{{ n }}{% endfor %}", "{% if 'a' in 'abc' in ['abc'] %}y{% else %}n{% endif %}", "{% set x = 1 < 2 < 3 %}{{ x }}", "{{ [1 < 2 < 3, 3 > 2 > 2] }}",
    # structures of published templates, written anew
    "{%- macro render(tool, depth=0) %}{% for key, value in tool.items() %}{{ '  ' * depth }}{{ key }}:{% if value is mapping %}\n{{ render(value, depth + 1) }}{% else %} {{ value | tojson }}\n{% endif %}{% endfor %}{%- endmacro %}{{ render(tools[0]) }}",
    "{%- set ns = namespace(last=-1) %}{%- for m in messages[::-1] %}{%- set i = (messages | length - 1) - loop.index0 %}{%- if ns.last < 0 and m.role == 'user' %}{%- set ns.last = i %}{%- endif %}{%- endfor %}{{ ns.last }}",
    "{%- for m in messages %}{%- set text = m.content if m.content is string else '' %}{%- set reasoning = '' %}{%- if m.reasoning_content is string %}{%- set reasoning = m.reasoning_content %}{%- elif '</think>' in text %}{%- set reasoning = text.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}{%- set text = text.split('</think>')[-1].lstrip('\\n') %}{%- endif %}<{{ m.role }}>{{ reasoning }}|{{ text }}\n{%- endfor %}",
    "{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}", "{%- set keys = namespace(list=[]) %}{%- for t in tools or [] %}{%- set keys.list = keys.list + [t.function.name] %}{%- endfor %}{{ keys.list | join(', ') }}",
    "{%- for m in messages if m.tool_calls is defined and m.tool_calls %}{%- for c in m.tool_calls %}{%- set f = c.function if c.function is defined else c %}{{ '<call>' + f.name + ' ' + (f.arguments if f.arguments is string else f.arguments | tojson) + '</call>' }}{%- endfor %}{%- endfor %}",
    "{%- macro typed(p) -%}{%- if p.type == 'object' -%}{ {%- for k, v in p.properties | dictsort %} {{ k }}{{ '?' if k not in (p.required or []) }}: {{ typed(v) }}{{ ',' if not loop.last }}{%- endfor %} }{%- elif p.type is sequence and p.type is not string -%}{{ p.type | join(' | ') }}{%- else -%}{{ p.type }}{%- endif -%}{%- endmacro -%}{{ typed(tools[0].function.parameters) }}",
]


def all_snippets():
    for line in EXPRESSIONS.strip().split("\n"):
        for expression in re.split(r"(?<! )\|(?! )", line):
            yield "{{ " + expression + " }}"
    yield from STATEMENTS
