"""Records what Jinja, set up as `transformers` sets it up, makes of the cases below: `python3 record.py > recorded.json`.

Needs jinja2. Each case is (name, template, variables); the answer is the text, or null where Jinja refuses.
"""

import json
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_inside"), [], [], body).set_lineno(line)

    def _inside(self, caller):
        return caller()


def environment():
    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    return made


VALUES = {
    "s": "  Grüße <b> & 'x' \"y\"\n漢 ",
    "n": 3, "big": 10**30, "f": 0.1, "tiny": 1e-7, "huge": 1e20, "whole": 5.0, "neg": -2.5e-10,
    "yes": True, "no": False, "nothing": None,
    "list": [1, 2.0, "a'b", None, True, [1e16], {"k": "v\n"}],
    "map": {"z": 1, "a": [1.5, {"y": "<é>"}], "m": {}, "e": []},
    "calls": [{"function": {"name": "f", "arguments": {"b": 1, "a": "x"}}}, {"function": {"name": "g", "arguments": {}}}],
    "texts": ["one", "two", "three"],
    "control": "\x1c\x1f a\x0bb\x85c\u2028d \x1d",
    "think": "<think>\nfirst\n</think>\n\nthen </think> rest",
}

CASES = [
    ("printing", "{{ s }}|{{ n }}|{{ big }}|{{ f }}|{{ tiny }}|{{ huge }}|{{ whole }}|{{ neg }}"),
    ("printing words", "{{ yes }}{{ no }}{{ nothing }}{{ undefined_thing }}"),
    ("printing containers", "{{ list }}|{{ map }}|{{ [] }}{{ {} }}"),
    ("string filter", "{{ huge | string }}{{ yes | string }}{{ nothing | string }}{{ list | string }}{{ s | string }}"),
    ("tojson", "{{ map | tojson }}{{ list | tojson }}{{ s | tojson }}"),
    ("tojson numbers", "{{ [n, big, f, tiny, huge, whole, neg, yes, nothing] | tojson }}"),
    ("tojson indent", "{{ map | tojson(indent=2) }}|{{ map | tojson(indent=0) }}|{{ [] | tojson(indent=4) }}"),
    ("tojson sorted", "{{ map | tojson(sort_keys=True) }}"),
    ("tojson ascii", "{{ s | tojson(ensure_ascii=True) }}{{ map | tojson(ensure_ascii=False) }}"),
    ("tojson separators", "{{ map | tojson(separators=(',', ':')) }}{{ map | tojson(separators=(',', ': '), indent=1) }}"),
    ("tojson undefined", "{{ undefined_thing | tojson }}"),
    ("trim", "[{{ s | trim }}][{{ control | trim }}][{{ control.strip() }}][{{ control.lstrip() }}][{{ control.rstrip() }}]"),
    ("strip characters", "[{{ s.strip('\\n ') }}][{{ think.lstrip('<think>') }}][{{ s.rstrip(' ') }}]"),
    ("split", "{{ think.split('</think>')[-1].lstrip('\\n') }}|{{ think.split('</think>')[0].rstrip('\\n').split('<think>')[-1] }}"),
    ("split on space", "{{ control.split() | tojson }}{{ s.split() | tojson }}{{ ' a  b '.split(' ') | tojson }}"),
    ("split limit", "{{ 'a,b,c'.split(',', 1) | tojson }}"),
    ("splitlines", "{{ 'a\\nb\\r\\nc\\n'.splitlines() | tojson }}{{ control.splitlines() | tojson }}"),
    ("prefixes", "{{ think.startswith('<think>') }}{{ think.endswith('x') }}{{ 'abc'.removeprefix('a') }}{{ 'abc'.removesuffix('c') }}{{ 'abc'.removeprefix('x') }}"),
    ("partition", "{{ 'a=b=c'.partition('=') | tojson }}{{ 'a=b=c'.rpartition('=') | tojson }}{{ 'abc'.partition('=') | tojson }}"),
    ("cases", "{{ 'abC dE'.upper() }}{{ 'abC dE'.lower() }}{{ 'abC dE'.title() }}{{ 'abC dE'.capitalize() }}{{ 'abC' | upper }}"),
    ("replace", "{{ 'aXbX'.replace('X', '-') }}{{ 'aXbX' | replace('X', '-') }}{{ 'aXbX'.replace('X', '-', 1) }}"),
    ("find", "{{ 'äbc'.find('c') }}{{ 'abc'.find('x') }}{{ 'abcabc'.rfind('b') }}{{ 'aaa'.count('a') }}"),
    ("join", "{{ texts | join(', ') }}{{ ', '.join(texts) }}{{ texts | join }}"),
    ("slices", "{{ texts[::-1] | tojson }}{{ texts[1:] | tojson }}{{ texts[-1] }}{{ s[2:5] }}{{ '漢字x'[1] }}{{ texts[:2][0] }}"),
    ("items", "{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %}{% for k in map %}{{ k }}{% endfor %}{% for k, v in map | items %}{{ k }}{% endfor %}"),
    ("keys and get", "{{ map.get('z') }}{{ map.get('q') }}{{ map.get('q', 7) }}{{ map.keys() | list | tojson }}{{ map.values() | list | tojson }}{{ 'z' in map }}"),
    ("dictsort", "{% for k, v in map | dictsort %}{{ k }}{% endfor %}"),
    ("loop", "{% for t in texts %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem | default('-') }}{{ loop.nextitem | default('-') }} {% endfor %}"),
    ("loop controls", "{% for t in texts %}{% if t == 'two' %}{% continue %}{% endif %}{{ t }}{% if loop.index == 3 %}{% break %}{% endif %}!{% endfor %}"),
    ("loop else and filter", "{% for t in texts if t != 'two' %}{{ loop.index }}{{ t }}{% else %}none{% endfor %}{% for t in [] %}x{% else %}none{% endfor %}"),
    ("loop scope", "{% set x = 1 %}{% for t in texts %}{% set x = 2 %}{% endfor %}{{ x }}{% if true %}{% set x = 3 %}{% endif %}{{ x }}"),
    ("namespace", "{% set ns = namespace(found=false, last=0) %}{% for t in texts %}{% set ns.found = true %}{% set ns.last = loop.index %}{% endfor %}{{ ns.found }}{{ ns.last }}"),
    ("generation", "{% set x = 1 %}{%- generation %} a {% set x = 2 %}\n {%- endgeneration %}{{ x }}"),
    ("generation scope", "{% for t in texts %}{% generation %}{{ t }}{{ loop.index }}{% endgeneration %}{% endfor %}"),
    ("whitespace", "a\n  {% if true %}\n    b\n  {% endif %}\n  {#- c -#}\n  d {{- ' e ' -}} \n f\n"),
    ("whitespace marks", "x \n{%- if true -%}\n  y \n{%- endif %}\n  {%+ if true %}z{% endif +%}\nw"),
    ("line ends", "a\r\n{% if true %}\r\nb{% endif %}\r\nc\r\n"),
    ("comments", "a{# {% generation %} {{ x }} #}b\n{# line #}\nc"),
    ("raw", "{% raw %}{{ x }} {% generation %}{% endraw %}{{ n }}"),
    ("tests of kinds", "{% for v in [s, n, f, list, map, nothing, yes] %}{{ v is string }}{{ v is mapping }}{{ v is sequence }}{{ v is iterable }}{{ v is number }}{{ v is none }}{{ v is boolean }} {% endfor %}"),
    ("tests of numbers", "{{ n is integer }}{{ whole is integer }}{{ whole is float }}{{ yes is integer }}{{ n is odd }}{{ n is divisibleby(3) }}"),
    ("tests of presence", "{{ q is defined }}{{ n is defined }}{{ map.q is defined }}{{ map.z is defined }}{{ nothing is defined }}{{ q is undefined }}"),
    ("tests of equality", "{{ yes is true }}{{ no is false }}{{ n is true }}{{ n == 3.0 }}{{ yes == 1 }}{{ n is eq 3 }}{{ 'a' is in 'abc' }}{{ 'a' in texts }}"),
    ("undefined", "{{ q }}{{ map.q }}{% if q %}x{% endif %}{% for t in q %}x{% endfor %}{{ q | default('d') }}{{ nothing | default('d') }}{{ nothing | default('d', true) }}"),
    ("undefined member", "{{ q.member }}"),
    ("none member", "{{ nothing.member }}"),
    ("concatenation", "{{ 'a' + 'b' }}{{ 'a' ~ 1 ~ none ~ true }}{{ 'ab' * 2 }}{{ texts + [1] }}"),
    ("wrong concatenation", "{{ 'a' + 1 }}"),
    ("none concatenation", "{{ nothing + 'a' }}"),
    ("arithmetic", "{{ 7 // 2 }}{{ 7 / 2 }}{{ 6 / 2 }}{{ 7 % 3 }}{{ 2 ** 10 }}{{ -7 // 2 }}{{ n - 1 }}{{ 1.0 * 3 }}"),
    ("logic", "{{ '' or 'x' }}{{ 'a' and 'b' }}{{ not '' }}{{ 0 or none }}{{ [] or {} }}"),
    ("conditional", "{{ 'a' if yes else 'b' }}{{ 'a' if no }}{{ 'x' if not no and n > 2 else 'y' }}"),
    ("chained comparison", "{{ 1 < n < 5 }}{{ n in [1, 3] }}{{ 'q' not in map }}"),
    ("filters on lists", "{{ texts | first }}{{ texts | last }}{{ texts | length }}{{ texts | reverse | list | tojson }}{{ [3, 1, 2] | sort | tojson }}{{ [1, 1, 2] | unique | list | tojson }}{{ [1, 2] | sum }}{{ [1, 5] | max }}"),
    ("select", "{{ calls | map(attribute='function') | map(attribute='name') | join(',') }}{{ calls | selectattr('function.name', 'equalto', 'g') | list | length }}{{ texts | select('equalto', 'two') | list | tojson }}{{ calls | rejectattr('q', 'defined') | list | length }}"),
    ("indent", "{{ 'a\\nb' | indent(2) }}|{{ 'a\\nb' | indent(2, true) }}"),
    ("set block", "{% set x %}a{{ n }}b{% endset %}{{ x }}{{ x | length }}"),
    ("macro", "{% macro m(a, b='d') %}[{{ a }}{{ b }}]{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(b=3, a=4) }}"),
    ("macro recursion", "{% macro m(v) %}{% if v is mapping %}{% for k, x in v | dictsort %}{{ k }}:{{ m(x) }},{% endfor %}{% else %}{{ v }}{% endif %}{% endmacro %}{{ m(map) }}"),
    ("refusal", "{% if yes %}{{ raise_exception('no') }}{% endif %}"),
    ("int and float", "{{ '12' | int }}{{ '1.5' | float }}{{ 3.7 | int }}{{ 2.5 | round }}{{ n | float }}{{ 'x' | int(5) }}"),
    ("escapes", "{{ '\\t|\\\\|\\'|\\u00e9|\\x41' }}"),
    ("unpacking", "{% set a, b = [1, 2] %}{{ a }}{{ b }}{% for x, (y, z) in [[1, [2, 3]]] %}{{ x }}{{ y }}{{ z }}{% endfor %}"),
    ("tuples", "{{ (1, 'a') }}{{ (1,) }}{{ ('a', 'b') | join }}"),
    ("call with arguments", "{% for c in calls %}{{ c.function.name }}{{ c['function']['arguments'] | tojson }}{% for k, v in c.function.arguments.items() %}<{{ k }}>{{ v }}{% endfor %}{% endfor %}"),
    ("safe and escape", "{{ '<b>' | safe }}{{ s | tojson | safe }}"),
    ("reverse string", "{{ 'abc' | reverse }}{{ 'abc'[::-1] }}{{ 'abc' | list | tojson }}{{ 'äb' | length }}"),
    ("break out of nested", "{% for a in [1, 2] %}{% for b in [1, 2] %}{% if b == 2 %}{% break %}{% endif %}{{ a }}{{ b }}{% endfor %}{% endfor %}"),
    ("range", "{% for i in range(3) %}{{ i }}{% endfor %}{{ range(2, 8, 3) | list | tojson }}{{ range(3, 0, -1) | list | tojson }}"),
]


def main():
    recorded = []
    for name, source in CASES:
        try:
            text = environment().from_string(source).render(**VALUES)
        except (jinja2.exceptions.TemplateError, TypeError):
            text = None
        recorded.append({"name": name, "template": source, "text": text})
    json.dump({"variables": VALUES, "cases": recorded}, sys.stdout, ensure_ascii=True, indent=1)
    print()


if __name__ == "__main__":
    main()
