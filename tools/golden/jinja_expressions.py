"""Small templates, one feature each, with the variables they see."""

VARIABLES = {
    "n": 7, "z": 0, "neg": -3, "pi": 3.14159, "half": 0.5, "t": True, "f": False, "nothing": None,
    "s": "Hello, World", "empty": "", "spaces": "  padded \n", "uni": "Straße Ünïcode 你好 😀",
    "quote": "it's \"quoted\"\n\ttab\\", "lines": "one\ntwo\n\nthree\n",
    "l": [3, 1, 2], "words": ["pear", "Apple", "fig", "apple"], "nested": [[1, 2], [3, [4, 5]]],
    "mixed": [1, "a", None, True, 2.5, {"k": "v"}], "el": [],
    "d": {"b": 1, "a": 2, "C": 3}, "ed": {},
    "users": [{"name": "Ann", "age": 31, "tags": ["x", "y"]},
              {"name": "bob", "age": 25, "tags": []},
              {"name": "Cid", "age": 31, "admin": True, "tags": ["z"]}],
    "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi <|im_end|>"},
                 {"role": "assistant", "content": None,
                  "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1, "b": [1, 2.0, "é"]}}}]},
                 {"role": "tool", "content": "42", "name": "f"}],
    "html": "<a href='x'>T&C</a>",
    # Integers of more than 64 bits, and floats of about that size.
    "big": 18446744073709551616, "below": -123456789012345678901234567890, "edge": 9223372036854775808,
    "bigs": [18446744073709551616, {"a": -9223372036854775809}, 9007199254740993, 1e300, 1.0, -0.0, 1e5],
}

