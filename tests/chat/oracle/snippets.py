"""Short templates: each construct of the subset, with its edge cases."""

import re

EXPRESSIONS = """
1 + 2 * 3 ** 2|7 // 2|-7 // 2|7 % 3|-7 % 3|7 % -3|7 / 2|4 / 2|2 ** -1|2 ** 3 ** 2|-2 ** 2|1.5 + 1
1e3|1.0|1e16|1e15|123456789.125|0.0001|0.00001|1/3|7.5 // 2|-7.5 % 2|2.5 * 2|0.1 + 0.2|1e300 * 1e10
true + 1|true == 1|1 == 1.0|'1' == 1|[1, 2] == [1, 2]|(1,) == [1]|none == false|foo == bar
1 < 2|'a' < 'b'|[1, 2] < [1, 3]|1 < 'a'|none < 1|true and 0|0 or 'x'|'' or []|not 1|not not 'a'
'a' in 'abc'|'' in 'abc'|1 in [1, 2]|3 not in [1]|'role' in messages[0]|'x' in foo|1 in 'abc'
'a' ~ 1 ~ none ~ true ~ 2.0 ~ foo|'a' + 'b'|'a' * 3|[1] * 2|'a' + 1|'a' 'b' "c"|[1] + [2, 3]|(1,) + (2,)
'x' if yes else 'y'|'x' if not yes|('x' if not yes) is defined|'a' if zero else 'b' if empty else 'c'
numbers[0]|numbers[-1]|numbers[9]|numbers[9] is defined|name[0]|name[-1]|name[1:4]|name[::-1]|name[::2]
numbers[1:]|numbers[:-1]|numbers[::-1]|numbers[5:]|numbers[-2:]|numbers[3:1:-1]|numbers[none:2]
messages[0].role|messages[0]['role']|messages[0].foo|messages[0].foo is undefined|messages[0].foo.bar
messages[2].tool_calls[0].function.arguments.city|messages[2]['tool_calls'][0]['function'].name
nested.a.b[2].c|nested.a.b.2|nested['list']|nested.items is defined|nested.get('a')|nested.get('q', 5)
nested.keys() | list|nested.values() | list | length|nested.items() | list | first | first
foo|foo.bar|foo()|foo + 1|foo ~ 'x'|foo | length|foo[0]|foo is none|foo is string|foo is iterable
none|true|[none, true, 1.5, 'a']|{'a': 1, 'b': [1, "it's"]}|('a',)|()|(1, 2)|{}|[]|{1: 2, none: 3}
'a\\nb'|'a\\tb\\\\c'|'\\x41\\u00e9'|'it\\'s'|"say \\"x\\""|['a\\nb', "it's", 'a"b', '\\'"', '\\x01', 'é']
name | upper|name | lower|name | title|name | capitalize|'they\\'re BAD-men (ok)' | title|'ab' | capitalize
name.upper()|name.lower()|name.title()|name.capitalize()|"they're".title()|'a1b c_d'.title()
'  x '.strip() ~ '^'|'  x '.lstrip() ~ '^'|'  x '.rstrip() ~ '^'|'xxaxx'.strip('x')|'abcba'.rstrip('ab')
'\\n\\n a\\n'.strip('\\n') ~ '^'|'  a ' | trim ~ '^'|'xax' | trim('x')|5 | trim|none | trim|foo | trim
'a b  c'.split()|'a b  c'.split(' ')|'a,b,c'.split(',', 1)|' a b '.split(none, 1)|'a,b,c'.rsplit(',', 1)
'a--b'.split('--')[-1]|''.split()|''.split(',')|'abc'.split('')|'a\\nb\\n'.splitlines()|'x'.split('x')
'abc'.startswith('a')|'abc'.endswith(('x', 'c'))|'abc'.startswith(1)|'abc'.find('c')|'abc'.find('z')
'aXbX'.replace('X', '-')|'aXbX'.replace('X', '-', 1)|'ab'.replace('', '-')|'aXb' | replace('X', 'Y')
'abab' | replace('a', 'x', 1)|'abc'.count('b')|'-'.join(['a', 'b'])|'-'.join([1])|'ab'.index('z')
'abc'.isdigit()|'12'.isdigit()|'ab'.isalpha()|' '.isspace()|''.isspace()|'{} {}'.format(1, 'a')
'{0}{1}{0}'.format('a', 'b')|'{x}'.format(x=1)|'{{}}'.format()|'%s-%d' % ('a', 3)|'%s' % 'x'|'%05.1f' % 2.25
'%s %s' | format('a', 1)|'%d' % 'a'|'%s' % (1, 2)|'%%' % ()|'%x' % 255|'%5s^' % 'é'|'%03d' % -5
'abc'.removeprefix('a')|'abc'.removesuffix('bc')|'abc'.removeprefix('x')|'abc'.foo|'abc'.foo()
numbers | length|name | length|nested | count|5 | length|none | length|'日本' | length
numbers | join|numbers | join(', ')|words | join('-')|messages | join(', ', attribute='role')|[] | join('x')
foo | default('d')|none | default('d')|none | default('d', true)|'' | d('x', boolean=true)|foo | default
numbers | first|numbers | last|[] | first|([] | first) is defined|'abc' | first|'abc' | last|foo | first
'abc' | list|nested | list|numbers | list|nested | items | list|foo | items | list|5 | list|none | list
5 | string ~ 'x'|none | string|'5' | int + 1|'x' | int|'x' | int(7)|'1.9' | int|2.9 | int|' 7 ' | int|none | int
'2.5' | float|'x' | float|3 | float|'1e2' | float|'x' | float(1.5)|-2.9 | int|true | int|-5 | abs|2.5 | round
3.5 | round|2.567 | round(2)|2.1 | round(0, 'ceil')|2.19 | round(1, 'floor')|7 | round|-2.5 | abs
messages | map(attribute='role') | list|messages | map(attribute='foo') | list | length|words | map('upper') | list
messages | map(attribute='tool_calls.0.id', default='-') | list|words | map('upper') | join(',')|[1, 2] | map('string') | list
messages | selectattr('role', 'equalto', 'user') | list | length|messages | rejectattr('role', 'in', ['user', 'tool']) | map(attribute='role') | list
messages | selectattr('tool_calls') | list | length|messages | selectattr('tool_calls', 'defined') | list | length
numbers | select('odd') | list|numbers | reject('greaterthan', 1) | list|words | select | list|[0, 1] | select | list|numbers | select('>', 1) | list
numbers | reverse | list|'abc' | reverse|numbers | unique | list|words | unique | list|words | unique(case_sensitive=true) | list|numbers | sort
words | sort|words | sort(case_sensitive=true)|numbers | sort(reverse=true)|messages | sort(attribute='role') | map(attribute='role') | list|words | sort(true)
{'b': 1, 'A': 2, 'c': 0} | dictsort|{'b': 1, 'A': 2} | dictsort(true)|{'b': 1, 'a': 2} | dictsort(by='value')|{'b': 1, 'a': 2} | dictsort(reverse=true)
numbers | sum|numbers | min|numbers | max|words | max|[] | max|[{'a': 1}, {'a': 2}] | sum(attribute='a')|[1.5, 1] | sum(start=2)|['a', none] | sort
'a\\nb\\n\\nc' | indent|'a\\nb' | indent(2, true)|'a\\n\\nb' | indent(2, blank=true)|'a\\nb' | indent('> ')|'a\\n' | indent ~ '^'
tools | tojson|tools | tojson(indent=2)|tools[0] | tojson(sort_keys=true)|nested | tojson|nested | tojson(separators=(',', ':'))|foo | tojson
'é"\\\\\\n\\t\\x01/</' | tojson|'é🌞' | tojson(ensure_ascii=true)|[1.0, 1e20, true, none, {}] | tojson|(1, 2) | tojson|{1: 2, true: 3} | tojson|[] | tojson(indent=4)
messages | tojson(indent=4)|{'a': []} | tojson(indent=1)|{'a': {}, 'b': [1, [2]]} | tojson(indent=2)|{none: 1, 2.5: 3} | tojson|numbers | map('tojson') | list
yes is boolean|1 is boolean|1 is number|true is number|2.5 is float|1 is integer|true is integer|'a' is string|none is none|nested is mapping
numbers is mapping|numbers is sequence|'a' is sequence|nested is sequence|5 is sequence|5 is iterable|'a' is iterable|none is iterable|foo is sequence|yes is true
zero is false|no is defined|1 is true|2 is even|3 is odd|9 is divisibleby 3|9 is divisibleby(2)|'a' is in 'abc'|1 is in [2]|1 is not in [2]|5 is gt 3|5 is eq(5)|5 is ne 5
5 is lt 3|5 is ge 5|5 is le 4|'a' is lower|'A' is upper|'1' is lower|'aB' is lower|range is callable|5 is not callable|5 is equalto 5.0|'a' is defined and not foo is defined
foo is not defined|not foo is defined|1 is number and 2 is string|1 if 2 is none else 3|('a' is string) == true|5 is divisibleby 0|'x' is even
range(3) | list|range(1, 7, 2) | list|range(3, 0, -1) | list|range(0) | list|range(1, 2, 0)|range('a')|range(5) | sum|range(3)[1]
dict(a=1, b='x')|dict({'a': 1}, b=2)|dict([('a', 1)])|namespace(a=1).a|namespace({'q': 2}).q|namespace().x is defined|namespace(a=1).b|dict(a=1).a
strftime_now('%d %b %Y')|raise_exception('no')|undefined_function()|bos_token ~ eos_token|unk_token is defined|tools is not none|documents is none
messages[0].content is string|messages[2].content is none|messages[1:] | length|messages[-1].role|messages[::2] | map(attribute='role') | join(' ')|(messages | last).role
(messages[0].role == 'system') != (1 % 2 == 0)|messages[4].content.split('</think>')[-1].lstrip('\\n')|messages[4].content.split('</think>')[0].rstrip('\\n').split('<think>')[-1]
'</think>' in messages[4].content|messages[1].content | trim|messages[0]['content'] | trim + '\\n\\n'|[1, 2,]|{'a': 1,}|(1, 2,)|name | length > 3|-numbers[0]|- - 1|+1|-'a'
1 if true else 2 if false else 3|[1, 2][1]|{'a': 'b'}['a']|'abc'[1]|(1, 2)[0]|'a,b' .split(',') [0]|[[1, 2], [3]][0][1]|{'a': {'b': 1}}.a.b|'abc'[5] is defined|1.5 | string | length
numbers.append(5)|numbers.index(2)|numbers.count(1)|numbers.foo|numbers.foo()|5 .foo|none.foo|none.foo.bar|none['a']|yes.x|5[0]|nested[numbers]|{[1]: 2}
1 +|(1|[1|{1}|'a|1 2|| upper|a.|a[|a[1|not|is x|1 is|1 |1..2|a b|)|}|{'a' 1}|1 = 2|a is defined is none|&|a $ b
"""

