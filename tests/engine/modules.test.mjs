// Checks the built WebAssembly modules: their instructions, imports and size limits, and the source lists that
// they are built from.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { builtSizes, CHAT_PAGE, sizeFault } from '../../tools/build/sizes.mjs';
import { built, ci, locateRelaxedNode, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';

const relaxedNode = locateRelaxedNode();
const variants = ['simd128-single', 'simd128-threads', 'relaxed-single', 'relaxed-threads'];
const web = variants.map((variant) => `web/wick-${variant}.wasm`);
/** The module that the first request with a grammar loads. */
const grammar = variants.map((variant) => `web/wick-${variant}-grammar.wasm`);
/** The module that less common models load. */
const extras = variants.map((variant) => `web/wick-${variant}-extras.wasm`);
/** The command-line program for edge runtimes: common models and commands. */
const small = ['wasi/wick.wasm', 'wasi/wick-relaxed.wasm'];
/** The complete command-line program. */
const full = ['wasi/wick-full.wasm', 'wasi/wick-full-relaxed.wasm'];
const wasi = [...small, ...full];

const wasmOpt = resolve(root, '.toolchain/bin/wasm-opt');
/** For models that need more than 4 GiB: single modules with everything, for any number of threads. */
const wide = ['web/wick-simd128-wide.wasm', 'web/wick-relaxed-wide.wasm'];
const noWasmOpt = existsSync(wasmOpt) || ci ? false : 'no wasm-opt of tools/setup.sh core';
const everywhere = [
  'simd',
  'bulk-memory',
  'nontrapping-float-to-int',
  'sign-ext',
  'mutable-globals',
  'reference-types',
];

/** @param {string} file @param {string[]} features @returns {Promise<boolean>} */
async function isWithin(file, features) {
  const flags = features.map((feature) => `--enable-${feature}`);
  const { code } = await run(wasmOpt, ['--mvp-features', ...flags, built(file)]);
  return code === 0;
}

/**
 * Finds relaxed SIMD instructions (fd 80 02 to fd 93 02), which wasm-opt 120 does not check.
 * @param {string} file
 * @returns {Promise<boolean>}
 */
async function hasRelaxed(file) {
  const { stdout } = await run('llvm-objdump-19', ['-d', built(file)]);
  assert.ok(stdout.length > 0, `llvm-objdump printed nothing about ${file}`);
  return /: fd (8[0-9a-f]|9[0-3]) 02/.test(stdout.toString());
}

/** @param {string} file @returns {Promise<{imports: string[], exports: string[]}>} */
async function describeModule(file) {
  const source = `const m = new WebAssembly.Module(require('fs').readFileSync(process.argv[1]));
    const imports = WebAssembly.Module.imports(m).map((i) => i.module + '.' + i.name);
    const exports = WebAssembly.Module.exports(m).map((e) => e.name);
    console.log(JSON.stringify({ imports, exports }))`;
  const { stdout, stderr } = await run(relaxedNode.path, ['-e', source, built(file)]);
  return JSON.parse(stdout.toString() || assert.fail(stderr));
}

test('a module needs only the features in its name', { skip: noWasmOpt }, async () => {
  for (const file of [...web, ...wasi]) {
    const threads = file.includes('threads');
    assert.equal(await isWithin(file, everywhere), !threads, file);
    assert.ok(await isWithin(file, [...everywhere, 'threads']), file);
    assert.equal(await hasRelaxed(file), file.includes('relaxed'), file);
  }
  for (const file of wide) {
    const features = [...everywhere, 'threads'];
    assert.equal(await isWithin(file, features), false, file);
    assert.ok(await isWithin(file, [...features, 'memory64']), file);
    assert.equal(await hasRelaxed(file), file.includes('relaxed'), file);
  }
});

test('a web module imports its memory and a few functions', {
  skip: relaxedNode.skip,
}, async () => {
  for (const file of web) {
    const { imports, exports } = await describeModule(file);
    assert.ok(imports.includes('env.memory'), file);
    assert.ok(
      imports.every((name) => name.startsWith('env.')),
      `${file} imports ${imports}`,
    );
    assert.ok(imports.length <= 11, `${file} imports ${imports}`);
    assert.ok(exports.includes('__stack_pointer'), `threads of ${file} need separate stacks`);
  }
});

test('a secondary module imports only from the primary module of its build', {
  skip: relaxedNode.skip,
}, async () => {
  for (const [index, file] of [...grammar, ...extras].entries()) {
    const { imports, exports } = await describeModule(file);
    const first = await describeModule(web[index % web.length]);
    assert.ok(imports.length > 20, `${imports.length} imports`);
    for (const name of imports) {
      assert.ok(
        name.startsWith('main.') && first.exports.includes(name.slice(5)),
        `${file} ${name}`,
      );
    }
    assert.deepEqual(exports, []);
    // exports for only this module have a prefix that no other build has
    const prefix = file.includes('grammar') ? 'g%' : 'e%';
    const own = first.exports.filter((name) => name.startsWith(prefix));
    const other = await describeModule(web[(index + 1) % web.length]);
    assert.ok(own.length > 20 && !own.some((name) => other.exports.includes(name)), file);
  }
});

test('a WASI module imports only preview 1', { skip: relaxedNode.skip }, async () => {
  for (const file of wasi) {
    const { imports, exports } = await describeModule(file);
    assert.ok(imports.length > 0);
    assert.ok(
      imports.every((name) => name.startsWith('wasi_snapshot_preview1.')),
      `${file} imports ${imports}`,
    );
    assert.ok(exports.includes('_start') && exports.includes('memory'));
  }
});

test('no module is larger than docs/sizes.md allows', () => {
  const sizes = [...builtSizes()].filter(([name]) => name.endsWith('.wasm'));
  for (const file of [...web, ...grammar, ...extras, ...wasi])
    assert.ok(
      sizes.some(([name]) => name === `build/${file}`),
      file,
    );
  for (const [name, bytes] of sizes) assert.equal(sizeFault(name, bytes), undefined);
});

test('a file may exceed its recorded size by 3%, but never its goal', () => {
  const module = 'build/web/wick-relaxed-single.wasm';
  const table = new Map([
    ['dist/index.js', 20_000],
    [module, 236_000],
  ]);
  const fault = (/** @type {string} */ name, /** @type {number} */ bytes) =>
    sizeFault(name, bytes, table) ?? '';
  assert.equal(fault('dist/index.js', 20_600), '');
  assert.match(fault('dist/index.js', 20_601), /20,601 bytes, more than 3 % above 20,000 in/);
  assert.match(fault('dist/new.js', 1), /^dist\/new\.js: has no row in docs\/sizes\.md/);
  assert.equal(fault(module, 240_000), '');
  assert.match(fault(module, 240_001), /240,001 bytes, limit is 240,000/);
  for (const [name, goal] of /** @type {const} */ ([
    ['build/web/wick-simd128-threads-grammar.wasm', 50_000],
    ['build/web/wick-simd128-threads-extras.wasm', 75_000],
    ['build/wasi/wick-relaxed.wasm', 280_000],
    [CHAT_PAGE, 110_000],
  ])) {
    const large = new Map([[name, goal]]);
    assert.equal(sizeFault(name, goal, large), undefined);
    assert.match(sizeFault(name, goal + 1, large) ?? '', /limit is/, name);
  }
});

/** Returns the functions that a source defines with external linkage. @param {string} text @returns {string[]} */
function functionsOf(text) {
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
  return [...code.matchAll(/^(?!static\b)\w[\w *]*?\b(\w+)\([^;{}]*\) \{/gm)].map(
    ([, name]) => name,
  );
}

test('code for tests and wick-lab is not linked into shipped programs', async () => {
  const folder = join(root, 'src/reference');
  const sources = readdirSync(folder).filter((file) => file.endsWith('.c'));
  const names = sources.flatMap((file) => functionsOf(readFileSync(join(folder, file), 'utf8')));
  assert.ok(names.length > 50, `${names.length} functions`);
  // linked files before their names are stripped
  const linked = [
    ...variants.map((variant) => `obj/web-${variant}/wick.wasm`),
    ...['wasi', 'wasi-relaxed'].flatMap((config) =>
      ['wick', 'wick-full'].map((name) => `obj/${config}/${name}.wasm`),
    ),
  ];
  names.push('lab_serve', 'lab_convoy', 'lab_saturation', 'serve_run_all');
  for (const file of ['native/wick', ...linked].map(built)) {
    const { stdout } = await run('llvm-nm-19', ['--defined-only', '--format=just-symbols', file]);
    const found = new Set(stdout.toString().split('\n'));
    assert.ok(found.has('kv_row_write'), `${file} has no names`);
    for (const name of names) assert.ok(!found.has(name), `${file} has ${name}`);
  }
});

describe('the lists of flags.mk', () => {
  const make = (/** @type {string[]} */ ...args) => run('make', ['-n', ...args], { cwd: root });

  test('each source has one optimization level, and each listed name has a source', async () => {
    for (const [list, fault] of [
      [
        'SHORT_SOURCES=src/kv/write src/kv/page',
        /in SHORTEST_SOURCES and in SHORT_.*src\/kv\/page/,
      ],
      ['SHORTEST_SOURCES=src/kv/%', /in SHORTEST_SOURCES and in SHORT_SOURCES: src\/kv\/write\.c/],
      ['SHORT_SOURCES=src/kv/none', /SHORT_SOURCES has src\/kv\/none, which is not a source/],
      ['EXTRAS_SOURCES=src/kv/none', /EXTRAS_SOURCES has src\/kv\/none, which is not a source/],
    ]) {
      const { code, stderr } = await make('help', String(list));
      assert.equal(code, 2, `${list}`);
      assert.match(stderr, /** @type {RegExp} */ (fault));
    }
  });

  test('src/api/extras.c guards every call into the extras', async () => {
    const stamp = 'build/obj/wasi/extras.ok';
    const { stdout } = await make('-W', 'tools/build/check_extras.mjs', stamp);
    const [, nm, line] = /^NM=(\S+) \S+ (.*)$/m.exec(stdout.toString()) ?? assert.fail('no check');
    const [script, ...args] = line.split(' ');
    const at = args.indexOf('--');
    /** @param {string[]} more additional extras objects @param {string[]} [fewer] objects removed from the extras */
    const check = async (more, fewer = []) => {
      const objectOf = (/** @type {string} */ name) => `build/obj/wasi/src/${name}.o`;
      const extra = args.slice(0, at).concat(more.map(objectOf));
      const [moved, added] = [more.map(objectOf), fewer.map(objectOf)];
      const others = args.slice(at + 1).filter((object) => !moved.includes(object));
      const list = [
        ...extra.filter((object) => !added.includes(object)),
        '--',
        ...others,
        ...added,
      ];
      return run(process.execPath, [script, ...list], { cwd: root, env: { NM: nm } });
    };
    assert.deepEqual((await check([])).code, 0);
    /** @type {[string[], string[], RegExp][]} */
    const mistakes = [
      [
        ['sample/dry'],
        [],
        /^src\/sample\/\w+\.c uses \w+ of src\/sample\/dry\.c, which the small program leaves out/m,
      ],
      [['model/families/qwen'], [], /the architecture 'qwen2' is extra code/],
      [[], ['model/families/lfm2'], /the architecture 'lfm2' is not extra code/],
      [[], ['kernels/fp4'], /the type 'mxfp4' is not extra code/],
      [['text/spm'], [], /the tokenizer 'llama' is extra code/],
      [[], ['text/wpm'], /the tokenizer 'bert' is not extra code/],
    ];
    for (const [more, fewer, fault] of mistakes) {
      const { code, stderr } = await check(more, fewer);
      assert.equal(code, 1, `${more}, ${fewer}`);
      assert.match(stderr, fault);
    }
  });
});
