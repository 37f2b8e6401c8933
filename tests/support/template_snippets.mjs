// Snippets of chat templates: what each filter, test, method, operator and statement makes of values of every kind. What
// jinja2 makes of them is recorded in tests/template_language.json.

/** Each of the first before each of the second. @param {string[]} values @param {string[]} parts */
const each = (values, parts) =>
  values.flatMap((value) => parts.map((part) => `{{ ${value}${part} }}`));
const filters = (/** @type {string[]} */ values, /** @type {string[]} */ names) =>
  each(
    values.map((value) => `(${value})`),
    names.map((name) => ` | ${name}`),
  );
const methods = (/** @type {string[]} */ values, /** @type {string[]} */ calls) =>
  each(
    values,
    calls.map((call) => `.${call}`),
  );
/** A statement first, then what it did. @param {string} value @param {string[]} calls */
const changes = (value, calls) =>
  calls.map((call) => `{% set x = ${value} %}{{ x.${call} }} {{ x }}`);

const numbers = ['0', '7', '-3', 'true', '2.5', '-0.5'];
const texts = [
  "''",
  "'a'",
  "'Hello  World '",
  "' x,y,,z\\n'",
  "'h\u00e9\u00e0 \u{1f98a}!'",
  '"it\'s"',
];
const lists = ['[]', '[3, 1, 2]', "['b', 'A', 'a', 'B', 'b']", "[1, true, 1.0, '1']", "(1, 'x')"];
const dicts = ['{}', "{'b': 2, 'A': 3, 'a': 1, 'B': 0}"];
const records = "[{'n': 2, 's': 'b'}, {'n': 1, 's': 'A'}, {'n': 2, 's': 'a'}, {'n': 0, 's': 'B'}]";
const nested = "[{'a': {'b': 2}}, {'a': {'b': 1}}]";
const rest = ['none', 'nope'];
const all = [...numbers, ...texts, ...lists, ...dicts, ...rest];

