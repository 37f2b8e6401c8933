// Makes source text of include/options.mjs for `make layout`: whole files, and the marked parts of files that people write.

import {
  ABOVE_0,
  aliases,
  engine,
  engineFlags,
  FLOAT_MAX,
  fields,
  flags,
  paths,
  request,
  samplers,
  sampling,
  server,
  subjects,
} from '../../include/options.mjs';

/** @typedef {import('../../include/options.mjs').NumberOption} NumberOption */

const C_COLUMNS = 100;
const U32_MAX = 2 ** 32 - 1;
const cTypes = { f32: 'float', u32: 'uint32_t' };
const numbers = Object.entries(sampling);
/** In place of a space that ends no line. */
const NO_BREAK = '\u00a0';
const madeOf = '`make layout` makes it of include/options.mjs: changes go there.';

// ---- names ----

/** @param {string} name of C */
const camelOf = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
/** @param {string} name @param {NumberOption} option */
const jsOf = (name, { js }) => js ?? camelOf(name);
/** @param {string} name @param {NumberOption} option */
const httpOf = (name, { http }) => http ?? name;
/** @param {string} name @param {NumberOption} option */
const cliOf = (name, { cli }) => cli ?? `--${name.replaceAll('_', '-')}`;

// ---- words ----

/** @param {string} text @param {(name: string) => string} nameOf names within {}, '' for the option itself */
const filled = (text, nameOf) => text.replace(/\{(\w*)\}/g, (_, name) => nameOf(name));

/**
 * @param {NumberOption} option
 * @param {number} byDefault
 * @returns {string} "default 64, 0: none, -1: the context"
 */
function valuesOf({ values = [] }, byDefault) {
  const own = new Map(values).get(byDefault);
  const others = values.filter(([value]) => value !== byDefault);
  return [
    `default ${byDefault}${own === undefined ? '' : `: ${own}`}`,
    ...others.map(([value, words]) => `${value}: ${words}`),
  ].join(', ');
}

/** @param {string} text @param {number} columns @returns {string[]} lines of whole words */
function wrapped(text, columns) {
  /** @type {string[]} */
  const lines = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= columns) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else lines.push(word);
  }
  return lines;
}

/** @param {[code: string, comment: string][]} rows @returns {string[]} lines of C whose comments begin in one column */
function aligned(rows) {
  const bare = rows.findIndex(([, comment]) => comment === '');
  if (bare >= 0)
    return [...aligned(rows.slice(0, bare)), rows[bare][0], ...aligned(rows.slice(bare + 1))];
  const column = Math.max(...rows.map(([code]) => code.length)) + 2;
  return rows.flatMap(([code, comment]) =>
    wrapped(comment, C_COLUMNS - column - 3).map(
      (line, index) => `${(index === 0 ? code : '').padEnd(column)}// ${line}`,
    ),
  );
}

// ---- C ----

/** @param {string} name @param {NumberOption} option @returns {string} its comment in include/wick.h */
function meaningInC(name, option) {
  const { about, more, source, off } = option;
  const parts = [
    ...[about, source && ` (${source})`, `; ${valuesOf(option, off)}`],
    more && `. ${more.replace(/\.$/, '')}`,
  ];
  return filled(parts.join(''), (other) => other || name).replace(
    '-1: the context',
    'WICK_LAST_CONTEXT',
  );
}

const samplingInC = () =>
  aligned([
    ...numbers.map(
      ([name, option]) =>
        /** @type {[string, string]} */ ([
          `  ${cTypes[option.type]} ${name};`,
          meaningInC(name, option),
        ]),
    ),
    [
      '  const char *samplers;',
      `in their order, a letter each, at most WICK_SAMPLERS_MAX: ${Object.entries(samplers)
        .map(([name, letter]) => `'${letter}' ${name}`)
        .join(', ')}. Samplers that are not listed are off; 'a' chooses at the end, ` +
        `regardless of its place. NULL: "${Object.values(samplers).join('')}"`,
    ],
  ]);

/** The fields in C and the option of the package that a subject is about. */
const subjectRows = subjects.map(([name, fields, option, held]) => {
  const number = sampling[name];
  return {
    name,
    fields: fields ?? name,
    option: number && fields === undefined ? jsOf(name, number) : option,
    held: held ?? (number?.type === 'u32' ? 'wanted, at most' : ''),
  };
});