STATEMENTS = [
    "{% if yes %}a{% elif zero %}b{% else %}c{% endif %}", "{% if zero %}a{% elif yes %}b{% endif %}",
    "{% if foo %}a{% else %}c{% endif %}", "{% for m in messages %}{{ m.role }},{% endfor %}",
    "{% for n in numbers %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}"
    "{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.depth }}\n{% endfor %}",
    "{% for n in numbers %}{{ loop.previtem }}<{{ n }}>{{ loop.nextitem }};{% endfor %}",
    "{% for n in numbers %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}",
    "{% for n in numbers %}{{ loop.cycle('a', 'b') }}{{ loop.changed(n > 1) }}{% endfor %}",
    "{% for n in [] %}x{% else %}none{% endfor %}", "{% for n in foo %}x{% else %}none{% endfor %}",
    "{% for n in numbers if n > 1 %}{{ loop.index }}/{{ loop.length }}={{ n }} {% else %}-{% endfor %}",
    "{% for n in numbers if n > 5 %}{{ n }}{% else %}-{% endfor %}", "{% for n in 5 %}x{% endfor %}",
    "{% for k, v in nested.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in nested | items %}{{ k }};{% endfor %}", "{% for k in nested %}{{ k }};{% endfor %}",
    "{% for (a, b) in [(1, 2), [3, 4]] %}{{ a }}{{ b }};{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}", "{% for a, in [(1,)] %}{{ a }}{% endfor %}",
    "{% for c in 'añb' %}[{{ c }}]{% endfor %}", "{% for a in 1, 2 %}{{ a }}{% endfor %}",
    "{% for n in numbers %}{% if n == 1 %}{% continue %}{% endif %}{{ n }}{% endfor %}",
    "{% for n in numbers %}{% if n == 2 %}{% break %}{% endif %}{{ n }}{% else %}e{% endfor %}",
    "{% for a in [1, 2] %}{% for b in [1, 2] %}{{ loop.depth }}{{ a }}{{ b }}{% if b > 0 %}"
    "{% break %}{% endif %}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% set x = 1 %}{% for n in numbers %}{% set x = x + n %}{{ x }},{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% for n in numbers %}{{ y }}{% set y = n %}{% endfor %}{{ y is defined }}{{ n is defined }}",
    "{% set ns = namespace(n=0, t='') %}{% for n in numbers %}{% set ns.n = ns.n + n %}"
    "{% set ns.t = ns.t ~ n %}{% endfor %}{{ ns.n }}{{ ns.t }}{{ ns.q }}",
    "{% set a, b = 1, 'x' %}{{ a }}{{ b }}", "{% set a, b = 'xy' %}{{ b }}{{ a }}",
    "{% set a, b = [1] %}", "{% set t = 1, %}{{ t }}", "{% set nested.x = 1 %}", "{% set q.x = 1 %}",
    "{% set x %}a{{ 1 }}\n{% endset %}[{{ x }}]", "{% set x | upper | trim %} ab {% endset %}[{{ x }}]",
    "{% set x %}{% set y = 1 %}{% endset %}{{ y is defined }}",
    "{% set l = [] %}{% for n in numbers %}{% set _ = l.append(n) %}{% endfor %}{{ l }}",
    "{% macro m(a, b='B') %}<{{ a }}{{ b }}>{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(b=3) }}{{ m(a=1, b=2) }}",
    "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}{{ m(1) | upper }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(q=2) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}", "{% macro m(a=1, b=a + 1) %}{{ b }}{% endmacro %}{{ m(5) }}",
    "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(4) }}",
    "{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 5 %}{% endmacro %}{{ m() }}{% set x = 2 %}{{ m() }}{{ x }}",
    "{% macro m() %}{{ late }}{% endmacro %}{{ m() }}{% set late = 3 %}{{ m() }}",
    "{% macro m(x) %}[{{ caller() }}{{ x }}]{% endmacro %}{% call m(1) %}in{{ 2 }}{% endcall %}",
    "{% macro m() %}[{{ caller(7) }}]{% endmacro %}{% call(v) m() %}<{{ v }}>{% endcall %}",
    "{% macro a() %}A{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}",
    "{% for n in numbers %}{% macro m() %}{{ n }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% generation %}{{ name }}{% set inside = 1 %}{% endgeneration %}{{ inside is defined }}",
    "{% set ns = namespace(f=[]) %}{% set ns.f = ns.f + [1] %}{{ ns.f }}", "{{ 1, 2 }}", "{{ 1, }}",
    "{% set ns = namespace(found=false) %}{% for m in messages %}{% if m.role == 'tool' and not ns.found %}"
    "{% set ns.found = true %}{{ loop.index }}{% endif %}{% endfor %}{{ ns.found }}",
    "{% if messages[0].role == 'system' %}{% set s = messages[0].content %}{% set rest = messages[1:] %}"
    "{% else %}{% set rest = messages %}{% endif %}{{ rest | length }}{{ s }}",
    "{{ '}}' }}", "{{ {'a': {'b': 1}}['a'] }}", "{{ {'a': {'b': 1}} }}", "{% set x = '%}' %}{{ x }}",
    "{{ '{{' }}", "a { b } {c}", "{", "{{", "{%", "{# a", "}}", "%}", "{# a #}", "{# {{ x }} #}b",
    "{{ 1 }", "{% if %}{% endif %}", "{% if 1 %}", "{% endif %}", "{% else %}", "{% for x in %}{% endfor %}",
    "{% for in y %}{% endfor %}", "{% set = 1 %}", "{% set x 1 %}", "{% set true = 1 %}", "{% break %}",
    "{% macro m %}{% endmacro %}", "{% if 1 %}{% endfor %}", "{% for x in y %}{% else %}{% else %}{% endfor %}",
    "{% if 1 %}{% else %}{% elif 2 %}{% endif %}", "{% call 1 %}{% endcall %}", "{%%}", "{% 1 %}", "{{ }}",
    "{% if 1 -%} a {%- endif %} b", "{% if 1 +%}\na{% endif %}", "{{ 1 -}} \n x", "x \n {{- 1 }}",
    "a\n  {% if 1 %}\n  b\n  {% endif %}\n  c\n", "a\n  {%+ if 1 %}\n  b\n  {%- endif %}\n  c\n\n",
    "a\n  {# c #}\n  b", "a\n  {#- c -#}\n  b", "a  {#+ c +#}\n  b", "a {# c #} b", "a\n\t{# c #}{# d #}\nb",
    "  {% if 1 %}x{% endif %}  {% if 1 %}\ny{% endif %}", "{{ 1 }}\n", "{{ 1 }}\n\n", "{{ 1 }}\r\n{{ 2 }}\r{{ 3 }}\r\n",
    "{% if 1 %}\n\n\nx{% endif %}\n", "{{-1}}", "a {{-1}}", "a {{- -1}}", "a {{+1}}", "{{ 1 +}}", "{{ 2-}} b",
    "{% set x = 1 %}  {% set y = 2 %}\n  {{ x }}", "\n  {% set x = 1 %}\n  {{ x }}\n  {%- set y = 2 -%}\n  {{ y }}",
    "a\u3000{%- if 1 %}b{% endif %}", "a\u00a0\n\u3000{% if 1 %}b{% endif %}", "x{% if 1 %}\r\ny{% endif %}",
    "{% for n in numbers -%}\n  {{ n }}\n{%- endfor %}", "{% for n in numbers %}\n  {{ n }}\n{% endfor %}",
    "{% for n in numbers %}\n    {% if n > 1 %}\n{{ n }}\n    {% endif %}\n{% endfor %}\n",
    "{#-#}", "a {#-#} b", "a {#--#} b", "{#+#}\nx", "{% if 1%}a{%endif%}", "{%if 1%}a{%-endif-%} b",
    "line\n{{ 1\n+\n2 }}\n{% if\n1 %}x{% endif %}", "{{ 'a\nb' }}", "{{ \"a\\\nb\" }}",
    "{{ messages | map(attribute='content') | select('string') | map('length') | list }}",
    "{{ 1 }}{% if 1 %}  \n{% endif %}  \n", "é{{ 'ü' }}日\n  {% if 1 %}\n本{% endif %}",
]

def all_snippets():
    for line in EXPRESSIONS.strip().split("\n"):
        # A bar without spaces divides expressions; one with a space is a filter.
        for expression in re.split(r"(?<! )\|(?! )", line):
            yield "{{ " + expression + " }}"
    yield from STATEMENTS
