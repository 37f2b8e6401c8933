// The package's other entry points in Chromium, and bundled: code is loaded on first use, and the output equals that in
// Node.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { locate, root } from '../support/locate.mjs';
import { dist, modelPath, openEngine, temporaryFolder } from '../support/package.mjs';
import { openPackagePage } from '../support/package_page.mjs';
import { run } from '../support/process.mjs';

const chromium = locate('chromium');
const ask = { temperature: 0, max_tokens: 60 };

/** Runs a conversation of three turns. @param {import('../../js/index.js').Engine} engine */
async function talk(engine) {
  const chat = await engine.createChat(ask);
  const texts = [];
  for (const content of ['My name is Ada.', 'What is my name?'])
    texts.push(await chat.send(content).text());
  const loaded = await engine.loadChat(new Blob([await chat.save()]), ask);
  texts.push(await loaded.send('Thank you.').text());
  for (const one of [chat, loaded]) await one.close();
  return texts;
}

describe('in Chromium', { skip: chromium.skip }, () => {
  const page = openPackagePage(join(root, 'examples/models'));

  test('chats: code is loaded on first use', async (t) => {
    const found = await page.evaluate(
      async ({ ask: given, source }) => {
        const at = '/wick-llm/index.js'; // a variable, so that type checking does not resolve it
        const { createEngine } = await import(at);
        const engine = await createEngine({ url: '/models/wick-2.6m-q8_0.gguf', threads: 1 });
        const loaded = () =>
          performance.getEntriesByType('resource').some(({ name }) => name.endsWith('/chat.js'));
        const before = loaded();
        const texts = await new Function('engine', 'ask', `return (${source})(engine)`)(
          engine,
          given,
        );
        await engine.close();
        return { before, after: loaded(), texts };
      },
      { ask, source: String(talk) },
    );
    assert.deepEqual([found.before, found.after], [false, true]);
    assert.deepEqual(found.texts, await talk(await openEngine(t)));
  });

  test('tasks, sources and tabs: a page that only generates loads none of them', async () => {
    const found = await page.evaluate(async () => {
      const at = '/wick-llm/index.js'; // a variable, so that type checking does not resolve it
      const { createEngine } = await import(at);
      const files = ['tasks', 'sources', 'tabs'];
      const loaded = () => {
        const names = performance.getEntriesByType('resource').map(({ name }) => name);
        return files.filter((file) => names.some((name) => name.endsWith(`/${file}.js`)));
      };
      const url = '/models/wick-2.6m-q8_0.gguf';
      const open = async (/** @type {object} */ options) =>
        createEngine({ url, threads: 1, cache: false, ...options });
      const engine = await open({});
      await engine.generate('Once', { maxTokens: 2 }).text();
      const steps = [loaded()];
      await engine.classify('A fox!', ['fox', 'wolf']);
      steps.push(loaded());
      await engine.close();
      const fetched = await open({ fetch: (/** @type {string} */ one) => fetch(one) });
      await fetched.close();
      steps.push(loaded());
      const shared = await open({ shared: 'one' });
      await shared.close();
      steps.push(loaded());
      return steps;
    }, undefined);
    const [tasks, sources, tabs] = ['tasks', 'sources', 'tabs'];
    assert.deepEqual(found, [[], [tasks], [tasks, sources], [tasks, sources, tabs]]);
  });

  test('LanguageModel, a pipeline and the AI SDK’s model', async (t) => {
    const found = await page.evaluate(async () => {
      const at = ['prompt-api', 'pipeline', 'ai-sdk'].map((name) => `/wick-llm/${name}.js`);
      const [{ installLanguageModel }, { pipeline }, { createWick }] = await Promise.all(
        at.map((name) => import(name)),
      );
      const model = '/models/wick-2.6m-q8_0.gguf';
      const generator = await pipeline('text-generation', model, { threads: 1 });
      const messages = [{ role: 'user', content: 'What is Wick?' }];
      const [{ generated_text: made }] = await generator(messages, { max_new_tokens: 60 });
      const { engine } = generator;
      const scope = /** @type {any} */ (globalThis);
      installLanguageModel(engine, { replace: true });
      const session = await scope.LanguageModel.create({ samplingMode: 'most-predictable' });
      const prompted = await session.prompt('What is Wick?');
      session.destroy();
      const prompt = [{ role: 'user', content: [{ type: 'text', text: 'What is Wick?' }] }];
      const settings = { prompt, temperature: 0, maxOutputTokens: 60 };
      const { stream } = await createWick(engine)().doStream(settings);
      let streamed = '';
      const reader = stream.getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        streamed += part.value.type === 'text-delta' ? part.value.delta : '';
      }
      await generator.dispose();
      return { generated: made.at(-1).content, prompted, streamed };
    }, undefined);
    const engine = await openEngine(t);
    const messages = [{ role: 'user', content: 'What is Wick?' }];
    const { choices } = await engine.chat.completions.create({ ...ask, messages });
    const { content } = choices[0].message;
    assert.deepEqual(found, { generated: content, prompted: content, streamed: content });
  });
});

describe('bundled by esbuild', () => {
  const code = `
    import { createEngine } from 'wick-llm';
    const ask = ${JSON.stringify(ask)};
    ${talk}
    const [, , file, worker, wasm] = process.argv;
    const engine = await createEngine({ file, worker, wasm, threads: 1 });
    console.log(JSON.stringify(await talk(engine)));
    await engine.close();`;
  const places = [
    ...[modelPath, pathToFileURL(join(dist, 'worker.js')).href],
    pathToFileURL(`${join(dist, 'wasm')}/`).href,
  ];

  for (const splitting of [true, false]) {
    test(
      splitting ? 'code loaded on demand is in separate files' : 'one file contains everything',
      async (t) => {
        const outdir = join(temporaryFolder(), String(splitting));
        await build({
          ...{
            bundle: true,
            format: 'esm',
            platform: 'node',
            splitting,
            outdir,
            logLevel: 'error',
          },
          stdin: { contents: code, resolveDir: root, sourcefile: 'app.mjs' },
          outExtension: { '.js': '.mjs' },
        });
        const files = readdirSync(outdir);
        const main = readFileSync(join(outdir, 'stdin.mjs'), 'utf8');
        assert.equal(files.length > 1, splitting);
        assert.equal(main.includes('WICKCHAT'), !splitting);
        const {
          code: status,
          stdout,
          stderr,
        } = await run(process.execPath, [join(outdir, 'stdin.mjs'), ...places]);
        assert.equal(status, 0, stderr);
        assert.deepEqual(JSON.parse(stdout.toString()), await talk(await openEngine(t)));
      },
    );
  }
});
