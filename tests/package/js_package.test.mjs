// The files of the npm package: its contents and types, requirements of bundlers, other runtimes, the examples, code in the
// documentation, and the command.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Script } from 'node:vm';
import { VERSION } from '../../js/base/version.js';
import { builtSizes, PACKAGE, sizeFault } from '../../tools/build/sizes.mjs';
import { serve } from '../../tools/serve.mjs';
import { isFull } from '../support/level.mjs';
import { documentsIn, locate, locateRelaxedNode, root } from '../support/locate.mjs';
import {
  createEngine,
  dist,
  modelFolder,
  modelPath,
  openEngine,
  temporaryFolder,
} from '../support/package.mjs';
import { run } from '../support/process.mjs';

const folder = temporaryFolder();
const read = (/** @type {string} */ name) => readFileSync(join(dist, name), 'utf8');
const variants = ['simd128-single', 'simd128-threads', 'relaxed-single', 'relaxed-threads'];
/** Each variant has four modules; for models over 4 GiB, one module serves any number of threads. */
const builds = [
  ...variants.flatMap((variant) => [
    variant,
    `${variant}-grammar`,
    `${variant}-extras`,
    `${variant}-media`,
  ]),
  ...['simd128-wide', 'relaxed-wide'],
];

/** @param {string} program @param {string[]} args @param {Parameters<typeof run>[2]} [options] */
async function text(program, args, options) {
  const { code, stdout, stderr } = await run(program, args, options);
  assert.equal(code, 0, stderr);
  return stdout.toString();
}

