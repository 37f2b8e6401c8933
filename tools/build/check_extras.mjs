// Checks, when the small WASI program is linked, that no code in EXTRAS_SOURCES (flags.mk) or
// WASI_MEDIA_SRC (Makefile) can be called unless src/api/extras.c or src/cli/media_options.c allows
// it, because a call to a function that was left out would trap. Every symbol of extras that other objects
// use must belong to one of the gates below, and the tables of extras.c must list exactly the
// families, types and tokenizers that are not extras.
//   NM=llvm-nm node tools/build/check_extras.mjs EXTRAS.o... -- OTHERS.o...

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(fileURLToPath(new URL('../..', import.meta.url)));
const read = (/** @type {string} */ path) => readFileSync(resolve(root, path), 'utf8');

/**
 * The symbols of extras that other objects use, the sources that may use them, and the guards that
 * keep the small program from calling them.
 */
const gates = [
  { symbols: /^FAMILY_/, users: /^model\/family$/, by: 'FAMILIES' },
  {
    symbols: /_(matmul_\w+|matrix_bytes|repack|row_dequant)$/,
    users: /^kernels\/(kernels|answers)$/,
    by: 'TYPES',
  },
  {
    symbols: /^(rwkv|ugm|wpm|charsmap)_/,
    users: /^text\/(encode|tokenizer)$/,
    by: 'TOKENIZERS',
  },
  { symbols: /^grids_unpack$/, users: /^kernels\/kernels$/, by: 'extras_are_there' },
  {
    symbols: /^(kv_([cq][48]_|r4_|queries_|factors_)|(codes|channels)_)/,
    users: /^kernels\/(kernels|attention_simd)$/,
    by: 'are_usual_kv',
  },
  // only blocks that are extras use these rows of the kernel tables
  {
    symbols: /^(conv|delta|scan|ssd|wkv)_(scalar|simd128)$/,
    users: /^kernels\/(kernels|answers)$/,
    by: 'FAMILIES',
  },
  {
    symbols: /^experts_(make|read)$/,
    users: /^model\/families\/(decoder|hunyuan|llama|olmo2|phi|scaled)$/,
    by: 'find_unusual_key',
  },
  { symbols: /^ssm_(make|read)$/, users: /^model\/families\/scaled$/, by: 'FAMILIES' },
  {
    symbols: /^whole_attention_/,
    users: /^model\/blocks\/attention$/,
    by: 'find_unusual_key',
  },
  { symbols: /^engine_refuse_kind$/, users: /^api\/extras$/, by: 'extras_are_there' },
  {
    symbols: /^(engine_choose_tables|tables_(read|reserve))$/,
    users: /^(api\/engine|model\/forward)$/,
    by: 'engine_may_move_tables',
  },
  // only families that are extras create a predictor
  {
    symbols: /^(predict_|predictor_)/,
    users: /^(api\/engine|model\/weights|schedule\/(pass|scheduler))$/,
    by: 'FAMILIES',
  },
  { symbols: /^store_/, users: /^(api\/state|schedule\/swap)$/, by: 'config.swap' },
  // media_options.c rejects images if FULL_PROGRAM is not NULL
  {
    symbols: /^(media_(request|chat|plan)_|wick_media_)/,
    users: /^cli\/(chat|inspect|logits|media_options|run)$/,
    by: 'commands_usual',
  },
  // the small program has no command that saves states
  { symbols: /^(session|state)_/, users: /^api\/state$/, by: 'commands_usual' },
  { symbols: /^state_page_put$/, users: /^store\/cached$/, by: 'commands_usual' },
];

/** Families outside EXTRAS_SOURCES whose layers are extras, and the kind of layer. @type {Record<string, string>} */
const withExtraLayers = {
  'gemma-embedding': 'encoders',
  granitehybrid: 'recurrent layers',
  granitemoe: 'experts',
  'hunyuan-moe': 'experts',
  'llama-embed': 'encoders',
  olmoe: 'experts',
  phimoe: 'experts',
};

/** @type {string[]} */
const faults = [];

/**
 * @param {string[]} objects
 * @returns {{object: string, kind: string, name: string}[]} their external symbols
 */
function symbolsOf(objects) {
  const nm = process.env.NM ?? 'llvm-nm';
  const listed = execFileSync(nm, ['-A', ...objects], {
    encoding: 'utf8',
    maxBuffer: 1e8,
    stdio: ['ignore', 'pipe', 'ignore'], // stderr lists objects without symbols
  });
  return listed.split('\n').flatMap((line) => {
    const [, object, kind, name] = /^(.*?\.o):.* ([A-Z]) (\S+)$/.exec(line) ?? [];
    return object ? [{ object, kind, name }] : [];
  });
}

