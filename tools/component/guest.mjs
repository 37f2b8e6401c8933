// Builds a component from a guest in JavaScript, Python or Rust and composes it with the engine's
// component (docs/components.md, "A typed interface"). A guest in Rust is the library target of the
// Cargo.toml next to it:
//   node tools/component/guest.mjs GUEST.js|GUEST.py|GUEST.rs GUEST.wit ENGINE.wasm OUT.wasm
// The outer component has the guest's imports, except for wick:llm, which the engine inside provides.
//
// componentize-qjs 0.4.5 starts a guest at build time with stubs for its imports, and the wasmtime in it rejects stubs of
// async functions (wasmtime's pull request 13821). Therefore, the guest is built with plain functions, and their types are
// marked async here. The guest calls them synchronously, and they return immediately.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const packages = fileURLToPath(
  new URL('../../.toolchain/component/node_modules/', import.meta.url),
);
/** @param {string} path relative to the repository @returns {string} */
const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
/** @param {string} path */
const load = (path) => import(pathToFileURL(resolve(packages, path)).href);
const { componentNew, componentWit, parse, print } = await load(
  '@bytecodealliance/jco-transpile/dist/wasm-tools.js',
);
const { componentize } = await load('componentize-qjs/index.js');

const interfaces = readFileSync(new URL('../../component/wit/llm.wit', import.meta.url), 'utf8');
const ENGINE = 'wick:llm/engine@0.2.0';
const asyncNames = [...interfaces.matchAll(/^( *)([a-z-]+): async func/gm)].map(
  ([, , name]) => name,
);

/**
 * @param {string} wit
 * @param {boolean} isAsync
 * @returns {string} the WIT text with the package of llm.wit added
 */
function witOf(wit, isAsync) {
  const lines = interfaces.replace(/^world [\s\S]*/m, '');
  const types = isAsync ? lines : lines.replaceAll(': async func', ': func');
  return `${wit}\n${types.replace(/^package (.*);$/m, 'package $1 {')}}\n`;
}

/** @param {string} script @param {string} witPath @returns {Promise<Uint8Array>} */
async function componentOfScript(script, witPath) {
  const jsSource = readFileSync(script, 'utf8');
  return (await componentize({ witPath, jsPath: script, jsSource, optSize: true })).component;
}

/** @param {string} program @param {string} witPath @returns {Promise<Uint8Array>} */
async function componentOfPython(program, witPath) {
  const out = `${witPath}.wasm`;
  const input = ['-d', witPath, '-w', 'guest', 'componentize', basename(program, '.py')];
  const folders = ['-p', dirname(resolve(program)), '-o', out];
  execFileSync(at('.toolchain/component-python/bin/componentize-py'), ['-q', ...input, ...folders]);
  return readFileSync(out);
}

/** @param {string} source @returns {Promise<Uint8Array>} */
async function componentOfRust(source) {
  const target = 'wasm32-unknown-unknown';
  const folder = at('build/edge/guest-rust');
  const env = {
    ...process.env,
    CARGO_HOME: at('.toolchain/rust/cargo'),
    CARGO_TARGET_DIR: folder,
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER: 'wasm-ld-19',
    RUSTC: at('.toolchain/rust/rustc'),
  };
  const args = ['build', '--quiet', '--offline', '--locked', '--release', '--target', target];
  const manifest = ['--manifest-path', join(dirname(resolve(source)), 'Cargo.toml')];
  execFileSync('cargo', [...args, ...manifest], { env });
  return componentNew(readFileSync(join(folder, target, 'release/guest.wasm')), []);
}

/** @type {Record<string, {make: (guest: string, wit: string) => Promise<Uint8Array>, isAsync: boolean}>} */
const makers = {
  '.js': { make: componentOfScript, isAsync: false },
  '.py': { make: componentOfPython, isAsync: true },
  '.rs': { make: componentOfRust, isAsync: true },
};