describe('files', () => {
  test('the package contains what its exports refer to, and nothing else', async () => {
    const npm = JSON.parse(await text('npm', ['pack', '--dry-run', '--json', '--offline']));
    const files = npm[0].files.map((/** @type {any} */ { path }) => path);
    for (const name of [
      ...['index.js', 'index.d.ts', 'worker.js', 'openai.js'],
      ...['chat.js', 'chat.d.ts', 'edge.js', 'edge.d.ts'],
      ...['ai-sdk.js', 'ai-sdk.d.ts', 'prompt-api.js', 'prompt-api.d.ts'],
      ...['pipeline.js', 'pipeline.d.ts', 'models.js', 'models.d.ts'],
      ...['openai.d.ts', 'node.js', 'node.d.ts', 'cli.js'],
      ...['isolate.js', 'isolate.d.ts', 'isolate-worker.js'],
      ...builds.map((build) => `wasm/wick-${build}.wasm`),
      ...['wasi/wick-full.wasm', 'wasi/wick-full-relaxed.wasm'],
    ]) {
      assert.ok(files.includes(`dist/${name}`), `dist/${name} is missing`);
    }
    const strange = files.filter(
      (/** @type {string} */ path) =>
        !/^(?:(?:dist|docs|examples)\/|[A-Z]+(?:\.md)?$|package\.json$)/.test(path),
    );
    assert.deepEqual(strange, []);
    const models = files.filter((/** @type {string} */ path) => path.endsWith('.gguf'));
    assert.deepEqual(models, []);
    assert.equal(sizeFault(PACKAGE, npm[0].size), undefined);
  });

  test('the demo model is a separate package', async () => {
    const pack = ['pack', '--dry-run', '--json', '--offline', '-w', 'wick-llm-demo-model'];
    const [{ files }] = JSON.parse(await text('npm', pack));
    assert.deepEqual(files.map((/** @type {any} */ { path }) => path).sort(), [
      ...['MODEL_CARD.md', 'README.md', 'index.d.ts', 'index.js', 'package.json'],
      ...['wick-4.2m-q4_0.gguf', 'wick-4.2m-q8_0.gguf', 'wick-4.2m-words.txt'],
      ...['words.d.ts', 'words.js'],
    ]);
    const { modelUrl, smallModelUrl } = await import('wick-llm-demo-model');
    for (const url of [modelUrl, smallModelUrl]) assert.ok(existsSync(url), url.href);
    const bin = join(root, 'node_modules/.bin');
    assert.match(await text(join(bin, 'publint'), ['--strict', modelFolder]), /All good/);
    if (isFull) await text(join(bin, 'attw'), ['--pack', modelFolder, '--profile', 'esm-only']);
  });

  test('integrity.json contains the hash of each file that a page loads', () => {
    const reported = JSON.parse(read('integrity.json'));
    const loaded = readdirSync(dist).filter((name) => name.endsWith('.js') && name !== 'cli.js');
    const modules = builds.map((build) => `wasm/wick-${build}.wasm`);
    assert.deepEqual(Object.keys(reported).sort(), [...loaded, ...modules].sort());
    for (const [name, integrity] of Object.entries(reported)) {
      const hash = createHash('sha384').update(readFileSync(join(dist, name)));
      assert.equal(integrity, `sha384-${hash.digest('base64')}`, name);
    }
  });

  test('publint and arethetypeswrong report no problems', { skip: !isFull }, async () => {
    const bin = join(root, 'node_modules/.bin');
    assert.match(await text(join(bin, 'publint'), ['--strict', root]), /All good/);
    // files that are not modules (worker, wasm) have no types; older resolution modes ignore `exports`
    const untyped = [
      '--exclude-entrypoints',
      ...['worker', 'isolate-worker', 'integrity.json'],
      ...builds.map((one) => `wasm/wick-${one}.wasm`),
    ];
    const all = ['--pack', root, '--profile', 'esm-only', ...untyped];
    await text(join(bin, 'attw'), all);
  });

  test('names of shared engines contain the package version', () => {
    assert.equal(VERSION, JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version);
  });

  test('every export in package.json resolves to a file', async () => {
    const further = [
      ...['edge', 'chat', 'ai-sdk', 'prompt-api', 'pipeline', 'models', 'node'],
      ...['isolate', 'isolate-worker'],
    ];
    const modules = ['worker', 'openai', ...further, 'package.json'].map(
      (name) => `wick-llm/${name}`,
    );
    const names = ['wick-llm', ...modules].concat(
      builds.map((build) => `wick-llm/wasm/wick-${build}.wasm`),
    );
    const script = `for (const name of ${JSON.stringify(names)})
      if (!existsSync(new URL(import.meta.resolve(name)))) throw new Error(name);`;
    const file = join(root, 'build/resolve_names.mjs');
    writeFileSync(file, `import { existsSync } from 'node:fs';\n${script}\n`);
    await text(process.execPath, [file]);
    rmSync(file);
  });

  test('no JavaScript file is larger than docs/sizes.md allows', () => {
    const sizes = [...builtSizes()].filter(([name]) => name.startsWith('dist/'));
    const files = readdirSync(dist).filter((name) => name.endsWith('.js'));
    assert.equal(sizes.length, files.length);
    for (const [name, bytes] of sizes) assert.equal(sizeFault(name, bytes), undefined);
  });

  test('bundlers find the worker and the builds by URL literals', () => {
    const source = read('index.js');
    // once, and not inside `new Worker(...)`, which would make bundlers bundle it as well
    const worker = [...source.matchAll(/(.{10})new URL\("\.\/worker\.js",\s*import\.meta\.url\)/g)];
    assert.equal(worker.length, 1);
    assert.doesNotMatch(worker[0][1], /Worker\(/);
    const joined = source.replaceAll('\n', '');
    for (const build of builds) {
      const literal = `new URL("./wasm/wick-${build}.wasm",import.meta.url)`;
      assert.ok(joined.includes(literal), build);
    }
    const later = [...source.matchAll(/\bimport\s*\(([^)]*)\)/g)].map(([, name]) => name);
    assert.deepEqual(
      new Set(later),
      new Set(['chat', 'models', 'sources', 'tabs', 'tasks'].map((name) => `"./${name}.js"`)),
    );
    assert.doesNotMatch(source, /\brequire\(|from\s*"/);
  });

  test('the worker is valid as a classic script and as a module', async (t) => {
    const source = read('worker.js');
    assert.doesNotMatch(source, /import\.meta|\bimport\s*\(|\bexport\b\s*[{*]/);
    new Script(source);
    for (const name of ['worker.cjs', 'worker.mjs']) {
      copyFileSync(join(dist, 'worker.js'), join(folder, name));
      const worker = pathToFileURL(join(folder, name));
      const engine = await openEngine(t, { file: modelPath, worker, threads: 2 });
      assert.ok((await engine.countTokens('Hello')) > 0, name);
    }
  });
});

describe('the edge bundle', () => {
  test('does not request other files or use eval', () => {
    const source = read('edge.js');
    assert.doesNotMatch(source, /import\.meta|\bimport\s*\(|\brequire\(|from\s*"/);
    assert.doesNotMatch(source, /new Worker|\beval\b|new Function|WebAssembly\.compile/);
  });
});

describe('types', () => {
  for (const resolution of ['nodenext', 'no_dom', 'bundler', 'ai_sdk', 'prompt_api', 'openai']) {
    test(`type-check for users with ${resolution}`, async () => {
      const tsc = join(root, 'node_modules/.bin/tsc');
      const project = join(root, `tests/package/types/tsconfig.${resolution}.json`);
      const { code, stdout } = await run(tsc, ['--project', project]);
      assert.equal(code, 0, stdout.toString());
    });
  }
});

describe('types without esnext.disposable', () => {
  const newest = { path: join(root, 'node_modules/typescript'), skip: false };
  const oldest = locate('typescript');
  for (const [name, { path, skip }, lib] of /** @type {[string, typeof newest, string][]} */ ([
    ['TypeScript 5.7', oldest, 'es2022'],
    ['TypeScript 5.7', oldest, 'es2022,dom'],
    ['TypeScript 5.7', oldest, 'es2023,esnext.disposable,dom'],
    ['this TypeScript', newest, 'es2022'],
    ['this TypeScript', newest, 'es2022,dom'],
  ])) {
    test(`${name}, lib ${lib}`, { skip: skip || (lib !== 'es2022' && !isFull) }, async () => {
      const how = '--noEmit --strict --skipLibCheck false --target es2022 --types node';
      const modules = '--module nodenext --moduleResolution nodenext';
      const use = join(root, 'tests/package/types/use_old.mts');
      const own = path === newest.path ? ['--ignoreConfig'] : []; // older versions ignore it anyway
      const args = [...`${how} ${modules} --lib ${lib}`.split(' '), ...own, use];
      const folder = { cwd: join(root, 'tests/package/types') };
      const { code, stdout } = await run(
        process.execPath,
        [join(path, 'bin/tsc'), ...args],
        folder,
      );
      assert.equal(code, 0, stdout.toString());
    });
  }
});

describe('a server bundle that moved the package’s files', () => {
  for (const address of ['/_next/static/chunks/index.js', 'https://site.test/index.js']) {
    test(`is reported: ${address}`, async () => {
      const code = read('index.js').replaceAll('import.meta.url', JSON.stringify(address));
      const path = join(temporaryFolder(), 'index.mjs');
      writeFileSync(path, code.replaceAll(/from"\.\//g, `from"${pathToFileURL(dist).href}/`));
      const { createEngine: create } = await import(pathToFileURL(path).href);
      const refused = { name: 'WickError', code: 'UNSUPPORTED', message: /serverExternalPackages/ };
      await assert.rejects(create({ file: modelPath, threads: 1 }), refused);
    });
  }
});

describe('other runtimes', () => {
  const question = join(root, 'examples/node/chat.mjs');
  const relaxed = locateRelaxedNode();
  const deno = locate('deno');

  const bun = locate('bun');

  test('a Bun executable, in a folder without the package', { skip: bun.skip }, async () => {
    const [built, away] = [temporaryFolder(), temporaryFolder()];
    const documented = readFileSync(join(root, 'docs/bundlers.md'), 'utf8');
    const [, source] = /```ts\n(\/\/ compiled\.ts\n.*?)```/s.exec(documented) ?? [];
    writeFileSync(join(built, 'compiled.ts'), source ?? '');
    mkdirSync(join(built, 'node_modules'));
    symlinkSync(root, join(built, 'node_modules/wick-llm'));
    const app = join(away, 'app');
    await text(bun.path, ['build', '--compile', 'compiled.ts', '--outfile', app], { cwd: built });
    rmSync(join(built, 'node_modules'), { recursive: true });
    assert.match(await text(app, [modelPath], { cwd: away }), /^(red|blue)\n$/);
  });

  test('examples/node, in this Node', async () => {
    assert.match(await text(process.execPath, [question]), /Wick/);
    assert.ok(
      (await text(process.execPath, [question, 'Tell me a story.', modelPath])).length > 20,
    );
  });

  test('examples/node, in a Node with relaxed SIMD', { skip: relaxed.skip }, async () => {
    assert.match(await text(relaxed.path, [question]), /Wick/);
  });

  test('the relaxed build is used where supported, with one thread and with a helper', {
    skip: relaxed.skip,
  }, async () => {
    const script = `
      const { createEngine } = await import(${JSON.stringify(pathToFileURL(join(dist, 'index.js')).href)});
      const texts = [];
      for (const threads of [1, 2]) {
        const engine = await createEngine({ file: ${JSON.stringify(modelPath)}, threads });
        while ((await engine.info()).threads < threads);
        texts.push((await engine.info()).kernels.replace(/-.*/, ''));
        texts.push(await engine.generate('Once', { temperature: 0, maxTokens: 30, ignoreEnd: true }).text());
        await engine.close();
      }
      console.log(JSON.stringify(texts));`;
    const [one, alone, two, helped] = JSON.parse(
      await text(relaxed.path, ['--input-type=module', '-e', script]),
    );
    assert.deepEqual([one, two], ['relaxed', 'relaxed']);
    assert.equal(helped, alone);
  });

  test('examples/deno: runs with helpers and exits', { skip: deno.skip }, async () => {
    const args = ['run', '--quiet', '-A', join(root, 'examples/deno/chat.mjs')];
    assert.match(await text(deno.path, args), /Wick/);
  });
});

describe('documentation', () => {
  /** The start of every page of the guide. */
  const prelude = `import { createEngine, WickError } from 'wick-llm';
    import { modelUrl } from 'wick-llm-demo-model';
    const engine = await createEngine({ url: modelUrl });`;

  for (const name of ['docs/js-api.md', ...documentsIn('docs/guide')]) {
    const source = readFileSync(join(root, name), 'utf8');
    /** Code blocks, with the output shown on the page. */
    const blocks = [
      ...source.matchAll(/^```js\n(.*?)^```\n(?:\nIt prints:\n\n```text\n(.*?)^```$)?/gms),
    ];
    if (blocks.length === 0) continue;
    test(`${name}: the code blocks run as one program and print the output on the page`, async () => {
      const start = /\bconst engine = /.test(blocks[0][1]) ? '' : prelude;
      const file = join(root, `build/blocks_of_${name.replaceAll('/', '_')}.mjs`);
      const mark = '----- end of a block -----';
      const code = blocks.flatMap(([, block]) => [block, `console.log('${mark}');`]);
      writeFileSync(file, [start, ...code, 'await engine.close();'].join('\n'));
      const printed = await text(process.execPath, [file]);
      rmSync(file);
      const outputs = printed.split(`${mark}\n`);
      for (const [index, [, , shown]] of blocks.entries()) {
        if (shown !== undefined) assert.equal(outputs[index], shown);
      }
    });
  }

  test('docs/js-api.md lists every error code in js/', async () => {
    const source = readFileSync(join(root, 'docs/js-api.md'), 'utf8');
    const all = readdirSync(join(root, 'js'), { recursive: true, encoding: 'utf8' });
    const js = all.filter((name) => name.endsWith('.js'));
    const codes = js.flatMap((name) => {
      const text = readFileSync(join(root, 'js', name), 'utf8');
      return [...text.matchAll(/new WickError\(\s*'([A-Z_]+)'/g)].map(([, code]) => code);
    });
    assert.ok(codes.length > 20, `${codes.length} codes were found`);
    for (const code of new Set(codes)) assert.ok(source.includes(`\`${code}\``), code);
  });
});

describe('the command', () => {
  const cli = join(root, 'js/cli.js');
  const wick = (
    /** @type {string[]} */ args,
    /** @type {Parameters<typeof run>[2]} */ options = {},
  ) => run(process.execPath, [cli, ...args], { cwd: modelFolder, ...options });
  const model = 'wick-2.6m-q8_0.gguf';
  const prompt = '<|im_start|>user\nWhat is Wick?<|im_end|>\n<|im_start|>assistant\n';

  test('run: the same text, stats and logprobs with one thread and with two', async () => {
    const args = ['run', model, '-p', prompt, '-n', '30', '--logprobs', '2', '--stats'];
    const results = [];
    for (const threads of ['1', '2']) results.push(await wick([...args, '--threads', threads]));
    for (const { code, stderr } of results) assert.equal(code, 0, stderr);
    assert.equal(results[1].stdout.toString(), results[0].stdout.toString());
    const [one, two] = results.map(({ stderr }) =>
      stderr
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    );
    const [statsOne, statsTwo] = [one.pop(), two.pop()];
    assert.ok(one.length > 10);
    assert.deepEqual(two, one);
    assert.equal(statsTwo.threads, 2);
    assert.equal(statsTwo.completion_tokens, statsOne.completion_tokens);
    const same = Object.keys(statsOne).filter((name) => name !== 'decode_allocations');
    assert.deepEqual(Object.keys(statsTwo), same);
  });

  test('run with threads: prompts, pipes, settings', async () => {
    const file = join(folder, 'prompt.txt');
    writeFileSync(file, prompt);
    const fromFile = await wick(['run', model, '-f', file, '-n', '9', '--threads', '2']);
    const fromInput = await wick(['run', model, '-n', '9', '--threads=2'], { input: prompt });
    assert.equal(fromFile.stdout.toString(), fromInput.stdout.toString());
    const bytes = readFileSync(modelPath);
    const piped = await wick(['run', '-', '-p', prompt, '-n', '9', '--threads', '2'], {
      input: bytes,
    });
    assert.equal(piped.stdout.toString(), fromFile.stdout.toString());
    const sampled = ['run', model, '-p', 'Once', '-n', '20', '--temp', '1', '--seed', '5'];
    const [two, one] = [await wick([...sampled, '--threads', '2']), await wick(sampled)];
    assert.equal(two.stdout.toString(), one.stdout.toString());
    const mixed = ['run', model, '-p', prompt, '-n', '20', '--kv', 'q4:f32'];
    const [kvTwo, kvOne] = [await wick([...mixed, '--threads', '2']), await wick(mixed)];
    assert.ok(kvOne.stdout.length > 20, kvOne.stderr);
    assert.equal(kvTwo.stdout.toString(), kvOne.stdout.toString());
  });

  /** The arguments of a command in addition to its model. @type {Record<string, string[]>} */
  const wanted = {
    run: ['-p', 'a'],
    logits: ['--tokens', '1', '--out', '-'],
    tokenize: ['-p', 'a'],
    detokenize: ['--tokens', '1'],
    inspect: [],
    bench: [],
    perplexity: ['-f', '-'],
  };
  for (const [words, more] of Object.entries(wanted)) {
    test(`${words}: distinguishes options with and without a value`, async () => {
      const command = words.split(' ');
      const help = await wick([...command, 'none.gguf', '--help']);
      // in the help, at least two spaces follow an option without a value, and one space precedes a value's name
      const flags = [...help.stdout.toString().matchAll(/^ {2}(-\S+) {2,}/gm)];
      for (const [, flag] of flags.filter((_, index) => isFull || index % 4 === 0)) {
        const { code, stderr } = await wick([...command, flag, 'none.gguf', ...more], {
          input: 'a text',
        });
        assert.equal(code, 3, `${words} ${flag}: ${stderr}`);
        assert.ok(stderr.includes(join(modelFolder, 'none.gguf')), `${flag}: ${stderr}`);
      }
    });
  }

  test('output files are written relative to the current folder', async () => {
    writeFileSync(join(folder, 'text.txt'), 'Once there was a fox that lived in a wood.');
    const args = ['perplexity', modelPath, '-f', 'text.txt', '--save', 'saved.f32', '--ctx', '64'];
    const { code, stderr } = await wick(args, { cwd: folder });
    assert.equal(code, 0, stderr);
    assert.ok(readFileSync(join(folder, 'saved.f32')).length > 0);
  });

  test('run with threads: also without speculation', async () => {
    const args = ['run', '--no-speculation', model, '-p', prompt, '-n', '20'];
    const [one, two] = [await wick(args), await wick([...args, '--threads', '2'])];
    assert.ok(one.stdout.length > 20, one.stderr);
    assert.equal(two.stdout.toString(), one.stdout.toString());
  });

  test('run: constrained, with files relative to the current folder, with and without threads', async () => {
    const schema = { type: 'object', properties: { a: { enum: [7] } }, required: ['a'] };
    writeFileSync(join(folder, 'schema.json'), JSON.stringify(schema));
    writeFileSync(join(folder, 'rules.gbnf'), 'root ::= "yes" | "no"');
    const args = ['run', modelPath, '-p', 'Once', '-n', '20'];
    for (const [given, expected] of /** @type {[string[], RegExp][]} */ ([
      [['--json-schema', 'schema.json'], /^\{"a": ?7\}$/],
      [['--grammar', 'rules.gbnf'], /^(yes|no)$/],
      [['--regex', '[0-9]{4}'], /^\d{4}$/],
      [['--choice', 'red', '--choice', 'blue'], /^(red|blue)$/],
    ])) {
      for (const threads of ['1', '2']) {
        const found = await wick([...args, ...given, '--threads', threads], { cwd: folder });
        assert.match(found.stdout.toString(), expected, `${given} ${threads}: ${found.stderr}`);
      }
    }
  });

  test('constrain and template: files relative to the current folder', async () => {
    writeFileSync(join(folder, 'number.json'), '{"type": "integer"}');
    writeFileSync(join(folder, 'texts.json'), '["1", "x"]');
    writeFileSync(join(folder, 'chat.jinja'), '{{ messages[0].content }}!');
    const given = ['constrain', '--json-schema', 'number.json', '--check', 'texts.json'];
    const checked = await wick(given, { cwd: folder });
    assert.equal(checked.stdout.toString(), '[true,false]\n', checked.stderr);
    const chat = JSON.stringify({ messages: [{ role: 'user', content: 'hi' }] });
    const written = await wick(['template', modelPath, '-p', chat, '--template', 'chat.jinja'], {
      cwd: folder,
    });
    assert.equal(written.stdout.toString(), 'hi!', written.stderr);
  });

  test('exit codes are as documented, with and without threads', async () => {
    for (const threads of ['1', '2']) {
      const more = ['--threads', threads];
      for (const [code, args] of /** @type {[number, string[]][]} */ ([
        [2, ['run', ...more, '-p', 'x']],
        [2, ['run', model, ...more, '--temp', 'q']],
        [2, ['run', model, ...more, '--no-such-option']],
        [2, ['run', model, ...more, '-p', 'x', '--ctx', '999999']],
        [2, ['run', model, ...more, '-p', 'x', '--regex', '(a)\\1']],
        [3, ['run', 'none.gguf', ...more, '-p', 'x']],
        [3, ['run', '../README.md', ...more, '-p', 'x']],
      ])) {
        const found = await wick(args);
        assert.equal(found.code, code, `${args}: ${found.stderr}`);
        assert.match(found.stderr, /^wick: [^\n]+\n$/);
        assert.equal(found.stdout.length, 0);
      }
    }
  });

  test('the other commands, with relative paths', async () => {
    const ids = await text(process.execPath, [cli, 'tokenize', model, '-p', 'Hello there'], {
      cwd: modelFolder,
    });
    assert.match(ids, /^\d+( \d+)*\n$/);
    const back = await wick(['detokenize', `../models/${model}`, '--tokens', ids.trim()]);
    assert.equal(back.stdout.toString().trim(), 'Hello there');
    const { stdout } = await wick(['inspect', model, '--json']);
    assert.ok(JSON.parse(stdout.toString()).tensors.length > 0);
    const made = join(folder, 'tiny.gguf');
    assert.equal((await wick(['synth', 'tiny', 'q8_0', made])).code, 0);
    assert.ok(existsSync(made));
    for (const words of [['help'], ['help', 'run'], ['--version'], ['run', '--help']])
      assert.equal((await wick(words)).code, 0, `${words}`);
    assert.equal((await wick([])).code, 2);
  });
});

describe('the demo server', () => {
  /** @param {string} url @param {Record<string, string>} [headers] */
  const get = (url, headers = {}) => fetch(url, { headers });

  test('serves files with types and isolation headers, and nothing outside its folder', async (t) => {
    mkdirSync(join(folder, 'site/sub'), { recursive: true });
    writeFileSync(join(folder, 'site/index.html'), '<p>hello');
    writeFileSync(join(folder, 'site/sub/a.wasm'), '0123456789');
    writeFileSync(join(folder, 'secret.txt'), 'secret');
    const { url, close } = await serve({ root: join(folder, 'site') });
    t.after(close);
    const page = await get(url);
    assert.equal(await page.text(), '<p>hello');
    assert.match(page.headers.get('Content-Type') ?? '', /^text\/html/);
    assert.equal(page.headers.get('Cross-Origin-Opener-Policy'), 'same-origin');
    assert.equal(page.headers.get('Cross-Origin-Embedder-Policy'), 'require-corp');
    assert.equal((await get(`${url}sub/a.wasm`)).headers.get('Content-Type'), 'application/wasm');
    for (const path of [
      'none',
      'sub',
      '..%2fsecret.txt',
      '%2e%2e/secret.txt',
      'sub/..%2f..%2fsecret.txt',
    ]) {
      assert.equal((await get(url + path)).status, 404, path);
    }
    const plain = await serve({ root: join(folder, 'site'), isolated: false, cors: true });
    t.after(plain.close);
    const { headers } = await get(plain.url);
    assert.equal(headers.get('Cross-Origin-Opener-Policy'), null);
    assert.equal(headers.get('Access-Control-Allow-Origin'), '*');
  });

  test('ranges', async (t) => {
    mkdirSync(join(folder, 'site/sub'), { recursive: true });
    writeFileSync(join(folder, 'site/sub/a.wasm'), '0123456789');
    const { url, close } = await serve({ root: join(folder, 'site') });
    t.after(close);
    const file = `${url}sub/a.wasm`;
    const tag = (await get(file)).headers.get('ETag') ?? '';
    for (const [range, status, body, more] of /** @type {[string, number, string, any][]} */ ([
      ['bytes=3-', 206, '3456789', {}],
      ['bytes=3-4', 206, '34', {}],
      ['bytes=-2', 206, '89', {}],
      ['bytes=3-', 206, '3456789', { 'If-Range': tag }],
      ['bytes=3-', 200, '0123456789', { 'If-Range': '"other"' }],
      ['bytes=10-', 416, '', {}],
      ['nonsense', 200, '0123456789', {}],
    ])) {
      const response = await get(file, { Range: range, ...more });
      assert.equal(response.status, status, range);
      assert.equal(await response.text(), body, range);
    }
    const deaf = await serve({ root: join(folder, 'site'), ranges: false });
    t.after(deaf.close);
    assert.equal((await get(`${deaf.url}sub/a.wasm`, { Range: 'bytes=3-' })).status, 200);
  });
});

/**
 * Measured in CPU time, which depends less on other load on the machine than elapsed time; about 50 ms are typical.
 * `node tools/bench/start.mjs` measures elapsed time.
 */
const START_CPU_MS_MAX = 250;

test('starting an engine takes little CPU time if its module is compiled already', async (t) => {
  const wasm = await WebAssembly.compile(readFileSync(join(dist, 'wasm/wick-simd128-single.wasm')));
  const times = [];
  for (let i = 0; i < 5; i++) {
    const before = process.cpuUsage();
    const engine = await createEngine({ file: modelPath, wasm });
    const { user, system } = process.cpuUsage(before);
    times.push((user + system) / 1000);
    await engine.close();
  }
  const reported = `${times.map((ms) => ms.toFixed(0)).join(', ')} ms of CPU time`;
  t.diagnostic(reported);
  assert.ok(Math.min(...times) < START_CPU_MS_MAX, reported);
});