const sourceOf = (/** @type {string} */ object) =>
  object.replace(/^build\/obj\/[^/]+\/(src\/)?/, '').replace(/\.o$/, '');

const divider = process.argv.indexOf('--');
const [extras, others] = [process.argv.slice(2, divider), process.argv.slice(divider + 1)];
/** The object of extras that defines each symbol. @type {Map<string, string>} */
const inExtras = new Map();
for (const { object, kind, name } of symbolsOf(extras))
  if (kind !== 'U') inExtras.set(name, sourceOf(object));
/** @type {Set<string>} */
const outside = new Set();
const used = new Set();
for (const { object, kind, name } of symbolsOf(others)) {
  if (kind !== 'U') outside.add(name);
  if (kind !== 'U' || !inExtras.has(name)) continue;
  const user = sourceOf(object);
  const gate = gates.find((each) => each.symbols.test(name) && each.users.test(user));
  if (gate) used.add(gate);
  else {
    faults.push(
      `src/${user}.c uses ${name} of src/${inExtras.get(name)}.c, which the small program leaves out: it ` +
        'would trap there. Guard it in src/api/extras.c and add the guard to tools/build/check_extras.mjs.',
    );
  }
}
for (const gate of gates) if (!used.has(gate)) faults.push(`the gate ${gate.symbols} is unused`);

// ---- the tables of extras.c ----

const tables = read('src/api/extras.c');
for (const { by } of gates)
  if (!/^(commands_usual)$/.test(by) && !tables.includes(by.replace('config.', '')))
    faults.push(`src/api/extras.c has no ${by}`);

/** @param {string} table @returns {Set<string>} its words */
function wordsOf(table) {
  const [, text] = new RegExp(`${table}\\[\\] =([^;]*);`).exec(tables) ?? [];
  const words = [...(text ?? '').matchAll(/"([^"]*)"/g)].map(([, part]) => part).join('');
  return new Set(words.trim().split(' '));
}

/**
 * @param {string} what
 * @param {Set<string>} listed
 * @param {Map<string, boolean>} isExtra whether a name belongs to the extras
 */
function assertComplement(what, listed, isExtra) {
  if (isExtra.size === 0) faults.push(`no ${what} found`);
  for (const [name, extra] of isExtra) {
    if (extra === listed.has(name))
      faults.push(`src/api/extras.c: the ${what} '${name}' is ${extra ? '' : 'not '}extra code`);
  }
  for (const name of listed) if (!isExtra.has(name)) faults.push(`unknown ${what} '${name}'`);
}

/** @type {Map<string, boolean>} */
const families = new Map();
const folder = 'src/model/families';
for (const file of readdirSync(resolve(root, folder)).filter((name) => name.endsWith('.c'))) {
  for (const [, symbol, name] of read(`${folder}/${file}`).matchAll(
    /model_family (FAMILY_\w+) = \{\s*\.name = "([^"]+)"/g,
  )) {
    if (inExtras.has(symbol) === outside.has(symbol))
      faults.push(`${symbol} must be in exactly one of the modules`);
    if (withExtraLayers[name] && inExtras.has(symbol))
      faults.push(`tools/build/check_extras.mjs: '${name}' is in EXTRAS_SOURCES`);
    families.set(name, inExtras.has(symbol) || name in withExtraLayers);
  }
}
assertComplement('architecture', wordsOf('FAMILIES'), families);

/** @param {Iterable<string>} names @param {RegExp} pattern @returns {string[]} the matches of the pattern's first group */
const found = (names, pattern) => [...names].flatMap((name) => pattern.exec(name)?.slice(1) ?? []);
/** @type {Map<string, boolean>} */
const types = new Map();
const typeOf = /^(\w+)_matrix_bytes$/;
for (const type of found(outside, typeOf)) types.set(type, false);
for (const type of found(inExtras.keys(), typeOf)) types.set(type, true);
const [, bits = ''] = /TYPES =([^;]*);/.exec(tables) ?? [];
const usual = [...bits.matchAll(/GGML_TYPE_(\w+)/g)].map(([, type]) => type.toLowerCase());
assertComplement('type', new Set(usual), types);

/** @type {Map<string, boolean>} */
const tokenizers = new Map([['gpt2', inExtras.has('bpe_encode')]]);
for (const [, name, kind] of read('src/text/tokenizer.c').matchAll(/\{"(\w+)", FAMILY_(\w+)\}/g))
  tokenizers.set(name, inExtras.has(`${kind.toLowerCase()}_encode`));
assertComplement('tokenizer', wordsOf('TOKENIZERS'), tokenizers);

for (const fault of faults) console.error(fault);
process.exitCode = faults.length > 0 ? 1 : 0;
