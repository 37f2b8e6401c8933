// The C library as linked by users, with only the installed files: symbols in the archives, pkg-config and
// CMake, natively with gcc and clang as C17 and C++20, and for WASI.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { before, describe, test } from 'node:test';
import { native, temporaryFolder, wick } from '../support/cli.mjs';
import { isFull } from '../support/level.mjs';
import {
  cmake,
  exampleFolder,
  install,
  missing,
  model,
  pkgConfig,
  questions,
  strangerSource,
  succeed,
  wantedChat,
} from '../support/library.mjs';
import { built, locate, root } from '../support/locate.mjs';
import { run, runWasi, wasiRuntimes } from '../support/process.mjs';

const skip = missing();
const shared = locate('shared');
const folder = temporaryFolder();
const tiny = join(folder, 'tiny.gguf');
const prompt = 'once upon a time';
const warnings = ['-O2', '-Wall', '-Wextra', '-Wpedantic', '-Werror'];
const archives = [
  'libwick.a',
  ...['wasi-simd128', 'wasi-relaxed'].map((name) => `wick/${name}/libwick.a`),
  ...['simd128-single', 'simd128-threads', 'relaxed-single', 'relaxed-threads'].map(
    (name) => `wick/emscripten-${name}/libwick.a`,
  ),
];

/** @param {import('../support/cli.mjs').Host} host @returns {Promise<string>} */
async function continued(host) {
  const args = ['run', tiny, '-p', prompt, '-n', '24'];
  const { code, stdout, stderr } = await wick(host, args, { folders: [folder] });
  assert.equal(code, 0, stderr);
  return stdout.toString().trimEnd();
}

before(async () => {
  if (!skip) await succeed(built('native/wick'), ['synth', 'tiny', 'q8_0', tiny]);
  copyFileSync(strangerSource, copy);
});