function subjectsInC() {
  const rows = subjectRows.map(({ name, fields, held }, index) => {
    const about = fields === name ? '' : fields;
    const comment = [about, held].filter((text) => text !== '').join(': ');
    return /** @type {[string, string]} */ ([
      `  WICK_SUBJECT_${name.toUpperCase()} = ${index},`,
      comment,
    ]);
  });
  return [...aligned(rows), `  WICK_SUBJECT_COUNT = ${rows.length}`];
}

/** @param {number} value of a float in C */
const floatOf = (value) => {
  if (value === FLOAT_MAX) return 'FLOAT_MOST';
  if (value === ABOVE_0) return 'FLOAT_LEAST';
  return `${value}${Number.isInteger(value) ? '.0' : ''}f`;
};

/** @param {string} name @param {string} columns @param {string[]} rows @returns {string[]} a table of C */
const tableOfC = (name, columns, rows) => [
  '',
  `// ${columns}`,
  `#define ${name}(X) \\`,
  ...rows.map((row, index) => `  X(${row})${index === rows.length - 1 ? '' : ' \\'}`),
];

/** @param {NumberOption} option @returns {[least: string, most: string, kind: string]} of a command's option */
function rangeOfArgument({ type, min, max }) {
  if (type === 'f32') return [floatOf(min), floatOf(max ?? FLOAT_MAX), 'ARGS_F32'];
  // of an int32_t where it may be -1
  return [`${min}`, `${Math.min(max ?? 0, 2 ** 31 - 1)}`, min < 0 ? 'ARGS_I32' : 'ARGS_U32'];
}

/** @returns {string[]} tables of web/layout.h */
export const webTables = () => [
  ...tableOfC(
    'WEB_REQUEST_FLAGS',
    'a bit of web_request.flags, and a member of wick_request that is true or false',
    flagRows.map(({ member }, bit) => `${bit}, ${member}`),
  ),
  ...tableOfC('WEB_CONFIG_NUMBERS', 'a number of wick_config', Object.keys(engine)),
  ...tableOfC('WEB_CONFIG_FLAGS', 'a member that is true or false', Object.keys(engineFlags)),
];

const flagRows = Object.entries(flags).map(([name, { isSampling, ...flag }]) => ({
  ...{ js: camelOf(name), member: isSampling ? `sampling.${name}` : name, ...flag },
}));

/** @param {string} name of a number @returns {string} */
function subjectOf(name) {
  if (subjects.some(([subject]) => subject === name)) return `WICK_SUBJECT_${name.toUpperCase()}`;
  if (sampling[name].max !== U32_MAX) throw new Error(`${name} has a range, but no subject`);
  return 'WICK_SUBJECT_NONE';
}

const fieldKinds = ['text', 'boolean', 'object', 'tokens', 'schema', 'ignored'];

/** @param {string} name @param {string} kind @returns {string} a row of component/fields.h's kinds */
function fieldInC(name, kind) {
  if (fieldKinds.includes(kind)) return `X("${name}", FIELD_${kind.toUpperCase()}, NULL)`;
  return `X("${name}", FIELD_MISSING, ${kind === '' ? 'NULL' : JSON.stringify(kind)})`;
}

/** @param {string} route @returns {string[]} */
const fieldsInC = (route) => [
  `#define FIELDS_${route.toUpperCase()}(X) \\`,
  ...wrapped(
    Object.entries(fields[route])
      .map(([name, kind]) => fieldInC(name, kind).replaceAll(' ', NO_BREAK))
      .join(' '),
    96,
  ).map(
    (line, index, all) =>
      `  ${line.replaceAll(NO_BREAK, ' ')}${index === all.length - 1 ? '' : ' \\'}`,
  ),
];