_EXPRESSIONS = r"""
1 + 2 * 3
(1 + 2) * 3
7 / 2
8 / 2
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
7.5 % 2
-7.5 % 2
7.5 // 2
2 ** 10
2 ** -1
2 ** 3 ** 2
-2 ** 2
2.0 ** 0.5
1e3
1.5e-7
1e16
1e15
123456789012345678.0
0.1 + 0.2
1_000
100000000000000000000.0
1.0
-0.0
1 / 3
3.0 * 2
1 - 1.0
true + true
n - neg
-n
+n
--n
- n|abs
-3|abs
n / z
n // z
n % z
1.0 / 0
'a' + 'b'
'a' ~ 1 ~ none ~ true ~ 1.5
'ab' * 3
3 * 'ab'
'ab' * -1
[1] * 3
[1, 2] + [3]
(1, 2) + (3,)
[1] + (2,)
'a' + 1
1 + 'a'
none + 1
[1] + 1
d + d
1 == 1.0
1 == true
'1' == 1
none == none
none == false
[1, 2] == [1, 2]
[1, 2] == (1, 2)
{'a': 1} == {'a': 1.0}
1 != 2
1 < 2 < 3
1 < 3 < 2
1 < 2 > 0
'a' < 'b'
'Z' < 'a'
[1, 2] < [1, 3]
[1] < [1, 0]
1 < 'a'
none < 1
d < d
2 in l
5 in l
5 not in l
'a' in d
'q' in d
'ell' in s
'' in s
1 in s
'a' in none
1 in n
not true
not not n
not n == 7
true and false or true
n and s
z and s
z or 'default'
'' or none or []
n > 5 and n < 10
t is true
f is false
1 is true
t is boolean
n is number
t is number
n is integer
t is integer
pi is float
pi is integer
s is string
n is string
l is iterable
s is iterable
n is iterable
d is mapping
l is mapping
l is sequence
d is sequence
s is sequence
n is sequence
nothing is none
n is none
missing is defined
s is defined
missing is undefined
missing is none
missing is not defined
missing.attr is defined
d.q is defined
d.a is defined
n is odd
n is even
9 is divisibleby 3
9 is divisibleby(4)
'ABC' is upper
'abc' is lower
'Abc' is upper
'12' is upper
n is eq 7
n is equalto(7)
n is ne 7
n is gt 5
n is lt 5
n is ge 7
n is le 6
n is in [1, 7]
n is not in [1, 7]
'x' is sameas 'x'
none is sameas none
range is callable
s is callable
'trim' is filter
'nofilter' is filter
'odd' is test
s is nosuchtest
n is odd or n is even
n is defined and n is string
l[0]
l[-1]
l[5]
l[5].x
l['x']
l.0
nested[1][1][0]
nested.1.1
s[0]
s[-1]
s[50]
s[1:4]
s[:5]
s[7:]
s[-5:]
s[:-1]
s[::-1]
s[::2]
s[10:2:-3]
s[100:]
uni[7:14]
uni[-1]
uni|length
l[1:]
l[::-1]
l[:0]
l[-2:]
l[5:1]
(1, 2, 3)[1:]
s[::0]
s[1:'a']
d['a']
d['zz']
d.a
d.get('a')
d.get('q')
d.get('q', 'dflt')
none.x
none.x.y
n.x
n[0]
missing
missing.x
missing[0]
missing()
missing + 1
missing ~ 'x'
missing == missing
missing == none
not missing
missing or 'alt'
missing and 'alt'
missing|length
missing|upper
missing|list
missing|join(',')
missing|first
missing|default('D')
missing|tojson
missing|int
missing < 1
'a' in missing
-missing
[missing]|length
missing|trim
'a' if true
'a' if false
('a' if false) is defined
'a' if n > 5 else 'b'
'a' if z else 'b' if n else 'c'
1 if none else 2
[1, 2, 3]
[]
[1,]
()
(1,)
(1, 2)
1, 2
{}
{'a': 1, 'b': [true, none]}
{'a': 1,}
{1: 'x', none: 2, true: 3}
{'a': 1, 'a': 2}
{[1]: 2}
mixed
d
nested
users
none
true
1.0
[1.0, 1e20, 'x']
quote
[quote]
['it\'s']
['"']
['\'"']
[uni]
['a\nb\tc\\d\r\x01\x7f']
['\u200b\xa0\xad']
"\x41\u00e9\U0001F600\101"
'a\qb'
'\N'
'a' 'b' "c"
"double 'single'"
"{{ not a tag }}"
'%}' ~ '}}'
{'a': {'b': 1}}.a.b
{'x': {'y': {}}}
'abc'.upper()
'ABC'.lower()
'hello world'.title()
"they're bill's".title()
'hELLO wORLD'.capitalize()
uni.upper()
uni.lower()
'éa Éa'.title()
'  x '.strip()
'xxhixx'.strip('x')
'abcba'.lstrip('ab')
'abcba'.rstrip('ab')
'\u3000x\u2003'.strip()|length
'a,b,c'.split(',')
'a,b,c'.split(',', 1)
'a,b,c'.rsplit(',', 1)
'  a  b c '.split()
' a b c '.split(none, 1)
' a b c '.rsplit(none, 1)
'abc'.split('')
''.split()
''.split(',')
'a,b'.split(sep=',')
'a,b,c'.split(',', maxsplit=1)
'one</think>two'.split('</think>')[-1]
'one</think>two</think>'.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n')
lines.splitlines()
lines.splitlines(true)
'a\r\nb\rc\x0bd'.splitlines()
''.splitlines()
'abc'.startswith('a')
'abc'.startswith(('x', 'a'))
'abc'.startswith(['a'])
'abc'.startswith('b', 1)
'abc'.endswith('bc')
'abc'.endswith(('x', 'y'))
'abc'.startswith('')
'abcabc'.replace('b', 'X')
'abcabc'.replace('b', 'X', 1)
'abc'.replace('', '-')
'abc'.replace('', '-', 2)
'abcabc'.find('c')
'abcabc'.find('c', 3)
'abcabc'.rfind('b')
'abc'.find('z')
'abc'.index('c')
'abc'.index('z')
uni.find('你')
'banana'.count('an')
'aaa'.count('')
'banana'.count('a', 2)
', '.join(['a', 'b'])
', '.join([1, 2])
''.join('abc')
'-'.join(d)
'prefix-x'.removeprefix('prefix-')
'x-suffix'.removesuffix('-suffix')
'abc'.removeprefix('z')
'a=b=c'.partition('=')
'a=b=c'.rpartition('=')
'abc'.partition('=')
' '.isspace()
''.isspace()
'123'.isdigit()
'12a'.isdigit()
'abc'.isalpha()
'ab1'.isalnum()
'ABC'.isupper()
'a1b'.islower()
'7'.zfill(3)
'-7'.zfill(4)
'x'.ljust(3) ~ '|'
'x'.rjust(3, '.')
'x'.center(4) ~ '|'
'xy'.center(5) ~ '|'
'{} and {}'.format(1, 'b')
'{1}{0}{1}'.format('a', 'b')
'{x} {y!r}'.format(x=1, y='q')
'{:>5}|{:<5}|{:^5}|'.format('a', 'b', 'c')
'{:05d} {:.2f} {:x}'.format(42, 3.14159, 255)
'{:*^9}'.format('mid')
'{{}}'.format()
'{}'.format()
'%s is %d and %.1f%%' % ('x', 3, 2.55)
'%s' % 'one'
'%r' % 'one'
'%5s|%-5s|' % ('a', 'b')
'%03d' % 7
'%(a)s' % {'a': 1}
'%d' % 'x'
'%s %s' % ('x',)
'%s' % ('x', 'y')
'abc'.nosuch()
'abc'.nosuch
l.index(1)
l.index(9)
l.count(1)
d.items()|list
d.keys()|list
d.values()|list
d.items()|length
d.keys()|join(',')
d.copy()
'a' in d.keys()
d.nosuch()
s|upper
s|lower
s|title
'foo-bar (baz) [qux] {x} <y> it\'s a.b'|title
s|capitalize
s|length
s|count
l|length
d|length
n|length
none|length
s|trim
spaces|trim
'xxaxx'|trim('x')
n|trim
none|trim
s|replace('l', 'L')
s|replace('l', 'L', 1)
n|replace(7, 8)
s|reverse
l|reverse|list
l|first
l|last
el|first
el|last
s|first
s|last
d|first
d|list
s|list
n|list
l|join
l|join(', ')
words|join(', ')
users|join(', ', attribute='name')
mixed|join('|')
l|string
none|string
d|string
'42'|int
'42.9'|int
'x'|int
'x'|int(5)
'ff'|int(0, 16)
' 42 '|int
'1_000'|int
3.99|int
-3.99|int
none|int
none|int(default=9)
true|int
l|int
'1e3'|int
'3.5'|float
'x'|float
'x'|float(1.5)
'inf'|float
none|float
n|float
neg|abs
-2.5|abs
'x'|abs
3.14159|round
3.14159|round(2)
2.5|round
3.5|round
2.675|round(2)
7|round
1234|round(-2)
3.2|round(0, 'ceil')
3.8|round(0, 'floor')
3.14159|round(3, 'floor')
3.2|round(method='nope')
'x'|round
none|default('D')
none|default('D', true)
''|default('D', true)
''|d('D', boolean=true)
missing|d
z|default(5)
d|items|list
missing|items|list
l|items|list
d|dictsort
d|dictsort(true)
d|dictsort(false, 'value')
d|dictsort(by='value', reverse=true)
d|dictsort(by='nope')
l|sort
l|sort(reverse=true)
words|sort
words|sort(case_sensitive=true)
users|sort(attribute='age')|map(attribute='name')|list
users|sort(attribute='age,name')|map(attribute='name')|list
mixed|sort
words|unique|list
words|unique(true)|list
[1, 1.0, true, 2]|unique|list
users|unique(attribute='age')|map(attribute='name')|list
l|min
l|max
el|max
words|min
words|max(case_sensitive=true)
users|max(attribute='age')
l|sum
users|sum(attribute='age')
l|sum(start=10)
words|sum
users|map(attribute='name')|join(',')
users|map(attribute='nope', default='-')|join(',')
users|map(attribute='tags.0', default='?')|join(',')
words|map('upper')|list
words|map('replace', 'p', 'P')|list
words|map('length')|sum
l|map('nosuch')|list
l|map|list
l|select('odd')|list
l|select('gt', 1)|list
l|reject('odd')|list
mixed|select|list
mixed|reject|list
mixed|select('string')|list
users|selectattr('admin')|map(attribute='name')|list
users|selectattr('age', 'equalto', 31)|map(attribute='name')|list
users|selectattr('age', 'eq', 25)|list|length
users|rejectattr('admin', 'defined')|map(attribute='name')|list
users|selectattr('tags')|list|length
messages|selectattr('role', 'equalto', 'system')|list|length > 0
messages|selectattr('role', 'in', ['user', 'tool'])|map(attribute='role')|list
messages|selectattr('role', 'equalto', 'nobody')|list
(messages|selectattr('role', 'equalto', 'nobody')) is true
'yes' if messages|selectattr('role', 'equalto', 'nobody') else 'no'
(l|select)|length
(l|select)[0]
l|select|first
l|select|last
l|batch(2)|list
l|batch(2, 'x')|list
l|slice(2)|list
l|slice(2, 'x')|list
users|groupby('age')|map('first')|list
html|e
html|escape
n|escape
html|safe
lines|indent
lines|indent(2)
lines|indent(2, true)
lines|indent(2, first=true, blank=true)
lines|indent('> ')
n|indent
'%s-%s'|format('a', 1)
'%(x)s'|format(x=5)
'a b  c'|wordcount
'hello big world'|truncate(9)
'hello big world'|truncate(9, true)
'hello big world'|truncate(9, true, '!', 0)
'hello'|truncate(9)
'x'|center(5) ~ '|'
s|nosuchfilter
s|upper|lower|title
s|replace('a')
s|trim('a', 'b')
d|tojson
mixed|tojson
users|tojson
uni|tojson
uni|tojson(ensure_ascii=true)
quote|tojson
html|tojson
none|tojson
1.0|tojson
1e20|tojson
{'a': [], 'b': {}}|tojson
{'a': [], 'b': {}, 'c': [1, {'d': 2}]}|tojson(indent=2)
d|tojson(indent=4)
d|tojson(indent=0)
d|tojson(sort_keys=true)
d|tojson(separators=(',', ':'))
d|tojson(indent=2, separators=(',', ': '))
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
(1, 2)|tojson
'a\x01\x7f\u2028'|tojson
range|tojson
messages|tojson
messages[2].tool_calls[0].function.arguments|tojson
messages[2]['tool_calls'][0]['function']['arguments'].b
range(5)|list
range(1, 4)|list
range(10, 0, -3)|list
range(0)|list
range(3)|sum
range(1, 2, 0)|list
range(1000000)|list
range('a')|list
dict(a=1, b=2)
dict([('a', 1)])
dict(d, z=9)
namespace(a=1).a
namespace(a=1).b
namespace({'q': 5}).q
raise_exception('boom')
(strftime_now('%Y')|length) == 4
strftime_now('%d %b %Y')|length
(joiner('|'))()
nosuchfunction()
n()
s.upper()|lower
(s|upper).lower()
'a'.upper()[0].lower()
[1, 2][0]
[[1, 2], [3]][0][1]
{'a': [10, 20]}['a'][1]
"abc"[1]
'abc'|list|reverse|join
l is not none and l|length > 2
(n == 7) | string
1 if l else 0
d.a + d.b * 2
s ~ '!' ~ (n + 1)
'%s' % n ~ 'x'
n|string + 'x'
n|string ~ 1|string
not s is string
not s in ['x']
n in [7] and s
1 is defined is true
a.b.c
users[0].name ~ users[-1]['name']
users[0].tags|join('/') or 'none'
users[1].tags|join('/') or 'none'
loop
loop.index
true.x
{'keys': 5}['keys']
{'keys': 5}.get('keys')
'a' if 'b' in {'b': 0} else 'c'
(1 if true else 2) + 1
10 - 2 - 3
100 / 10 / 2
2 * 3 % 4
1 + 1 ~ 1
1 ~ 1 + 1
'x' * 2 ~ 'y'
1 < 2 == true
1 == 1 == 1
n is divisibleby 7 and true
[1,2,3]|map('string')|join('-')
[[3,'c'],[1,'a']]|sort
[(1, 'b'), (1, 'a')]|sort
'A' < 'a'
none is not none
"" is none
[none]
(none,)
{none: none}
1 +
(1
[1, 2
{'a' 1}
1 2
'unclosed
a b
| upper
s |
s | upper(
.x
x..y
n ! 2
n = 2
{% x
big
below
big ~ '|' ~ below
[big, below]
bigs
bigs | tojson
bigs | string
{big: below} | tojson
big == 18446744073709551616
big == 18446744073709551617
big == 1.8446744073709552e19
edge == 9.223372036854775808e18
edge == 9.223372036854775807e18
9007199254740993 == 9007199254740992.0
9007199254740993 > 9007199254740992.0
9223372036854775807 < 9.223372036854775807e18
big > below
big > 1
below < -1e300
below > -1e300
big < 1e300
big <= big
big > edge
edge < big
big in bigs
big in [1, edge]
big is number
big is integer
big is float
big is string
big is sameas big
big and 'yes'
big if big else 'no'
not big
-big
- -big
-edge
--9223372036854775808
big | abs
below | abs
(-9223372036854775808) | abs
big | int
'18446744073709551616' | int
' -00018446744073709551616 ' | int
'-0' | int
'1_0000000000_0000000000' | int
'1e30' | int
1e30 | int
-1.5e25 | int
(1e22) | int
9.3e18 | int
big | float
below | float
big | round
big + 0.5
big * 1.0
big / 2.0
'%d' % big
'%d|%+d|% d' % (big, big, big)
'%030d|%-30d|%30d|' % (below, big, big)
'%.25d' % big
'%s|%r' % (big, below)
'%f' % big
'{}'.format(big)
'{:d}|{:30d}|{:<30d}|'.format(big, big, below)
bigs | length
[big, below, 1, 2.5, edge] | sort
[big, below, 1] | max
[big, below, 1] | min
[big, 1, big] | unique | list
{'a': big}['a']
big | tojson | length
big | string | length
big.a
big[0]
big | length
"""