/** @param {string} guest @param {string} wit @returns {Promise<Uint8Array>} */
async function componentOf(guest, wit) {
  const folder = mkdtempSync(join(tmpdir(), 'wick-guest-'));
  const { make, isAsync } = makers[extname(guest)];
  try {
    const witPath = join(folder, 'guest.wit');
    writeFileSync(witPath, witOf(readFileSync(wit, 'utf8'), isAsync));
    return await make(guest, witPath);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// ---- binary: sections of a component (Binary.md of the component model) ----

const SECTION = { component: 4, alias: 6, type: 7, import: 10 };
const HEADER_BYTES = 8;

/**
 * @param {Uint8Array} bytes
 * @param {number} at
 * @returns {[number, number]} a LEB128 number, and the offset of its end
 */
function readLength(bytes, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    value += (byte & 127) * 2 ** shift;
    if (byte < 128) return [value, at];
  }
}

/** @param {number} value @returns {number[]} */
const lengthOf = (value) => {
  return value < 128 ? [value] : [(value % 128) | 128, ...lengthOf(Math.floor(value / 128))];
};

/** @param {Uint8Array} bytes @returns {{id: number, from: number, body: number, to: number}[]} */
function sectionsOf(bytes) {
  const sections = [];
  for (let from = HEADER_BYTES; from < bytes.length; ) {
    const [length, body] = readLength(bytes, from + 1);
    sections.push({ id: bytes[from], from, body, to: body + length });
    from = body + length;
  }
  return sections;
}

/** @param {Uint8Array[]} parts @returns {Uint8Array} */
const joined = (parts) => new Uint8Array(Buffer.concat(parts));

/** @param {Uint8Array} component @param {Uint8Array[]} inner replaces its components, in the same order */
function filled(component, inner) {
  const parts = sectionsOf(component).map(({ id, from, to }) => {
    const bytes = id === SECTION.component ? inner.shift() : undefined;
    if (bytes === undefined) return component.subarray(from, to);
    return joined([new Uint8Array([id, ...lengthOf(bytes.length)]), bytes]);
  });
  return joined([component.subarray(0, HEADER_BYTES), ...parts]);
}

// ---- the composition ----

/**
 * @param {string} text of the imports
 * @returns {string} the text, in which the engine's functions are async
 */
function asyncTyped(text) {
  // `(export (;N;) "name" (func (type T)))` names the type of a function in the same instance type
  return text.replace(/\(type[^\n]*\n\s*\(instance\n[\s\S]*?\n {4}\)\n {2}\)/g, (type) => {
    if (!type.includes('"session"')) return type;
    const names = asyncNames.flatMap((name) => [
      name,
      `[method]model.${name}`,
      `[method]session.${name}`,
    ]);
    const wanted = [...type.matchAll(/\(export \(;\d+;\) "([^"]+)" \(func \(type (\d+)\)\)\)/g)]
      .filter(([, name]) => names.includes(name))
      .map(([, , index]) => index);
    return type.replace(/\(type \(;(\d+);\) \(func(?! async)/g, (whole, index) => {
      return wanted.includes(index) ? `${whole} async` : whole;
    });
  });
}

/** @param {string} text of imports @param {string[]} names that the guest exports @returns {string} */
function outerOf(text, names) {
  const imports = [...text.matchAll(/\(import "([^"]+)" \(instance \(;(\d+);\)/g)];
  const given = imports.map(([, name, index]) => {
    return `(with "${name}" (instance ${name === ENGINE ? '$llm' : index}))`;
  });
  const exported = names.flatMap((name, i) => {
    const sort = name.includes(':') ? 'instance' : 'func';
    return [
      `(alias export $composed "${name}" (${sort} $out${i}))`,
      `(export "${name}" (${sort} $out${i}))`,
    ];
  });
  return [
    // one instance replaces another, so the numbers of all others do not change
    text
      .replace(
        /\(import "wick:llm[^\n]*/,
        '(component $engine)\n  (instance $inside (instantiate $engine))',
      )
      .replace(/\)\s*$/, ''),
    `(alias export $inside "${ENGINE}" (instance $llm))`,
    '(component $guest)',
    `(instance $composed (instantiate $guest ${given.join(' ')}))`,
    ...exported,
    ')',
  ].join('\n');
}

/**
 * @param {{id: number}} section
 * @returns {boolean} whether it belongs to the imports at the start of a component
 */
const isImport = ({ id }) => id === SECTION.alias || id === SECTION.type || id === SECTION.import;

/**
 * @param {Uint8Array} component
 * @returns {Promise<[string, number]>} the imports as text, and the offset of their end
 */
async function importsOf(component) {
  const end = sectionsOf(component).find((section) => !isImport(section))?.from ?? HEADER_BYTES;
  return [asyncTyped(await print(component.subarray(0, end))), end];
}

/**
 * @param {Uint8Array} component
 * @returns {Promise<Uint8Array>} the component, in which the engine's functions are async, including
 * those in nested components
 */
async function typed(component) {
  const [imports, end] = await importsOf(component);
  if (!imports.includes(`(import "${ENGINE}"`)) return component;
  const own = joined([await parse(imports), component.subarray(end)]);
  const inner = sectionsOf(own).filter(({ id }) => id === SECTION.component);
  return filled(own, await Promise.all(inner.map(({ body, to }) => typed(own.subarray(body, to)))));
}

const [script, wit, engine, out] = process.argv.slice(2);
const guest = await componentOf(script, wit);
const exported = [
  ...(await componentWit(guest)).matchAll(
    /^ {2}export ([\w-]+): (?:async )?func|^ {2}export (\S+);$/gm,
  ),
];
const names = exported.map(([, func, instance]) => func ?? instance);
const outer = await parse(outerOf((await importsOf(guest))[0], names));
writeFileSync(out, filled(outer, [readFileSync(engine), await typed(guest)]));