function optionsInC() {
  return [
    '// src/base/options.h — options of a request as tables: X makes what is needed of a row.',
    `// ${madeOf}`,
    '// clang-format off',
    '#ifndef WICK_BASE_OPTIONS_H',
    '#define WICK_BASE_OPTIONS_H',
    '',
    '#include <stddef.h>',
    '',
    `#define FLOAT_MOST ${FLOAT_MAX}f`,
    `#define FLOAT_LEAST ${ABOVE_0}f`,
    ...tableOfC(
      'SAMPLING_RANGES',
      'a field of wick_sampling, its subject (none: all values are right), whether it is a float, least, most, default',
      numbers.map(([name, { type, min, max, off }]) => {
        const range = [min, max ?? FLOAT_MAX, off].map(floatOf);
        return [name, subjectOf(name), type === 'f32', ...range].join(', ');
      }),
    ),
    ...tableOfC(
      'SAMPLING_FIELDS',
      'a field of wick_sampling, its name over HTTP, whether it is a float, least, most, default of a server',
      numbers.map(([name, option]) => {
        const { type, min, max, off, byDefault } = option;
        const range = [min, max ?? FLOAT_MAX, byDefault ?? off];
        return [name, `"${httpOf(name, option)}"`, type === 'f32', ...range].join(', ');
      }),
    ),
    ...tableOfC(
      'SAMPLING_ARGUMENTS',
      "a field of wick_sampling, a command's option, its kind, the value's name, least, most, help",
      numbers.map(([name, option]) => {
        const [least, most, kind] = rangeOfArgument(option);
        const about = filled(option.about, () => option.value);
        return [
          ...[name, `"${cliOf(name, option)}"`, kind, `"${option.value}"`, least, most],
          `"${about} (${valuesOf(option, option.off)})"`,
        ].join(', ');
      }),
    ),
    ...tableOfC(
      'FLAG_FIELDS',
      'a member of wick_request that is true or false, and its name over HTTP',
      flagRows.filter(({ http }) => http).map(({ member, http }) => `${member}, "${http}"`),
    ),
    ...tableOfC(
      'FLAG_ARGUMENTS',
      "such a member, a command's option, help",
      flagRows
        .filter(({ cli }) => cli)
        .map(({ member, cli, about }) => `${member}, "${cli}", "${about}"`),
    ),
    ...tableOfC(
      'SAMPLERS',
      "a sampler's name, and its letter in wick_sampling.samplers",
      Object.entries(samplers).map(
        ([name, letter]) => `${name.toUpperCase()}, "${name}", '${letter}'`,
      ),
    ),
    `#define SAMPLERS_DEFAULT "${Object.values(samplers).join('')}"`,
    '// Returns the letter of a sampler, or 0 for an unknown name.',
    'char sampler_letter(const char *name, size_t name_bytes);',
    '',
    "// A field over HTTP, its field_kind (component/fields.h), and what is accepted of a missing feature's",
    ...Object.keys(fields).flatMap(fieldsInC),
    ...tableOfC(
      'FIELD_ALIASES',
      "another server's name of a field, and ours",
      Object.entries(aliases).map((row) => row.map((name) => `"${name}"`).join(', ')),
    ),
    ...tableOfC(
      'SERVER_SETTINGS',
      "an option's kind, its field of a component's settings, its variable, its default",
      Object.values(server).flatMap(({ kind, env, byDefault = `(settings_${kind}){0}` }) =>
        env ? [`${kind}, ${env[1]}, "${env[0]}", ${byDefault}`] : [],
      ),
    ),
    ...tableOfC(
      'PATH_ALIASES',
      "another name of a path over HTTP, and the route's",
      Object.entries(paths).map((row) => row.map((name) => `"${name}"`).join(', ')),
    ),
    '',
    '// The fields that a wick_subject is about',
    '#define SUBJECT_NAMES \\',
    ...wrapped(
      subjectRows.map(({ fields }) => `"${fields.replaceAll(' ', NO_BREAK)}"`).join(', '),
      96,
    ).map(
      (line, index, all) =>
        `  ${line.replaceAll(NO_BREAK, ' ')}${index === all.length - 1 ? '' : ' \\'}`,
    ),
    '',
    '#endif',
  ];
}

// ---- JavaScript ----