/** Snippets of templates. @type {Record<string, string[]>} */
export const groups = {
  'operators of numbers': each(
    numbers,
    ['+', '-', '*', '/', '//', '%', '**', '==', '<', '<=', '>', '>=', '!='].flatMap((op) =>
      ['0', '2', '-7', 'true', "'a'"].map((other) => ` ${op} ${other}`),
    ),
  ),
  'operators of values': [
    ...texts.slice(1, 4),
    ...lists.slice(1),
    ...dicts.slice(1),
    ...rest,
  ].flatMap((value) => [
    ...['+', '*', '==', '!=', '<', '>=', '~', 'in', 'not in', 'and', 'or'].flatMap((op) =>
      ["'a'", '2', '[1]', '(1,)', "'b'"].map((other) => `{{ ${value} ${op} ${other} }}`),
    ),
    ...['2', '0', '-1', "'x'", "'a'"].flatMap((other) => [
      `{{ ${other} * ${value} }}`,
      `{{ ${other} in ${value} }}`,
    ]),
    `{{ not ${value} }}`,
    `{{ -${value} }}`,
    `{{ +${value} }}`,
    `{{ 1 if ${value} else 2 }}`,
    `{{ (1 if ${value}) is defined }}`,
  ]),
  'order of operators': [
    '{{ 1 + 2 * 3 ** 2 - 8 // 3 % 2 }}',
    '{{ 7.3 % 0.1 }} {{ 7.3 // 0.1 }} {{ -7.3 % 0.1 }} {{ -7.3 // 0.1 }} {{ 1e300 % 7.5 }} {{ 1 % 1e999 }} {{ -1 % 1e999 }} {{ 1e999 % 2 }} {{ 1e999 // 2 }}',
    '{{ 0.3 % -0.1 }} {{ 0.3 // -0.1 }} {{ -0.0 % 3 }} {{ 0.0 % -3 }} {{ 6.0 // -3 }} {{ 0.0 // -3 }} {{ -0.0 // 3 }} {{ 1.7e308 % 5e-324 }}',
    '{{ -2 ** 2 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }} {{ (-2) ** 3 }}',
    '{{ not 1 == 2 }} {{ not 1 in [1] }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 >= 2 != 1 }}',
    "{{ 1 ~ 2 + 3 }} {{ 'a' ~ 'b' * 2 }} {{ 1 + 2 ~ 3 }}",
    '{{ 1 or 0 and 0 }} {{ (1 or 0) and 0 }} {{ 0 or none }} {{ 1 and 2 and [] }}',
    '{{ 1 if 0 else 2 if 0 else 3 }} {{ (1, 2, 3)[1] }} {{ -[1, 2][1] }}',
    "{{ 'a,b'.split(',')[-1] | upper ~ 'x' }} {{ -1 | abs }} {{ (-1) | abs }}",
    "{{ 1 in [1] and 2 not in [1] }} {{ 'a' 'b' }} {{ 7 is divisibleby 7 and 1 }}",
    '{{ 0x1f + 0b101 + 0o17 }} {{ 1_000 + 1 }} {{ 1.5e3 }} {{ 1E-2 }} {{ 12345678901234567 }}',
    '{{ [1, 2,] }} {{ (1,) }} {{ {1: 2,} }} {{ () }} {{ [[], [[]]] }}',
    '{{ \'a\\tb\\\\c\\\'d\\x41\\u00e9\\101\' }} {{ "\\"" }}',
    '{{ 1.0 }} {{ 1e100 }} {{ 1.5e-7 }} {{ 0.1 + 0.2 }} {{ 1e15 + 0.5 }} {{ 123456789.125 }}',
  ],
  'items and slices': [
    ...each(
      ["'h\u00e9llo \u{1f98a}'", '[0, 1, 2, 3, 4]', '(0, 1, 2)', "''", '[]'],
      [
        ...['[0]', '[1]', '[-1]', '[-3]', '[4]', '[5]', '[9]', '[-9]', '[true]', "['x']", '[1.0]'],
        ...['[none]', '[:]', '[1:]', '[:2]', '[1:3]', '[-2:]', '[:-2]', '[::2]', '[1::2]'],
        ...['[::-1]', '[3:0:-1]', '[-1:-4:-2]', '[2:1]', '[9:]', '[-9:2]', '[9::-1]', '[:-9:-1]'],
        ...['[true:3]', '[none:2]', '[::0]', '[0:4:3]', '[4:0:-3]', '[5:5]'],
      ],
    ),
    ...each(
      ["{'a': 1, 2: 'b', 'items': 3, 'x': none}"],
      [
        ...[
          "['a']",
          '.a',
          '[2]',
          '[2.0]',
          "['items']",
          '.x',
          "['nope']",
          '.nope',
          '.nope.x',
          '[none]',
        ],
        ...["['keys'] is callable", '.items() | list', '[1:]', '.nope is defined', "['x'] is none"],
      ],
    ),
    ...each(['7', 'none', 'true', '2.5'], ["['x']", '.x', '[0]', '[1:]', '.x is defined', '.x.y']),
    ...each(['nope'], ['[0]', '.x', "['x']", '[1:]', ' is defined', '()', '.x is defined']),
  ],
  'tests of values': each(
    [...all, "'ABC'", "'1A'", "'\u00c9'", "'a' | safe"],
    [
      ...['boolean', 'callable', 'defined', 'escaped', 'false', 'float', 'integer', 'iterable'],
      ...['lower', 'mapping', 'none', 'number', 'sequence', 'string', 'true', 'undefined', 'upper'],
      ...['not defined', 'not string'],
    ].map((name) => ` is ${name}`),
  ),
  'tests with an argument': each(
    ['0', '7', '-4', '2.5', 'true', "'a'", '[1]', 'none'],
    [
      ...['even', 'odd', 'divisibleby 2', 'divisibleby(0)', 'divisibleby 3.5'],
      ...[
        'eq',
        'equalto',
        'ne',
        'ge',
        'gt',
        'greaterthan',
        'le',
        'lt',
        'lessthan',
        'sameas',
      ].flatMap((name) => [`${name} 7`, `${name} true`, `${name}('a')`]),
      ...['in [7, none, 2.5]', "in 'banana'", 'not in [7]', 'eq', 'in 3'],
    ].map((name) => ` is ${name}`),
  ),
  'filters of numbers': [
    ...filters(
      [...numbers, '12.345', '-2.675', '1.005', '25', '-15', "'a'", 'none'],
      [
        ...['abs', 'round', 'round(2)', 'round(1)', "round(1, 'ceil')", "round(1, 'floor')"],
        ...[
          "round(method='ceil')",
          "round(0, 'floor')",
          "round(2, 'common')",
          'round(precision=2)',
        ],
      ],
    ),
    ...filters(
      [
        ...["'42'", "' -17 '", "'3.9'", "'-3.9'", "'1e3'", "'x'", "''", "'12345678901234567'"],
        ...["'-12345678901234567'", '2.9', '-2.9', 'true', 'none', '[]', '9', '1e15', "'+5'"],
      ],
      ['int', 'int(5)', 'int(default=-1)', 'float', 'float(0.5)', 'float(default=2)'],
    ),
  ],
  'filters of values': [
    ...filters(all, [
      ...['length', 'count', 'string', 'first', 'last', 'list', 'default', "d('x')"],
      ...["default('x', true)", "default('x', boolean=true)", 'e', 'escape', 'safe', 'wordcount'],
      ...["attr('x')", 'reverse | list', 'tojson'],
    ]),
    ...filters(
      ["'<a href=\"x\">&\\'</a>'", "'<b>' | safe", "'<' | e"],
      ['e', 'escape | e', 'safe | e'],
    ),
    ...filters(["'<b>' | safe"], ["upper ~ '<'", 'trim', 'string | e', "replace('b', '<')"]),
    "{{ ('<b>' | safe) + '<' }} {{ '<' + ('<b>' | safe) }} {{ '<' ~ ('<b>' | safe) }}",
    "{{ ('<b>' | safe) * 2 }} {{ ['<', '>' | safe] | join('&') }}",
    "{{ {'a': 1} | attr('items') is callable }} {{ {'a': 1} | attr('a') is defined }}",
  ],
  'filters of texts': [
    ...filters(
      [
        ...[
          ...texts,
          "'foo-bar (baz) [qux] {a} <b> c.d'",
          "'HELLO wORLD'",
          "'\u00c9\u00c0\u0101\u0416'",
        ],
        ...["'a\\u00a0b\\u2003c'", "'line\\n\\nthree\\n'"],
      ],
      [
        ...['upper', 'lower', 'capitalize', 'title', 'trim', "trim('ax! ')", 'indent', 'indent(2)'],
        ...["indent('> ')", 'indent(1, true)', 'indent(2, false, true)', 'indent(1, first=true)'],
        ...['indent(width=3, blank=true)', "replace('a', 'bb')", "replace('o', '', 1)"],
        ...["replace('', '-')", "replace('l', 'L', count=2)", 'wordcount', "replace('', '-', 2)"],
      ],
    ),
    ...filters(
      ["'The quick brown fox jumps'", "'h\u00e9h\u00e9h\u00e9h\u00e9h\u00e9h\u00e9'", "''"],
      [
        ...['truncate', 'truncate(9)', 'truncate(9, true)', "truncate(9, true, '!')"],
        ...[
          'truncate(9, false, "..", 0)',
          'truncate(20)',
          'truncate(19, leeway=6)',
          'truncate(12)',
        ],
        ...[
          'truncate(11, killwords=true, leeway=0)',
          'truncate(25, leeway=0)',
          'truncate(24, leeway=0)',
        ],
        ...[
          "truncate(3, end='')",
          'truncate(3)',
          'truncate(10, leeway=1)',
          'truncate(11, leeway=1)',
        ],
      ],
    ),
    ...[
      "'%s'",
      "'%5s|%-5s|'",
      "'%d %i'",
      "'%05d'",
      "'%+d'",
      "'%-5d|'",
      "'%.2f'",
      "'%8.3f'",
      "'%x'",
    ].flatMap((format) =>
      ['7', '-42', "'ab'", '(1, 2)', '2.675', "['x']", '(-3, 4)', "('\u00e9', 'b')", '255.9'].map(
        (value) => `{{ ${format} % ${value} }}`,
      ),
    ),
    "{{ '%%' % () }} {{ '%s' % () }}",
    "{{ '%(a)s-%(b)03d%%' % {'a': 1, 'b': -2} }} {{ '%(z)s' % {'a': 1} }}",
    "{{ '%(a)s %(a)r' % {'a': 'q\\'' } }}",
    "{{ '%r %s' % ('x', none) }} {{ '%5r|%-6r|' % ('a', 'b') }} {{ '%06.2f' % -1.5 }}",
    "{{ '%s %s' | format('a', 1) }} {{ '%(x)s' | format(x=2) }} {{ '%+.1f' % 3 }} {{ '%f' % 1 }}",
    "{{ '%+05d %+5d| %-+5d|' % (3, 3, 3) }} {{ '%3d%%' % 50 }} {{ '%d' % 1e3 }} {{ '%d' % true }}",
    ...[
      "'{}'",
      "'{0}{1}{0}'",
      "'{}{}'",
      "'{{}}{}'",
      "'{a}{}'",
      "'{!r}'",
      "'{0!r}'",
      "'{2}'",
      "'{'",
    ].flatMap((format) => [`{{ ${format}.format('x', 2) }}`, `{{ ${format}.format('y', a=1) }}`]),
    "{{ '{:.2f} {:d} {:5d} {:05d} {a:.1f}'.format(2.345, 3, 4, -5, a=0.25) }}",
    "{{ '}'.format() }}",
  ],
  'filters of lists': [
    ...filters(
      [
        ...lists,
        "'bca'",
        '{}',
        "{'b': 2, 'a': 1}",
        'nope',
        '[2, none]',
        "[1, 'a']",
        "['\u00e9', 'E', 'f']",
      ],
      [
        ...[
          'sort',
          'sort(true)',
          'sort(reverse=true)',
          'sort(false, true)',
          'sort(case_sensitive=true)',
        ],
        ...[
          'unique | list',
          'unique(true) | list',
          'unique(case_sensitive=true) | list',
          'min',
          'max',
        ],
        ...['min(true)', 'max(true)', 'max(case_sensitive=true)', 'sum', 'sum(start=10)', 'join'],
        ...[
          "join('-')",
          "join(d='+')",
          'batch(2) | list',
          "batch(2, 'x') | list",
          'batch(3, fill_with=0) | list',
        ],
        ...['select | list', 'reject | list', "select('odd') | list", "reject('string') | list"],
        ...[
          "select('gt', 1) | list",
          "map('upper') | list",
          "map('int', 4) | list",
          'first',
          'last',
        ],
        ...["map('default', 'z', true) | list", 'batch(4) | list', 'dictsort', 'items | list'],
        ...["map('nope') | list", "select('nope') | list", 'groupby', 'reverse | list'],
      ],
    ),
    ...filters(
      [records],
      [
        ...[
          "sort(attribute='n')",
          "sort(attribute='s')",
          "sort(attribute='s', case_sensitive=true)",
        ],
        ...["sort(true, attribute='n')", "unique(attribute='n') | list"],
        ...[
          "unique(attribute='s', case_sensitive=true) | list",
          "min(attribute='n')",
          "max(attribute='s')",
        ],
        ...[
          "max(true, 's')",
          "min(attribute='s', case_sensitive=true)",
          "sum('n')",
          "sum(attribute='n')",
        ],
        ...[
          "sum('n', 5)",
          "sum('n', start=-1)",
          "join(',', 's')",
          "join(attribute='n')",
          "join('', attribute='s')",
        ],
        ...[
          "map(attribute='s') | list",
          "map(attribute='q', default=0) | list",
          "map(attribute='q') | list",
        ],
        ...["selectattr('n') | list", "rejectattr('n') | list", "selectattr('n', 'eq', 2) | list"],
        ...[
          "rejectattr('n', 'eq', 2) | list",
          "selectattr('s', 'in', 'ab') | list",
          "selectattr('q') | list",
        ],
        ...[
          "selectattr('q', 'defined') | list",
          "selectattr('s', 'upper') | list",
          "groupby('n') | list",
        ],
        ...["groupby('s') | list", "map('first') | list"],
        ...["groupby('n') | map('last') | list"],
        ...["map('items') | map('list') | list", 'selectattr | list', "map('length') | list"],
        ...["groupby('q') | list", "groupby(attribute='n') | list"],
      ],
    ),
    ...filters(
      [nested],
      [
        ...["map(attribute='a.b') | list", "sort(attribute='a.b')", "sum(attribute='a.b')"],
        ...[
          "max(attribute='a.b')",
          "selectattr('a.b', 'gt', 1) | list",
          "map(attribute='a.c.d') | list",
        ],
      ],
    ),
    ...filters(
      ['[[3, 1], [2, 9]]'],
      ['map(attribute=0) | list', 'sort(attribute=1)', "map(attribute='1') | list"],
    ),
    ...filters(
      [...dicts, "{'x': 'B', 'y': 'a', 'z': 'b'}"],
      [
        ...[
          'dictsort',
          'dictsort(true)',
          "dictsort(false, 'value')",
          "dictsort(by='value')",
          'dictsort(reverse=true)',
        ],
        ...[
          "dictsort(by='value', reverse=true)",
          "dictsort(true, 'value')",
          'dictsort(case_sensitive=true)',
        ],
        ...[
          'items | list',
          'list',
          'length',
          "join(',')",
          'first',
          'last',
          'sort',
          'max',
          "dictsort(by='q')",
        ],
      ],
    ),
  ],
  'methods of texts': [
    ...methods(
      [...texts, "'banana'", "'aXbXc'", "'ABC def'", "'123'", "'\\t \\n'", "'a b  c d'"],
      [
        ...['upper()', 'lower()', 'capitalize()', 'title()', 'strip()', 'lstrip()', 'rstrip()'],
        ...["strip('a !')", "lstrip('ba')", "rstrip('an')", 'strip(none)', 'split()', "split(',')"],
        ...[
          "split('a', 1)",
          "split('X', maxsplit=1)",
          "split('a', 0)",
          'split(none, 1)',
          "rsplit('a', 1)",
        ],
        ...[
          "rsplit(',')",
          'rsplit()',
          "split('')",
          'split(none, 0)',
          'splitlines()',
          "partition('a')",
        ],
        ...[
          "partition('X')",
          "rpartition('a')",
          "rpartition(',')",
          "rpartition('q')",
          "partition('')",
        ],
        ...[
          "find('a')",
          "find('an')",
          "rfind('a')",
          "find('q')",
          "find('')",
          "rfind('')",
          "index('a')",
        ],
        ...[
          "rindex('a')",
          "index('q')",
          "count('a')",
          "count('an')",
          "count('')",
          "startswith('a')",
        ],
        ...[
          "startswith('ban')",
          "endswith('na')",
          "startswith(('x', 'b'))",
          "endswith(('x', 'd'))",
        ],
        ...[
          "startswith('')",
          "endswith('')",
          'startswith(1)',
          'startswith(())',
          "removeprefix('ba')",
        ],
        ...["removesuffix('na')", "removeprefix('q')", "replace('a', 'o')", "replace('an', '', 1)"],
        ...["replace('', '.')", "replace('a', 'b', 0)", 'isalpha()', 'isdigit()', 'isalnum()'],
        ...['isspace()', 'islower()', 'isupper()', 'nope()', 'nope is defined', "join(['x', 'y'])"],
        ...['join([])', "join('xyz')", 'join([1])', 'join()', 'find()', "format('z')"],
      ],
    ),
    ...["'12'", "'1a'", "'\u0663'", "''"].flatMap((text) => [
      `{{ ${text}.isdecimal() }} {{ ${text}.isnumeric() }}`,
    ]),
    "{{ 'a\\nb\\r\\nc\\rd'.splitlines() }} {{ '\\n'.splitlines() }} {{ 'a\\n\\nb'.splitlines() }}",
    "{{ 'hello world'.split('o', 1)[-1].strip().upper()[:2] }}",
  ],
  'methods of lists and dicts': [
    ...methods(
      ['[1, 2, 1, none]', '(1, 2, 1)', '[]'],
      [
        ...[
          'count(1)',
          'index(1)',
          'index(2)',
          'index(9)',
          'count(9)',
          'copy()',
          'count(none)',
          'append()',
        ],
      ],
    ),
    ...changes('[1, 2, 3]', [
      ...[
        'append(4)',
        'extend([5, 6])',
        "extend('ab')",
        'extend([])',
        'insert(0, 9)',
        'insert(1, 9)',
      ],
      ...[
        'insert(-1, 9)',
        'insert(99, 9)',
        'insert(-99, 9)',
        'pop()',
        'pop(0)',
        'pop(1)',
        'pop(-2)',
      ],
      ...[
        'pop(3)',
        'pop(-4)',
        'pop(-3)',
        'reverse()',
        'insert(3, 9)',
        'insert(0)',
        'extend(3)',
        'insert(-3, 9)',
      ],
      ...['append([])', 'extend(x)', 'copy().append(1)'],
    ]),
    ...changes('[1, 2]', ['reverse()']),
    ...changes('[]', ['pop()', 'reverse()', 'append(none)']),
    ...changes("{'a': 1, 'b': 2}", [
      ...[
        "get('a')",
        "get('z')",
        "get('z', 5)",
        "get('b', 5)",
        "pop('a')",
        "pop('b')",
        "pop('z', 7)",
      ],
      ...[
        "pop('z')",
        "setdefault('a', 3)",
        "setdefault('z', 4)",
        "setdefault('y')",
        "update({'b': 9, 'c': 3})",
      ],
      ...['update(d=4)', "update({'a': 0}, e=5)", 'update({})', 'keys() | list', 'values() | list'],
      ...[
        'items() | list',
        "copy().update({'a': 5})",
        'get()',
        "setdefault('x', [])",
        'update(x)',
        'copy()',
      ],
    ]),
    '{{ {1: 2, 1.0: 3, true: 4} }}',
    "{{ dict(a=1, b=2) }} {{ dict([('x', 1), ['y', 2]]) }} {{ dict({'a': 1}, a=2) }} {{ dict([1]) }}",
    "{% for k in {'a': 1, 'b': 2} %}{{ k }}{% endfor %} {{ {'a': 1} == {'a': 1.0} }} {{ 'a' in {'a': 0} }}",
    "{% set d = {'a': 1} %}{% set _ = d.update({'b': d}) %}{{ d.b.a }}",
  ],
  functions: [
    ...[
      '5',
      '0',
      '-2',
      '1, 4',
      '4, 1',
      '0, 10, 3',
      '10, 0, -4',
      '1, 2, 0',
      '3, 3',
      '-3, 3, 2',
      'true, 4',
    ].map((bounds) => `{{ range(${bounds}) | list }}`),
    ...['', '1, 2, 3, 4', '1.5', "'a'", '100001', '0, 100001', '0, 1, 0'].map(
      (bounds) => `{{ range(${bounds}) | list }}`,
    ),
    '{{ range(100000) | length }} {{ range(0, 9223372036854775807, 9223372036854775806) | list }}',
    '{{ range(3)[1] }} {{ 2 in range(3) }} {{ range(3) | last }}',
    '{% set n = namespace(a=1, b=[2]) %}{% set n.c = n.a + 1 %}{{ n.a }}{{ n.b }}{{ n.c }}{{ n.d is defined }}',
    "{% set n = namespace({'a': 1}, b=2) %}{{ n.a }}{{ n.b }}{{ n['a'] }}",
    "{{ raise_exception('no') }}",
  ],
  loops: [
    ...['[]', '[5]', '[5, 6, 7]', "'abc'", "{'a': 1}", 'range(2)', '7', 'none', 'nope'].flatMap(
      (items) => [
        `{% for x in ${items} %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}` +
          '{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} ' +
          '{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}|{% else %}none{% endfor %}',
        `{% for x in ${items} if x != 6 %}{{ loop.length }}{{ x }}{{ loop.cycle('a', 'b') }}{% else %}-{% endfor %}`,
      ],
    ),
    "{% for a, b in [(1, 2), [3, 4], 'xy'] %}{{ a }}-{{ b }};{% endfor %}",
    '{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}',
    '{% for a, b in [1] %}{{ a }}{% endfor %}',
    "{% for k, v in {'a': 1, 'b': [2]}.items() %}{{ k }}={{ v }}{{ loop.last }},{% endfor %}",
    '{% for i in [1, 1, 2, 2, 1] %}{{ loop.changed(i) }} {% endfor %}',
    '{% set v = 1 %}{% for i in [] %}{% else %}{% set v = 2 %}{{ v }}{% endfor %}{{ v }}',
    '{% for i in [1, 2] %}{% for j in [] %}{% else %}{{ i }}{% if i == 1 %}{% continue %}{% endif %}{% break %}{% endfor %}!{% endfor %}',
    '{% for i in [1, 1, 2] %}{{ loop.changed(i, 1) }} {% endfor %}',
    "{% for i in range(5) %}{{ loop.cycle('a', 'b', 'c') }}{% endfor %}{% for i in [1] %}{{ loop.cycle() }}{% endfor %}",
    '{% for i in range(6) %}{% if i == 1 %}{% continue %}{% elif i == 4 %}{% break %}{% else %}{{ i }}{% endif %}{% endfor %}',
    '{% for i in [1, 2] %}{% for j in [3, 4] %}{{ loop.depth }}{{ i }}{{ j }}{% if j == 3 %}{% continue %}{% endif %};{% endfor %}{% endfor %}',
    '{% for x in [1, [2, [3, 4]], 5] recursive %}{% if x is number %}{{ x }}{{ loop.depth }}{% else %}({{ loop(x) }}){% endif %}{% endfor %}',
    '{% set x = 1 %}{% for i in [2] %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}',
    '{% for i in [1, 2, 3] if i > 1 %}{{ loop.index }}{{ i }}{{ loop.previtem is defined }}{% endfor %}{{ i is defined }}',
    "{% for x in ['b', 'a'] | sort %}{{ x }}{% endfor %}{% for x in 1, 2 %}{{ x }}{% endfor %}",
    '{% for x in [1, 2] %}{{ loop is defined }}{% endfor %}{{ loop is defined }}',
  ],
  statements: [
    '{% if 0 %}a{% elif none %}b{% elif 1 %}c{% else %}d{% endif %}{% if nope %}x{% endif %}',
    '{% if not 1 %}a{% else %}b{% endif %}{% if 1 %}{% if 0 %}c{% else %}d{% endif %}{% endif %}',
    '{% set a, b = 1, [2] %}{{ a }}{{ b }}{% set (c, d) = (3, 4) %}{{ c }}{{ d }}',
    '{% set a = 1 if 0 else 2 %}{{ a }}{% set a, b = [1, 2, 3] %}',
    '{% set x %}a{{ 1 }}<{% endset %}{{ x }}{{ x | length }}{{ x | upper }}{% set y | trim | upper %} q {% endset %}[{{ y }}]',
    '{% macro m(a, b=2, c=a) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}{{ m.name }}',
    '{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, z=4) }}',
    '{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(x, y) m() %}{{ x }}+{{ y }}{% endcall %}',
    '{% macro m(a) %}{{ caller is defined }}{{ a }}{% endmacro %}{{ m(1) }}{% call m(2) %}{% endcall %}',
    '{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}{{ f(1) | upper }}',
    "{% filter upper | replace('A', 'b') %}a{{ 'c' }}<{% endfilter %}",
    '{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}',
    '{% raw %}{{ a }}{% if %}{% endraw %}{# comment {{ 1 }} #}x{#- y -#} z',
    ' a {%- if 1 %} b {%- endif -%} c {{- 1 -}} d {%+ if 1 +%}\n e {% endif %}\n f ',
    '{% if 1 %}\n  a\n  {% if 1 %}\nb\n  {% endif %}\n{% endif %}\nc\n',
    '{% generation %}a{{ 1 }}{% endgeneration %}',
    'a\\nb\n\n',
    '{{ 1 }}\n{{ 2 }}\n\n{{- 3 }}  {{ 4 -}}  \n 5{# x #}\n6{#- y #}',
  ],
  'calls with what is spread': [
    ...['m()', 'm(*[])', 'm(*[1])', 'm(*[1, 2])', 'm(*[1, 2, 3])', 'm(1, *[2])', "m(*'ab')"].map(
      (call) => `{% macro m(a, b=7) %}{{ a }}-{{ b }}-{{ varargs }}{% endmacro %}{{ ${call} }}`,
    ),
    ...['m(**{})', "m(**{'a': 1})", "m(**{'b': 2, 'a': 1})", "m(1, **{'b': 2, 'z': 3})"].map(
      (call) => `{% macro m(a, b=7) %}{{ a }}-{{ b }}-{{ kwargs }}{% endmacro %}{{ ${call} }}`,
    ),
    ...["m(*[1], **{'b': 2})", 'm(*(1, 2), z=3)', "m(b=5, *[1], **{'y': 6})", 'm(*{1: 2})'].map(
      (call) =>
        `{% macro m(a, b=7) %}{{ a }}-{{ b }}-{{ varargs }}-{{ kwargs }}{% endmacro %}{{ ${call} }}`,
    ),
    ...['range(*[1, 4])', "dict(**{'a': 1, 'b': 2})", "dict(a=1, **{'b': 2})", 'range(*[])'].map(
      (call) => `{{ ${call} | list }}`,
    ),
    "{{ 'a-b-c'.split(*['-', 1]) }} {{ 'a' | replace(*['a', 'b']) }} {{ 'aXb' | replace('X', **{'new': 'q'}) }}",
    "{{ 7 is divisibleby(*[7]) }} {{ 'x' | default(*['y']) }} {{ nope | default(**{'default_value': 'y'}) }}",
    '{% macro m(a, b, c) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1, c=3) }}|{{ m(b=2) }}|{{ m(1, 2, 3) }}',
    '{% macro m(a, b=a ~ 1, c=b ~ 2) %}{{ a }} {{ b }} {{ c }}{% endmacro %}{{ m(0) }}|{{ m(0, 5) }}|{{ m(0, c=5) }}',
    '{% macro m() %}{{ varargs | length }}{% endmacro %}{{ m() }}{{ m(1, 2, 3) }}',
    '{% macro m() %}{{ caller(x=1) }}{{ caller(2) }}{% endmacro %}{% call(x, y=3) m() %}{{ x }}{{ y }};{% endcall %}',
    '{% macro m(a) %}{{ caller() }}{{ a }}{% endmacro %}{% call m(*[4]) %}c{% endcall %}',
    '{% macro o(n) %}<{{ caller(n) }}>{% endmacro %}{% call(i) o(1) %}{% call(j) o(2) %}{{ i }}{{ j }}{% endcall %}{% endcall %}',
  ],
  scopes: [
    '{% set x = 1 %}{% if 1 %}{% set x = 2 %}{% endif %}{{ x }}',
    '{% set x = 1 %}{% with x = 2, y = x %}{{ x }}{{ y }}{% set x = 3 %}{{ x }}{% endwith %}{{ x }}',
    '{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 2 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}{% set x = 5 %}{{ m() }}',
    '{% for x in [1, 2] %}{% set y = x %}{{ y }}{% endfor %}{{ y is defined }}{{ x is defined }}',
    '{% set y = 9 %}{% for x in [1, 2] %}{{ y }}{% set y = x %}{{ y }}{% endfor %}{{ y }}',
    '{% for x in [1, 2] %}{% for x in [3, 4] %}{{ x }}{% endfor %}{{ x }};{% endfor %}',
    '{% for x in [1] %}{% with y = 2 %}{{ x }}{{ y }}{{ loop.index }}{% endwith %}{% endfor %}',
    '{% for x in [1, 2] %}{% set outer = loop %}{% for y in [3] %}{{ outer.index }}{{ loop.index }}{% endfor %}{% endfor %}',
    '{% set x %}{% set y = 2 %}{{ y }}{% endset %}{{ x }}{{ y is defined }}',
    '{% filter upper %}{% set y = 2 %}a{{ y }}{% endfilter %}{{ y is defined }}',
    '{% macro m(n) %}{% if n %}{{ n }}{{ m(n - 1) }}{{ n }}{% endif %}{% endmacro %}{{ m(3) }}',
    '{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}',
    '{% set (a, (b, c)) = (1, (2, 3)) %}{{ a }}{{ b }}{{ c }}{% for a, (b, c) in [(1, (2, 3))] %}{{ c }}{{ b }}{{ a }}{% endfor %}',
    '{% set n = namespace(i=0) %}{% for x in [1, 2, 3] %}{% set n.i = n.i + x %}{% if n.i > 2 %}{% break %}{% endif %}{% endfor %}{{ n.i }}',
    '{% if x is not defined %}{% set x = 4 %}{% endif %}{{ x }}{% set x = x + 1 %}{{ x }}',
    "{% set messages = [{'role': 'a'}] %}{% for m in messages %}{{ m['role'] }}{{ m.role }}{{ m.get('z', 'q') }}{% endfor %}",
  ],
  'white space around tags': ['', ' ', '\n', ' \n ', '\t\n\n ', 'a', ' a '].flatMap((around) => [
    ...['{% if 1 %}', '{%- if 1 %}', '{%+ if 1 %}', '{% if 1 -%}', '{% if 1 +%}'].map(
      (tag) => `x${around}${tag}${around}y{% endif %}`,
    ),
    ...['{% endif %}', '{%- endif %}', '{%+ endif %}', '{% endif -%}', '{% endif +%}'].map(
      (tag) => `{% if 1 %}x${around}${tag}${around}y`,
    ),
    ...['{{ 1 }}', '{{- 1 }}', '{{ 1 -}}', '{{- 1 -}}', '{{+ 1 }}'].map(
      (tag) => `x${around}${tag}${around}y`,
    ),
    ...['{# c #}', '{#- c #}', '{# c -#}', '{#+ c #}', '{# c +#}', '{##}', '{#-#}', '{#--#}'].map(
      (tag) => `x${around}${tag}${around}y`,
    ),
    `x${around}{% raw %}${around}{{ 1 }}${around}{% endraw %}${around}y`,
    `x${around}{%- raw -%}${around}{% if %}${around}{%- endraw -%}${around}y`,
    `x${around}{% raw %}${around}{# c #}${around}{%+ endraw +%}${around}y`,
    `${around}{% if 1 %}${around}{% if 1 %}${around}b${around}{% endif %}${around}{% endif %}${around}`,
    `{% raw %}${around}{% endraw %}{% if 1 %}${around}{%- raw %}${around}q{% endraw -%}${around}{% endif %}z`,
  ]),
  'numbers and texts as they are written': [
    ...['0', '00', '1_0', '0x0', '0XFF', '0xfF_f', '0b11', '0B1_0', '0o17', '0O7_7'],
    ...['1.0', '1.50', '0.1', '1_0.2_5', '1e0', '1E5', '1e+5', '1e-5', '1.5e1_0', '2.e3'],
    ...['9223372036854775807', '0x7fffffffffffffff', '1.e', '1.upper', '1.5.__class__ is defined'],
    ...["''", '""', "'\\\\'", '"\\"\\\'"', "'\\n\\t\\r\\b\\f\\v\\a'", "'\\0\\1\\12\\123\\1234\\8'"],
    ...["'\\x41\\x4a'", "'\\u0041\\u004a'", "'\\U0001f98a\\U0001f98b'", "'\\q\\ '", "'a\\\nb'"],
    ...["'a' 'b' \"c\"", "'a'\n'b'", "'{{'", "'}}'", '"%}"', "'\u{10ffff}'", "'\\x7f\\x80'"],
    ...["'#}'", "'{#'", "['a' 'b', 'c']", "{'a' 'b': 'c' 'd'}", "('a',)[0]", '[[1, 2], [3]][0][1]'],
    ...["{'a': {'b': [5]}}.a.b.0", '[[7, 8]].0.1', '(1, 2).1', "'ab'.1", "{'0': 1}.0"],
  ].map((written) => `{{ ${written} }}`),
  JSON: [
    ...filters(
      [
        ...all,
        "{'b': [1, {'c': none}], 'a': {}, 'd': []}",
        "'\\u0001\\t\\n\\r\\u007f\\\\/\"\\u2028\\u0008\\u000c'",
        "{1: 'a', none: 2, true: 3, 1.5: 4}",
      ],
      [
        ...[
          'tojson',
          'tojson(indent=2)',
          'tojson(ensure_ascii=true)',
          'tojson(sort_keys=true)',
          'tojson(true)',
        ],
        ...[
          "tojson(separators=(',', ':'))",
          'tojson(indent=0)',
          "tojson(indent='--')",
          'tojson(false, 1)',
        ],
        ...["tojson(indent=1, separators=(', ', ' = '))", 'tojson(indent=4, sort_keys=true)'],
      ],
    ),
    ...[
      ...[
        '1',
        '-1.5e3',
        'true',
        'null',
        '"a\\\\u00e9\\\\n"',
        '[1, {"a": [] }]',
        '{"a": 1, "a": 2}',
        ' [ ] ',
      ],
      ...[
        '01',
        '1.',
        '[1,]',
        '{a: 1}',
        '',
        '1 2',
        '"a',
        '\\t2\\n',
        '-0',
        '1e400',
        '"\\\\ud83d\\\\ude00"',
        'tru',
        '[1 2]',
      ],
      ...['{"a" 1}', '-', '.5', '1e', '1e+2', '"\\\\x"', '{"a":1', '[', 'nul', '"\\\\/\\\\b"'],
    ].map((text) => `{{ '${text}' | from_json }}`),
  ],
};