# Whole templates: statements, scopes, white space.
_STATEMENTS = [
    "{{ 'line\\\njoined' }}", "{{ 'a\nb' }}",
    "a\nb\n", "a\n\n", "\n", "", "  x  ", "{{ 1 }}\n", "{{ 1 }}\n{{ 2 }}\n", "a\r\nb\rc",
    "{# comment #}x", "{# a\n b #}\nx", "a {#- c -#} b", "a\n  {# c #}\nb", "{# {{ x }} {% y %} #}z",
    "a{# b", "{{ 1", "{% if", "{% if 1 %}x", "{{ }}", "{% %}", "{ { 1 } }", "{", "}}", "%}", "{ %",
    "{% if 1 %}x{% endif %}", "{% if 0 %}x{% endif %}y", "{% if 0 %}a{% elif 1 %}b{% else %}c{% endif %}",
    "{% if 0 %}a{% elif 0 %}b{% else %}c{% endif %}", "{% if 1 %}\nx\n{% endif %}\ny",
    "  {% if 1 %}\n  x\n  {% endif %}\n  y", "a {% if 1 %}b{% endif %} c",
    "{% if 1 -%}\n  x\n  {%- endif %}\ny", "a\n  {%- if 1 %} b {% endif -%}\n c",
    "a\n  {%+ if 1 %}b{% endif %}", "{% if 1 +%}\nx{% endif %}", "{% if 1 %}  \nx{% endif %}",
    "x\n\t {% if 1 %}y{% endif %}", "x {% if 1 %}\ny{% endif %}", "{{- ' a ' -}} b", "a {{- 1 }} b {{ 2 -}} c",
    "a\n{{- 1 -}}\nb", "a\n {{ 1 }}\n b", "{% set x = 1 %}\n{% set y = 2 %}\n{{ x + y }}",
    "{{ '\n' }}x", "{% if 1 %}{% if 0 %}a{% else %}b{% endif %}{% endif %}",
    "{% endif %}", "{% else %}", "{% if 1 %}{% endfor %}", "{% nosuchtag %}", "{% if %}x{% endif %}",
    "{% if 1 %}{{ x }", "{% for %}{% endfor %}", "{% for x l %}{% endfor %}", "{% set %}", "{% set 1 = 2 %}",
    "{% set x = %}", "{% set true = 1 %}", "{% for x in l %}{{ x }}",
    "{% for x in l %}{{ x }}{% endfor %}", "{% for x in l %}{{ x }},{% endfor %}", "{% for x in el %}x{% else %}none{% endfor %}",
    "{% for x in l %}{% else %}none{% endfor %}!", "{% for k in d %}{{ k }}{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}", "{% for c in 'añ😀' %}[{{ c }}]{% endfor %}",
    "{% for x in none %}{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for x in missing %}a{% else %}b{% endfor %}",
    "{% for a, b in [(1, 2), [3, 4]] %}{{ a }}{{ b }} {% endfor %}", "{% for a, b in [1] %}{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for x in l %}{{ loop.index }}/{{ loop.length }} {{ loop.first }} {{ loop.last }} {{ loop.revindex }} {{ loop.index0 }} {{ loop.revindex0 }};{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}",
    "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}",
    "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in [1, 1, 2] %}{{ loop.changed(x) }} {% endfor %}",
    "{% for x in l %}{{ loop.depth }}{{ loop.depth0 }}{{ loop.nosuch }}{% endfor %}",
    "{% for x in l if x > 1 %}{{ x }}{{ loop.index }}/{{ loop.length }} {% endfor %}", "{% for x in l if x > 9 %}{{ x }}{% else %}none{% endfor %}",
    "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}",
    "{% for x in l if x is odd %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for x in range(6) %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in l %}{% for y in l %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}",
    "{% break %}", "{% continue %}", "{% for x in l %}{% endfor %}{% break %}",
    "{% for x in l %}{% for y in [1, 2] %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}",
    "{% for x in l %}{% set outer = loop %}{% for y in [1, 2] %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% set x = 1 %}{% for i in l %}{{ x }}{% set x = i %}{{ x }} {% endfor %}{{ x }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}", "{% if true %}{% set q = 2 %}{% endif %}{{ q }}",
    "{% for i in l %}{% set q = i %}{% endfor %}{{ q is defined }}", "{% for i in l %}{% endfor %}{{ i is defined }}",
    "{% set ns = namespace(x=1, found=false) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.found }}",
    "{% set ns = namespace() %}{{ ns.x is defined }}{% set ns.x = [] %}{{ ns.x }}", "{% set d.x = 1 %}", "{% set nope.x = 1 %}",
    "{% set ns = namespace(s='') %}{% for m in messages %}{% set ns.s = ns.s ~ m.role %}{% endfor %}{{ ns.s }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = (1, 2, 3) %}", "{% set a, b = [5, 6] %}{{ b }}{{ a }}", "{% set (a, b) = (1, 2) %}{{ a + b }}",
    "{% set x %}a{{ n }}b{% endset %}[{{ x }}]", "{% set x | upper %}abc{% endset %}{{ x }}", "{% set x | trim | replace('a', 'b') %}  aaa {% endset %}{{ x }}",
    "{% set x %}\n  {% for i in l %}\n{{ i }}\n  {% endfor %}\n{% endset %}{{ x|length }}{{ x }}", "{% set ns = namespace() %}{% set ns.y %}in{% endset %}{{ ns.y }}",
    "{% set x = 1 if n else 2 %}{{ x }}", "{% set x = l %}{{ x is sameas l }}", "{% set messages = messages[1:] %}{{ messages|length }}",
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set sys = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% endif %}{{ loop_messages|length }}{{ sys }}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m() }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, q=4) }}", "{% macro m() %}{{ n }}{{ later }}{% endmacro %}{% set later = 'L' %}{{ m() }}",
    "{% macro m(a, b=a ~ '!') %}{{ b }}{% endmacro %}{{ m('x') }}", "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro r(k) %}{% if k > 0 %}{{ k }}{{ r(k - 1) }}{% endif %}{% endmacro %}{{ r(4) }}", "{% macro m() %}\n  x\n{% endmacro %}\n[{{ m() }}]",
    "{% macro m() %}x{% endmacro %}{{ m()|upper }}{{ m() ~ 'y' }}{{ m is callable }}", "{% macro m() %}{% set n = 99 %}{{ n }}{% endmacro %}{{ m() }}{{ n }}",
    "{% macro m() -%} x {%- endmacro %}[{{ m() }}]", "{{ m() }}{% macro m() %}{% endmacro %}", "{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro a() %}A{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}",
    "{% macro w() %}<{{ caller() }}>{% endmacro %}{% call w() %}in{{ n }}{% endcall %}", "{% macro w() %}{% for i in l %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(x) w() %}[{{ x }}]{% endcall %}",
    "{% macro w() %}x{% endmacro %}{% call w() %}{% endcall %}", "{% call w %}{% endcall %}",
    "{% filter upper %}abc{{ s }}{% endfilter %}", "{% filter replace('a', 'b')|upper %}aaa{% endfilter %}", "{% with x = 1, y = n %}{{ x }}{{ y }}{% endwith %}{{ x is defined }}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}", "{% set x = 5 %}{% with x = 1, y = x %}{{ y }}{% endwith %}",
    "{% raw %}{{ x }}{% if %}{% endraw %}", "{% raw -%}  {{ x }}  {%- endraw %} y", "a\n  {% raw %}\nb\n  {% endraw %}\nc", "{%- raw %} z {% endraw -%}  y", "{% raw %}x",
    "{% generation %}x{{ n }}{% endgeneration %}", "{% generation %}\n x\n{% endgeneration %}\ny", "{% generation %}{% set q = 1 %}{% endgeneration %}{{ q is defined }}",
    "{% for x in nested recursive %}{% if x is iterable %}[{{ loop(x) }}]{% else %}{{ x }}.{{ loop.depth }} {% endif %}{% endfor %}",
    "{% for x in l %}{{ loop(x) }}{% endfor %}", "{% for x in l recursive %}{{ loop() }}{% endfor %}",
    "{{ {'a': 1}['a'] }}{{ {} }}", "{{ {'a': {'b': {}}} }}", "{{ [[1]]|first|first }}", "{% if n == 7 and not missing %}ok{% endif %}",
    "{% if messages[0].role == 'system' and messages[0]['content'] %}{{ messages[0].content|trim }}{% endif %}",
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}{% endfor %}", "{% for message in messages %}{{ message.content + '|' }}{% endfor %}",
    "{% for message in messages %}{{ message.content ~ '|' }}{% endfor %}", "{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.name }}({{ c.function.arguments|tojson }}){% endfor %}{% endif %}{% endfor %}",
    "{% for m in messages %}{% if m.tool_calls is defined and m.tool_calls is iterable and m.tool_calls|length > 0 %}{{ loop.index }}{% endif %}{% endfor %}",
    "{% for m in messages[::-1] %}{{ m.role }} {% endfor %}", "{% for m in messages|reverse %}{{ m.role }} {% endfor %}",
    "{% set ns = namespace(last=-1) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{{ ns.last }}",
    "{% if (messages|selectattr('role', 'eq', 'user')|list|length) == 1 %}one{% endif %}", "{{ messages[-1].role }}{{ messages[-1:][0].role }}",
    "{{ messages|map(attribute='role')|join(' ') }}", "{% set roles = messages|map(attribute='role')|list %}{{ roles }}", "{% set g = messages|map(attribute='role') %}{{ g|join }}{{ g|join }}",
    "{% for x in l -%}\n  {{ x }}\n{%- endfor %}", "{%- for x in l %}\n  {{- x }}\n{%- endfor -%}\n", "{%for x in l%}{{x}}{%endfor%}", "{%-for x in l-%} {{-x-}} {%-endfor-%}",
    "\n\n{% if 1 %}\n\n  text\n\n{% endif %}\n\n", "{% if 1 %} {{ 1 }} {% endif %}\n{% if 1 %} {{ 2 }} {% endif %}\n", "line one\n    {%- if t %}\n    A\n    {%- else %}\n    B\n    {%- endif %}\nline two",
    "{{ 'a' }}\n    {{ 'b' }}\n", "{%- if t -%}\n    {{- 'x' -}}\n{%- endif -%}", "<s>{% if true %}\n{{ 1 }}\n{% endif %}</s>\n",
    "{{ -1 }}", "{{-1 }}", "{{ 1-1 }}", "{{ 1 -1 }}", "{{+1}}", "{{ n-}}", "{{ n -}} x", "{{ '}}' }}", "{{ \"%}\" }}", "{% if '%}' %}x{% endif %}", "{{ '{{' }}", "{{ {'}}': 1} }}",
    "{{ 1 }} {{{ 'a': 1 }}}", "{{ n if n else\n 'multi\nline' }}", "{{\nn\n}}", "{%\nif n\n%}y{%\nendif\n%}", "{{ l[\n0\n] }}", "{{ cycler('a', 'b').next() }}",
    "{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}", "{% set j = joiner('; ') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}",
    "{% set x = namespace(a=namespace(b=1)) %}{{ x.a.b }}", "{% set x = d.get %}{{ x('a') }}", "{% set up = 'a'.upper %}{{ up() }}",
    "{% if raise_exception is defined %}has{% endif %}", "{% if 0 %}{{ raise_exception('no') }}{% endif %}fine", "{% for i in range(3) %}{{ raise_exception('at ' ~ i) }}{% endfor %}",
    "{{ ''.join(['a', 'b']) }}{{ 'x'.join(words) }}", "{% set s = s|lower %}{{ s }}", "{% for s in words %}{{ s }} {% endfor %}{{ s }}", "{{ loop is defined }}", "{% for x in l %}{{ loop is defined }}{% endfor %}",
    "{% extends 'x' %}", "{% include 'x' %}", "{% import 'x' as y %}", "{% set x = 'a' * 100000000 %}{{ x|length }}{{ raise_exception('big') }}",
    "{{ ''.__class__ }}", "{{ ''.__class__.__mro__ }}", "{{ d.__class__.x }}", "{{ messages.__len__() }}", "{{ ''['__class__'] }}",
    "{{ 7 is odd }}{{ 7 is not odd }}", "{% if not n is odd %}a{% else %}b{% endif %}", "{% if n is not none and n is not string %}q{% endif %}", "{{ n is string or n is number }}",
    "{{ (n is string) == false }}", "{{ [n is odd, n is even] }}", "{{ 'x' if n is odd else 'y' }}", "{{ 'x' if missing is defined else 'y' }}", "{{ 'x' if d.a is defined and d.a else 'y' }}",
    "{{ d['a'] if 'a' in d else 0 }}", "{{ d.get('a', 0) + 1 }}", "{{ (d.a ~ '')|length }}", "{{ users|selectattr('age', '>', 30)|map(attribute='name')|list }}", "{{ users|map(attribute='age')|sum // users|length }}",
]

CASES = ["{{ " + e + " }}" for e in _EXPRESSIONS.strip("\n").split("\n")] + _STATEMENTS