/** @param {string} name @param {Record<string, unknown>} fields @returns {string[]} a property, as the formatter has it */
function property(name, fields) {
  const parts = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}: ${typeof value === 'string' ? `'${value}'` : value}`);
  const line = `  ${name}: { ${parts.join(', ')} },`;
  if (line.length <= 100) return [line];
  return [`  ${name}: {`, ...parts.map((part) => `    ${part},`), '  },'];
}

/** @param {string[]} texts @returns {string[]} an item of an array, as the formatter has it */
function listOf(texts) {
  const line = `  [${texts.map((text) => `'${text}'`).join(', ')}],`;
  if (line.length <= 100) return [line];
  return ['  [', ...texts.map((text) => `    '${text}',`), '  ],'];
}

/** @param {string} text */
const quoted = (text) => (text.includes("'") ? `"${text}"` : `'${text}'`);

const handlerRows = Object.entries(server).filter(([, { isElsewhere }]) => !isElsewhere);

function optionsInJs() {
  const record = (/** @type {[string, NumberOption][]} */ rows) =>
    rows.flatMap(([name, option]) => {
      const { type, min, max, off, byDefault } = option;
      const whole = type === 'u32' ? true : undefined;
      return property(jsOf(name, option), {
        ...{ field: httpOf(name, option), byDefault: byDefault ?? off, min, max, whole },
      });
    });
  const neutral = numbers.filter(([, { byDefault }]) => byDefault !== undefined);
  return [
    "// js/base/option_table.js — a request's options that are numbers, and the subjects of errors.",
    `// ${madeOf}`,
    '',
    '/** @typedef {{field: string, byDefault: number, min: number, max?: number, whole?: boolean}} NumberOption */',
    '',
    '/** The numbers of wick_sampling in its order: their fields over HTTP, defaults and ranges. */',
    'export const samplingNumbers = {',
    ...record(numbers),
    '};',
    '',
    '/** Numbers of a request beyond those. */',
    'export const requestNumbers = {',
    ...record(Object.entries(request)),
    '};',
    '',
    '/** Options of a request that are true or false, by the bits of web_request.flags: the fields over HTTP and the options of the commands. */',
    'export const requestFlags = {',
    ...flagRows.map(({ js, http, cli }) => {
      const names = [http && `field: '${http}'`, cli && `cli: '${cli}'`].filter(Boolean);
      return `  ${js}: ${names.length > 0 ? `{ ${names.join(', ')} }` : '{}'},`;
    }),
    '};',
    '',
    "/** An engine's options that are numbers, in the order of web_config. */",
    'export const engineNumbers = {',
    ...Object.entries(engine).flatMap(([, { js, min = 0, max = U32_MAX, byDefault = 0 }]) =>
      property(js, { byDefault, min, max, whole: true }),
    ),
    '};',
    '',
    "/** An engine's options that are true or false, in the order of web_config: its member of the opposite, or '' for the same. */",
    'export const engineFlags = {',
    ...Object.entries(engineFlags).map(([name, { not }]) =>
      not ? `  ${not}: '${camelOf(name)}',` : `  ${camelOf(name)}: '',`,
    ),
    '};',
    '',
    '/** The defaults of the commands, where they are others: no sampler does anything. */',
    `export const plainSampling = { ${neutral
      .map(([name, option]) => `${jsOf(name, option)}: ${option.off}`)
      .join(', ')} };`,
    '',
    "/** The commands' options. */",
    'export const commandOptions = {',
    ...[...numbers, ...Object.entries(request)].map(
      ([name, option]) => `  '${cliOf(name, option)}': '${jsOf(name, option)}',`,
    ),
    '};',
    '',
    "/** The letters of wick_sampling.samplers, by llama.cpp's names. */",
    'export const samplerLetters = {',
    ...Object.entries(samplers).map(([name, letter]) => `  ${name}: '${letter}',`),
    '};',
    '',
    '/** Fields over HTTP by routes, each with its kind or with the JSON that is accepted of a missing feature. */',
    'export const fieldKinds = {',
    ...Object.entries(fields).flatMap(([route, kinds]) => {
      const text = Object.entries(kinds)
        .map(([name, kind]) => `${name}=${kind}`)
        .join(' ');
      return [
        route.length > 4 && route.length + text.length + 7 > 100
          ? `  ${route}:\n    '${text}',`
          : `  ${route}: '${text}',`,
      ];
    }),
    '};',
    '',
    "/** Other servers' names of fields over HTTP, and ours. @type {Record<string, string>} */",
    'export const fieldAliases = {',
    ...Object.entries(aliases).map(([name, own]) => `  ${name}: '${own}',`),
    '};',
    '',
    '/** Options of createHandler with a number and their defaults, and those with a text or several. */',
    'export const handlerCounts = {',
    ...handlerRows
      .filter(([, { kind }]) => kind === 'count')
      .map(([name, { byDefault }]) => `  ${name}: ${byDefault},`),
    '};',
    `export const handlerTexts = [${handlerRows
      .filter(([, { kind }]) => kind !== 'count')
      .map(([name]) => `'${name}'`)
      .join(', ')}];`,
    '',
    '/** Of a stream before its first token. */',
    `export const SILENCE_MS = ${server.silenceMs.byDefault};`,
    '',
    '/** Options of `wick serve`: createHandler, and what --help says. @type {[option: string, name: string, value: string, about: string][]} */',
    'export const serveOptions = [',
    ...Object.entries(server).flatMap(([name, { cli }]) =>
      cli ? listOf([cli[0], name, cli[1], cli[2]]) : [],
    ),
    '];',
    '',
    '/** Other names of paths over HTTP. @type {Record<string, string>} */',
    'export const pathAliases = {',
    ...Object.entries(paths).map(([name, own]) => `  '${name}': '${own}',`),
    '};',
    '',
    '/** The subjects of errors in the order of their numbers, each with its option. @type {[string, string?][]} */',
    'export const subjects = [',
    ...subjectRows.map(({ name, option }) =>
      option === undefined ? `  ['${name}'],` : `  ['${name}', ${quoted(option)}],`,
    ),
    '];',
  ];
}

