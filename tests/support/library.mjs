// Installs the C library with `make install` in a separate folder, and builds programs with it as
// users do.

import assert from 'node:assert/strict';
import { join, resolve } from 'node:path';
import { temporaryFolder } from './cli.mjs';
import { built, ci, root } from './locate.mjs';
import { run } from './process.mjs';

/** The result of `make install`, once per process. @type {Promise<string> | undefined} */
let installing;
const folder = temporaryFolder();

/** @param {string} program @param {string[]} args @param {Parameters<typeof run>[2]} [options] */
export async function succeed(program, args, options) {
  const { code, stdout, stderr } = await run(program, args, options);
  assert.equal(code, 0, `${program} ${args.join(' ')}\n${stdout}\n${stderr}`);
  return stdout.toString();
}

/** @returns {Promise<string>} its installation prefix */
export function install() {
  const targets = ['--no-print-directory', 'install', 'PREFIX=/usr', `DESTDIR=${folder}/stage`];
  // a `make` that started the tests must not affect this one
  const env = { MAKEFLAGS: '', MAKELEVEL: undefined };
  installing ??= succeed('make', targets, { env }).then(() => join(folder, 'stage/usr'));
  return installing;
}

/** @param {string} name @returns {Promise<string[]>} pkg-config's output for wick.pc, or wick-NAME.pc */
export async function pkgConfig(name) {
  const path = join(await install(), 'lib/pkgconfig');
  const flags = await succeed('pkg-config', ['--cflags', '--libs', name], {
    env: { PKG_CONFIG_LIBDIR: path },
  });
  return flags.trim().split(/\s+/);
}

/**
 * Configures and builds a folder with a CMakeLists.txt.
 * @param {string} source
 * @param {string} target a folder in the temporary folder
 * @param {string[]} args
 * @param {string} [wrapper] emcmake, which sets the compilers
 * @returns {Promise<string>} the build's folder
 */
export async function cmake(source, target, args, wrapper) {
  const build = join(folder, target);
  const configure = ['-S', source, '-B', build, `-DCMAKE_PREFIX_PATH=${await install()}`];
  // Emscripten's search paths ignore the prefix
  configure.push(
    `-Dwick_DIR=${await install()}/lib/cmake/wick`,
    '-DCMAKE_BUILD_TYPE=Release',
    ...args,
  );
  if (wrapper) await succeed(wrapper, ['cmake', ...configure]);
  else await succeed('cmake', configure);
  await succeed('cmake', ['--build', build, '-j2']);
  return build;
}

/** Returns the path of an Emscripten program, as installed by tools/setup.sh library. @param {string} tool */
export const emscripten = (tool) =>
  process.env.EMSDK
    ? join(process.env.EMSDK, 'upstream/emscripten', tool)
    : resolve(root, '.toolchain/emscripten/usr/share/emscripten', tool);

/** @returns {string | false} the reason why the output of `make library` cannot be tested here */
export function missing() {
  try {
    built('library/lib/libwick.a');
    return false;
  } catch (error) {
    if (ci) throw error;
    return 'run make library';
  }
}

export const exampleFolder = resolve(root, 'examples/c');
export const strangerSource = resolve(root, 'tests/library/stranger.c');
export const model = resolve(root, 'examples/models/wick-2.6m-q8_0.gguf');
export const questions = ['Tell me a story about a fox.', 'And then?'];

/** @returns {Promise<string>} the `wick` command's answers to `questions` in one conversation */
export const wantedChat = () =>
  succeed(built('native/wick'), ['chat', model, '-n', '256'], {
    input: `${questions.join('\n')}\n`,
  });
