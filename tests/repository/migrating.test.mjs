// docs/migrating.md: each changed program runs with the demo model, few of its lines change, and the names of other
// engines exist, if the engine is installed.

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { transform } from 'esbuild';
import { root } from '../support/locate.mjs';
import { createEngine, modelPath } from '../support/package.mjs';
import { run } from '../support/process.mjs';

/** Limit on removed lines, and on added lines. */
const LINES_MOST = 9;
/** Engines whose whole diff has fewer than ten lines. */
const short = ['web-llm', 'transformers.js', 'the AI SDK'];
const page = readFileSync(join(root, 'docs/migrating.md'), 'utf8');
const folder = join(root, 'build/migrating'); // inside the package, so that it can import itself by name
mkdirSync(folder, { recursive: true });
after(() => rmSync(folder, { recursive: true }));

/** The sections, with their names, lists and programs. */
const sections = page
  .split(/^## /m)
  .slice(1)
  .map((text) => ({
    name: text.slice(0, text.indexOf('\n')),
    rows: [...text.matchAll(/^- ((?:`[^`]*`|[^`:\n])+): (.+)$/gm)].map(([, one, other]) => [
      one,
      other,
    ]),
    lines: (/^```diff\n(.*?)^```$/ms.exec(text)?.[1] ?? '')
      .split('\n')
      .filter((line) => line !== ''),
  }));

/** @param {string[]} lines @param {string} sign selects the program before (-) or after (+) */
const programOf = (lines, sign) =>
  lines
    .filter((line) => line[0] === ' ' || line[0] === sign)
    .map((line) => line.slice(1))
    .join('\n');

/** @param {string} question @param {object} [more] */
async function answerOf(question, more = {}) {
  const engine = await createEngine({ file: modelPath, threads: 1 });
  const messages = [{ role: 'user', content: question }];
  const body = { messages, temperature: 0, max_tokens: 60, ...more };
  const { choices } = await engine.chat.completions.create(body);
  await engine.close();
  return choices[0].message.content;
}

describe('programs', () => {
  test('each engine has an example', () => {
    const names = sections.filter(({ lines }) => lines.length > 0).map(({ name }) => name);
    const engines = ['web-llm', 'wllama', 'transformers.js', 'node-llama-cpp', 'the AI SDK'];
    assert.deepEqual(
      engines.filter((engine) => !names.some((name) => name.includes(engine))),
      [],
    );
  });

  for (const { name, lines } of sections.filter((one) => one.lines.length > 0)) {
    test(`${name}: few lines change, and it runs`, async () => {
      for (const sign of ['-', '+']) {
        const changed = lines.filter((line) => line[0] === sign).length;
        assert.ok(changed > 0 && changed <= LINES_MOST, `${changed} lines of ${sign}`);
        await transform(programOf(lines, sign), { format: 'esm' }); // checks its syntax
      }
      const diff = lines.filter((line) => line[0] !== ' ').length;
      const isShort = short.some((engine) => name.includes(engine));
      if (isShort) assert.ok(diff < 10, `${diff} lines`);
      const address = JSON.stringify(pathToFileURL(modelPath).href);
      const program = programOf(lines, '+').replaceAll("'/model.gguf'", address);
      assert.ok(program.includes(address));
      const file = join(folder, `${name.replace(/\W+/g, '_')}.mjs`);
      writeFileSync(file, program);
      const { code, stdout, stderr } = await run(process.execPath, [file]);
      assert.equal(code, 0, stderr);
      const question = name.includes('node-llama-cpp') ? 'My name is Ada.' : 'What is Wick?';
      assert.ok(stdout.toString().includes(await answerOf(question)), stdout.toString());
    });
  }
});

describe('names', () => {
  test('options of wllama exist in its package', () => {
    const source = join(root, 'node_modules/@wllama/wllama/src');
    const code = readdirSync(source, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(source, name), 'utf8'))
      .join('\n');
    const { rows } = sections.find(({ name }) => name.includes('wllama')) ?? { rows: [] };
    const names = rows.flatMap(([theirs]) => [
      ...[...theirs.matchAll(/wllama\.(\w+)\(/g)].map(([, one]) => `${one}(`),
      ...[...theirs.matchAll(/`(\w+)`/g)].map(([, one]) => one),
    ]);
    assert.ok(names.length > 12, `${names.length} names`);
    for (const name of names) assert.ok(code.includes(name), name);
  });

  test('Wick’s names are options, fields or methods of the public types', () => {
    const types = ['index', 'pipeline', 'ai-sdk']
      .map((name) => readFileSync(join(root, `js/${name}.d.ts`), 'utf8'))
      .join('\n');
    const columns = sections.flatMap(({ rows }) => rows.map(([, ours]) => ours));
    const names = columns.flatMap((ours) => [
      ...[...ours.matchAll(/\b(?:engine|chat|session)\.(\w+)/g)].map(([, one]) => one),
      ...[...ours.matchAll(/`(\w+)`/g)].map(([, one]) => one),
    ]);
    assert.ok(names.length > 40, `${names.length} names`);
    for (const name of names) assert.match(types, new RegExp(`\\b${name}\\b`), name);
  });
});