/** @param {NumberOption} option @returns {string} its type in TypeScript */
function typeOf({ type, min, max = FLOAT_MAX }) {
  if (type !== 'u32' || max - min > 2) return 'number';
  return Array.from({ length: max - min + 1 }, (_, index) => min + index).join(' | ');
}

/** @param {string} text @returns {string[]} a comment of TypeScript in an interface */
function commentOf(text) {
  const lines = wrapped(text, 112);
  if (lines.length === 1) return [`  /** ${text} */`];
  return ['  /**', ...lines.map((line) => `   * ${line}`), '   */'];
}

/** @param {string} name @param {NumberOption} option @param {string} values @returns {string} */
function meaningInJs(name, { about, more }, values) {
  const parts = [`${about[0].toUpperCase()}${about.slice(1)}`, values && `; ${values}`, '.'];
  return filled([...parts, more && ` ${more}`].join(''), (other) =>
    other ? `\`${jsOf(other, sampling[other])}\`` : `\`${camelOf(name)}\``,
  );
}

const optionTypes = () =>
  numbers.flatMap(([name, option]) => [
    ...commentOf(meaningInJs(name, option, valuesOf(option, option.byDefault ?? option.off))),
    `  ${jsOf(name, option)}?: ${typeOf(option)};`,
  ]);

const flagTypes = () =>
  flagRows.flatMap(({ js, about, more }) => [
    ...commentOf(`${about[0].toUpperCase()}${about.slice(1)}.${more ? ` ${more}` : ''}`),
    `  ${js}?: boolean;`,
  ]);

const flagFieldTypes = () =>
  flagRows
    .filter(({ http }) => http)
    .flatMap(({ http, about }) => [
      ...commentOf(`${about[0].toUpperCase()}${about.slice(1)}.`),
      `  ${http}?: boolean | null;`,
    ]);

const engineTypes = () => [
  ...Object.values(engine).flatMap(({ js, about }) => [
    ...commentOf(about),
    `  ${js}?: number | null;`,
  ]),
  ...Object.entries(engineFlags).flatMap(([name, { not, about }]) => [
    ...commentOf(about),
    `  ${not ?? camelOf(name)}?: boolean;`,
  ]),
];

const fieldTypes = () =>
  numbers.map(([name, option]) => `  ${httpOf(name, option)}?: ${typeOf(option)} | null;`);

const samplerTypes = () =>
  Object.keys(samplers).map(
    (name, index, all) => `  | '${name}'${index === all.length - 1 ? ';' : ''}`,
  );

/** @param {NumberOption} option @returns {string} */
function rangeOf({ min, max }) {
  if (max !== undefined && max < U32_MAX) return `${min} to ${max}`;
  return min === ABOVE_0 ? 'above 0' : `at least ${min}`;
}

/** Items of docs/guide/sampling.md: the option, its default, its range, what it does. */
const optionItems = () =>
  numbers.map(([name, option]) => {
    const { off, byDefault = off, source, values = [] } = option;
    const words = values.map(([value, meaning]) => `${value}: ${meaning}`).join(', ');
    const meaning = `${meaningInJs(name, option, words)}${source ? ` (${source})` : ''}`;
    return `- \`${jsOf(name, option)}\` (${byDefault}; ${rangeOf(option)}): ${meaning}`;
  });

/** Files that are made as a whole. @returns {[file: string, lines: string[]][]} */
export const optionFiles = () => [
  ['src/base/options.h', optionsInC()],
  ['js/base/option_table.js', optionsInJs()],
];

/** Parts of files, between two lines that name them. @returns {[file: string, part: string, lines: string[]][]} */
export const optionParts = () => [
  ['include/wick.h', 'subjects', subjectsInC()],
  ['include/wick.h', 'sampling', samplingInC()],
  ['js/index.d.ts', 'engine options', engineTypes()],
  ['js/index.d.ts', 'samplers', samplerTypes()],
  ['js/index.d.ts', 'sampling', optionTypes()],
  ['js/index.d.ts', 'fields', fieldTypes()],
  ['js/index.d.ts', 'flags', flagTypes()],
  ['js/index.d.ts', 'flag fields', flagFieldTypes()],
  ['docs/guide/sampling.md', 'options', optionItems()],
];