const header = readFileSync(join(root, 'include/wick.h'), 'utf8').replace(/ *\/\/.*$/gm, '');
const declared = [...header.matchAll(/^\w[^;={]*?\b(wick_\w+)\([^;]*?\);$/gms)]
  .map(([, name]) => name)
  .sort();
const copy = join(folder, 'stranger.cc');

describe('symbols in the archives', { skip }, () => {
  for (const archive of archives) {
    test(`${archive} exports the names in wick.h; all other symbols begin with wick__`, async () => {
      assert.ok(declared.length > 80, declared.join(' '));
      const file = join(await install(), 'lib', archive);
      const args = ['--extern-only', '--defined-only', '--just-symbol-name', '--quiet', file];
      const output = await succeed('llvm-nm-19', args);
      const names = output.split('\n').filter((line) => line && !line.endsWith(':'));
      const others = names.filter((name) => !declared.includes(name));
      assert.deepEqual(
        [...new Set(names.filter((name) => declared.includes(name)))].sort(),
        declared,
      );
      assert.ok(others.length > 500);
      assert.deepEqual(
        others.filter((name) => !name.startsWith('wick__')),
        [],
      );
    });
  }
});

test('libwick.a does not need the compiler runtime, which zig cc lacks', {
  skip,
}, async () => {
  const args = ['--undefined-only', '--just-symbol-name', join(await install(), 'lib/libwick.a')];
  const names = (await succeed('llvm-nm-19', args)).match(/^__cpu_\w+$/gm);
  assert.deepEqual(names, null);
});

describe('a user program built natively', { skip }, () => {
  /** @type {[compiler: string, standard: string, source: string][]} */
  const compilers = [
    ['gcc', 'c17', strangerSource],
    ['clang-19', 'c17', strangerSource],
    ['g++', 'c++20', copy],
    ['clang++-19', 'c++20', copy],
  ];

  for (const [compiler, standard, source] of compilers) {
    test(`${compiler} builds with ${standard} and pkg-config`, async () => {
      const program = join(folder, `stranger-${compiler}`);
      const flags = await pkgConfig('wick');
      await succeed(compiler, [`-std=${standard}`, ...warnings, source, ...flags, '-o', program]);
      const said = await succeed(program, [tiny, '2', '24', prompt]);
      assert.equal(said.trimEnd(), `threads 2:${await continued(native)}`);
    });
  }

  test('a dialog program keeps the conversation', async () => {
    const program = join(folder, 'dialog');
    const source = join(root, 'tests/library/dialog.c');
    const flags = await pkgConfig('wick');
    await succeed('gcc', ['-std=c17', ...warnings, source, ...flags, '-o', program]);
    assert.equal(await succeed(program, [model]), 'ok\n');
  });

  test('misuse and failed allocations do not change a dialog', {
    skip: process.platform !== 'linux' && 'needs glibc',
  }, async () => {
    const program = join(folder, 'dialog_hostile');
    const source = join(root, 'tests/library/dialog_hostile.c');
    const flags = await pkgConfig('wick');
    await succeed('gcc', ['-std=c17', ...warnings, source, ...flags, '-o', program]);
    const [, count] = /^(\d+) allocations\nok\n$/.exec(await succeed(program, [model])) ?? [];
    assert.ok(Number(count) > 20, count);
  });

  test('five lines of CMake are enough to build a program', async () => {
    const lines = [
      'cmake_minimum_required(VERSION 3.20)',
      'project(stranger C CXX)',
      'find_package(wick 0.1 REQUIRED)',
      'add_executable(stranger stranger.c)',
      'target_link_libraries(stranger wick::wick)',
    ];
    const source = join(folder, 'five');
    mkdirSync(source);
    copyFileSync(strangerSource, join(source, 'stranger.c'));
    writeFileSync(join(source, 'CMakeLists.txt'), lines.join('\n'));
    for (const compiler of ['gcc', 'clang-19']) {
      const build = await cmake(source, `five-${compiler}`, [`-DCMAKE_C_COMPILER=${compiler}`]);
      const said = await succeed(join(build, 'stranger'), [tiny, '1', '24', prompt]);
      assert.equal(said.trimEnd(), `threads 1:${await continued(native)}`);
    }
  });

  for (const [what, line, args, reason] of /** @type {[string, string, string[], RegExp][]} */ ([
    ['a later version', 'find_package(wick 0.2 REQUIRED)', [], /requested\s+version "0\.2"/],
    [
      'a different system',
      'find_package(wick REQUIRED)',
      ['-DCMAKE_SYSTEM_NAME=FreeBSD', '-DCMAKE_SYSTEM_PROCESSOR=sparc64'],
      /no archive for FreeBSD-sparc64/,
    ],
  ])) {
    test(`CMake does not find the package for ${what}`, async () => {
      const source = join(folder, what.replaceAll(' ', '-'));
      mkdirSync(source);
      const lines = ['cmake_minimum_required(VERSION 3.20)', 'project(none NONE)', line];
      writeFileSync(join(source, 'CMakeLists.txt'), lines.join('\n'));
      const prefix = `-DCMAKE_PREFIX_PATH=${await install()}`;
      const { code, stderr } = await run('cmake', [
        '-S',
        source,
        '-B',
        `${source}-build`,
        prefix,
        ...args,
      ]);
      assert.notEqual(code, 0);
      assert.match(stderr, reason);
    });
  }

  test('a split model is loaded from its files', { skip: shared.skip }, async () => {
    const parts = join(shared.path, 'vectors/reference/split/llama-small-F16-00001-of-00003.gguf');
    const program = join(folder, 'stranger-gcc');
    const { stdout } = await run(built('native/wick'), ['run', parts, '-p', prompt, '-n', '8']);
    assert.equal(
      (await succeed(program, [parts, '1', '8', prompt, 'file'])).trimEnd(),
      `threads 1:${stdout.toString().trimEnd()}`,
    );
    const gone = join(folder, 'gone.gguf');
    const { code, stderr } = await run(program, [gone, '1', '8', prompt, 'file']);
    assert.equal(code, 1);
    assert.equal(stderr, `WICK_E_IO: cannot open ${gone}\n`);
  });

  test('the example gives the same answers as the `wick` command', async () => {
    const build = await cmake(exampleFolder, 'example', []);
    assert.equal(await succeed(join(build, 'chat'), [model, ...questions]), await wantedChat());
  });
});

describe('the shared library', { skip: process.platform === 'linux' ? skip : 'not Linux' }, () => {
  const rust = locate('rustc');
  const zig = locate('zig');
  const dynamic = async (/** @type {string} */ name) =>
    succeed('llvm-nm-19', ['--dynamic', '--defined-only', join(await install(), 'lib', name)]);

  test('the shared library exports exactly the versioned names of wick.h', async () => {
    const names = (await dynamic('libwick.so'))
      .trim()
      .split('\n')
      .map((line) => line.split(' ').at(-1));
    const wanted = declared.map((name) => `${name}@@WICK_0.1`);
    assert.deepEqual(names.filter((name) => name?.startsWith('wick')).sort(), wanted);
    const reported = await succeed('llvm-readelf-19', [
      '-d',
      join(await install(), 'lib/libwick.so.0.1'),
    ]);
    assert.match(reported, /SONAME.*\[libwick\.so\.0\.1\]/);
    assert.doesNotMatch(reported, /TEXTREL/);
    const license = join(await install(), 'share/doc/wick/LICENSE');
    assert.deepEqual(readFileSync(license), readFileSync(join(root, 'LICENSE')));
  });

  test('programs in C and C++ link it; plain wick.pc remains static', async () => {
    const lib = join(await install(), 'lib');
    for (const [compiler, pc] of [
      ['gcc', 'wick-shared'],
      ['g++', 'wick-shared'],
      ['gcc', 'wick'],
    ]) {
      const program = join(folder, `linked-${compiler}-${pc}`);
      const source = compiler === 'g++' ? copy : strangerSource;
      await succeed(compiler, [...warnings, source, ...(await pkgConfig(pc)), '-o', program]);
      const needed = await succeed('llvm-readelf-19', ['-d', program]);
      assert.equal(/NEEDED.*libwick\.so\.0\.1/.test(needed), pc === 'wick-shared');
      const env = pc === 'wick' ? {} : { LD_LIBRARY_PATH: lib };
      const said = await succeed(program, [tiny, '2', '24', prompt], { env });
      assert.equal(said.trimEnd(), `threads 2:${await continued(native)}`);
    }
  });

  test('code with hidden visibility links it', async () => {
    const source = join(folder, 'hidden.c');
    // system headers are included first, because they do not specify visibility
    const system = ['stdio.h', 'stdlib.h', 'string.h'].map((name) => `#include <${name}>\n`);
    const hide = '#pragma GCC visibility push(hidden)\n';
    writeFileSync(source, `${system.join('')}${hide}#include "${strangerSource}"\n`);
    const program = join(folder, 'hidden');
    await succeed('gcc', [...warnings, source, ...(await pkgConfig('wick-shared')), '-o', program]);
    const env = { LD_LIBRARY_PATH: join(await install(), 'lib') };
    const said = await succeed(program, [tiny, '1', '8', prompt], { env });
    assert.match(said, /^threads 1:./);
  });

  test('zig cc links it, and the archive', { skip: zig.skip || !isFull }, async () => {
    const caches = ['ZIG_GLOBAL_CACHE_DIR', 'ZIG_LOCAL_CACHE_DIR'];
    const env = Object.fromEntries(caches.map((name) => [name, join(folder, name)]));
    for (const pc of ['wick', 'wick-shared']) {
      const program = join(folder, `zig-${pc}`);
      const flags = await pkgConfig(pc);
      const args = ['cc', '-std=c17', ...warnings, strangerSource, ...flags, '-o', program];
      await succeed(zig.path, args, { env });
      const run = { env: { LD_LIBRARY_PATH: join(await install(), 'lib') } };
      const said = await succeed(program, [tiny, '2', '24', prompt], run);
      assert.equal(said.trimEnd(), `threads 2:${await continued(native)}`);
    }
  });

  test('Python calls the library through ctypes', async () => {
    const args = [join(root, 'examples/bindings/wick.py'), join(await install(), 'lib/libwick.so')];
    const said = await succeed('python3', [...args, tiny, prompt, '24']);
    assert.equal(said.trimEnd(), await continued(native));
    const { code, stderr } = await run('python3', [...args, join(folder, 'gone.gguf'), prompt]);
    assert.equal(code, 1);
    assert.match(stderr, /WickError: cannot open .*gone\.gguf/);
  });

  test('Rust calls the library without a crate', { skip: rust.skip }, async () => {
    const [lib, program] = [join(await install(), 'lib'), join(folder, 'from-rust')];
    const source = join(root, 'examples/bindings/wick.rs');
    const args = ['--edition', '2021', '-D', 'warnings', '-A', 'dead_code', source];
    await succeed(rust.path, [...args, '-L', lib, '-l', 'wick', '-o', program]);
    const env = { LD_LIBRARY_PATH: lib };
    const said = await succeed(program, [tiny, prompt, '24'], { env });
    assert.equal(said.trimEnd(), await continued(native));
    const { code, stderr } = await run(program, [join(folder, 'gone.gguf'), prompt], { env });
    assert.equal(code, 1);
    assert.match(stderr, /cannot open .*gone\.gguf/);
  });
});

describe('a user program chats, embeds and handles errors', {
  skip: process.platform === 'linux' ? skip : 'not Linux',
}, () => {
  const rust = locate('rustc');
  const stranger = (/** @type {string} */ name) => join(root, 'tests/library', name);
  const lengthOf = (/** @type {number[]} */ vector) => Math.hypot(...vector);

  test('in Python', async () => {
    const library = join(await install(), 'lib/libwick.so');
    const args = [stranger('stranger.py'), library, model, '256', ...questions];
    const said = JSON.parse(await succeed('python3', args));
    assert.equal(
      said.answers.map((/** @type {string} */ one) => `${one}\n`).join(''),
      await wantedChat(),
    );
    assert.deepEqual(said.again, [said.answers[0], said.answers[0]]);
    assert.equal(said.closed, 'the engine is closed');
    assert.deepEqual(said.vectors[0], said.vectors[2]);
    assert.notDeepEqual(said.vectors[0], said.vectors[1]);
    for (const vector of said.vectors) assert.ok(Math.abs(lengthOf(vector) - 1) < 1e-5);
    assert.deepEqual(said.errors, [
      [
        'WICK_E_FORMAT',
        'conversation.chat',
        'the chat template rejects these messages: line 1: a value is undefined',
      ],
      [
        'WICK_E_FULL',
        'context_tokens',
        'the prompt is too long: it has 20002 tokens, which exceeds the available context size of 4096',
      ],
      ['WICK_E_ARG', '', 'there are no texts'],
      ['WICK_E_ARG', 'threads', '65 threads: the limit is 64'],
      ['WICK_E_IO', '', 'cannot open none.gguf'],
    ]);
  });

  test('in Rust', { skip: rust.skip }, async () => {
    const [lib, program] = [join(await install(), 'lib'), join(folder, 'stranger-rust')];
    const args = ['--edition', '2021', '-D', 'warnings', stranger('stranger.rs')];
    await succeed(rust.path, [...args, '-L', lib, '-l', 'wick', '-o', program]);
    const env = { LD_LIBRARY_PATH: lib };
    const said = await succeed(program, [model, '256', questions[0]], { env });
    const [answer, again, products, ...errors] = said.trimEnd().split('\n');
    assert.ok((await wantedChat()).startsWith(`${answer}\n`));
    assert.equal(again, `true ${answer}`);
    assert.match(products, /^1\.0000 0\.\d{4} true$/);
    assert.deepEqual(
      errors.map((line) => line.split(':')[0]),
      [
        'WICK_E_FORMAT conversation.chat',
        'WICK_E_FULL context_tokens',
        'WICK_E_ARG ',
        'WICK_E_ARG threads',
        'WICK_E_IO ',
      ],
    );
  });
});

/** The WASI SDK in $WASI_SDK_PATH, or the equivalent layout that tools/setup.sh creates from clang and wasi-libc. */
const wasiSdk = process.env.WASI_SDK_PATH ?? resolve(root, '.toolchain/wasi-sdk');

describe('a user program built for WASI', { skip }, () => {
  for (const simd of isFull ? ['simd128', 'relaxed'] : ['simd128']) {
    const runtimes = Object.keys(wasiRuntimes).filter(
      (name) =>
        !wasiRuntimes[name].find().skip &&
        !wasiRuntimes[name].isExtra &&
        (simd === 'simd128' || wasiRuntimes[name].relaxed),
    );
    test(`with a WASI SDK, ${simd}: ${runtimes.join(', ')}`, async (t) => {
      if (!process.env.WASI_SDK_PATH)
        t.diagnostic('the SDK layout consists of clang-19 and wasi-libc');
      const sdk = wasiSdk;
      const build = await cmake(exampleFolder, `example-wasi-${simd}`, [
        '-DCMAKE_SYSTEM_NAME=WASI',
        '-DCMAKE_SYSTEM_PROCESSOR=wasm32',
        `-DCMAKE_MODULE_PATH=${sdk}/share/cmake`,
        `-DCMAKE_C_COMPILER=${sdk}/bin/clang`,
        `-DCMAKE_C_COMPILER_TARGET=wasm32-wasip1`,
        `-DCMAKE_SYSROOT=${sdk}/share/wasi-sysroot`,
        `-DWICK_RELAXED=${simd === 'relaxed' ? 'ON' : 'OFF'}`,
      ]);
      const wanted = await wantedChat();
      const options = { folders: { '/models': dirname(model) } };
      const args = [`/models/${model.split('/').at(-1)}`, ...questions];
      for (const runtime of runtimes) {
        const { stdout, stderr } = await runWasi(runtime, join(build, 'chat'), args, options);
        assert.equal(stdout.toString(), wanted, `${runtime}: ${stderr}`);
      }
    });

    test(`with pkg-config, ${simd}: the same tokens as the wick command`, async () => {
      const module = join(folder, `stranger-${simd}.wasm`);
      const sdk = [`--target=wasm32-wasi`, `--sysroot=${resolve(root, '.toolchain/wasi/usr')}`];
      const flags = await pkgConfig(`wick-wasi-${simd}`);
      const args = ['-std=c17', ...warnings, strangerSource, ...flags, '-o', module];
      await succeed('clang-19', [...sdk, ...args]);
      const runtime = simd === 'relaxed' ? 'node24' : 'node';
      const { stdout, stderr } = await runWasi(
        runtime,
        module,
        ['/tiny/tiny.gguf', '1', '24', prompt],
        {
          folders: { '/tiny': folder },
        },
      );
      const program = `wasi/${simd === 'relaxed' ? 'wick-relaxed' : 'wick'}.wasm`;
      const wanted = await continued({ name: program, program, runtime, skip: false });
      assert.equal(stdout.toString().trimEnd(), `threads 1:${wanted}`, stderr);
    });
  }
});
