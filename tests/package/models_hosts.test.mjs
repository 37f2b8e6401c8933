// The model store in a folder, in Deno, Bun and Node: an interrupted download resumes, a file on disk is imported, and
// damage is detected.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { CHUNK_BYTES } from '../../js/models/records.js';
import { locate } from '../support/locate.mjs';
import { pretendedModel, serveModel, sha256Of } from '../support/model_server.mjs';
import { dist, modelPath, temporaryFolder } from '../support/package.mjs';

const run = promisify(execFile);
const model = pretendedModel(2 * CHUNK_BYTES + 777);

const script = `
  const { openModels } = await import(${JSON.stringify(pathToFileURL(join(dist, 'models.js')).href)});
  const { createEngine } = await import(${JSON.stringify(pathToFileURL(join(dist, 'index.js')).href)});
  const [folder, url, sha256, file] = JSON.parse(process.env.WICK_GIVEN);
  const models = await openModels();
  const stop = new AbortController();
  models.addEventListener('progress', () => stop.abort());
  const paused = await models.get(url, { signal: stop.signal }).then(() => 'whole', ({ name }) => name);
  const entry = await models.get(url, { sha256 });
  const verified = await models.verify(url);
  const imported = await models.import(file, { url: 'https://example.com/wick.gguf' });
  const fs = process.getBuiltinModule('node:fs');
  const data = fs.readdirSync(folder).map((id) => folder + '/' + id + '/model.gguf');
  const damaged = data.find((path) => fs.statSync(path).size === entry.size);
  const handle = fs.openSync(damaged, 'r+');
  fs.writeSync(handle, new Uint8Array([1, 2, 3]), 0, 3, ${CHUNK_BYTES} + 5);
  fs.closeSync(handle);
  const found = await models.verify(url);
  const mended = await models.get(url);
  // the engine uses the same folder
  const kept = { url: 'https://example.com/wick.gguf', cache: 'only', threads: 1 };
  const engine = await createEngine(kept);
  const text = await engine.generate('Hello', { temperature: 0, maxTokens: 8 }).text();
  await engine.close();
  console.log(JSON.stringify({
    kind: models.kind, paused, isWhole: entry.isWhole, sha256: entry.sha256, verified, found,
    isMended: mended.isWhole && (await models.verify(url)).isWhole, imported: imported.sha256, text,
  }));
  await models.clear();
  await models.close();
  console.log(fs.readdirSync(folder).length);`;

/** @type {[string, {path: string, skip: string | false}, string[]][]} */
const hosts = [
  ['Node', { path: process.execPath, skip: false }, ['--input-type=module', '-e', script]],
  ['Deno', locate('deno'), ['eval', script]],
  ['Bun', locate('bun'), ['-e', script]],
];

for (const [name, { path, skip }, args] of hosts) {
  test(`${name} stores models in a folder`, { skip }, async (t) => {
    const server = await serveModel(model);
    t.after(() => server.close());
    const { state, url } = server;
    // the first response stops within its second chunk, so that the download is still incomplete when it is paused
    let answers = 0;
    state.fault = () => (answers++ === 0 ? { cut: CHUNK_BYTES + 5, stall: true } : undefined);
    const caches = temporaryFolder();
    const folder = join(caches, 'wick-llm/models');
    const given = JSON.stringify([folder, url, sha256Of(model), modelPath]);
    const env = { ...process.env, WICK_GIVEN: given, XDG_CACHE_HOME: caches };
    const { stdout } = await run(path, args, { env });
    const [reported, left] = stdout.trim().split('\n');
    const { imported, text, ...rest } = JSON.parse(reported);
    assert.deepEqual(rest, {
      ...{ kind: 'folder', paused: 'AbortError', isWhole: true, sha256: sha256Of(model) },
      verified: { isWhole: true, damagedChunks: [] },
      ...{ found: { isWhole: false, damagedChunks: [1] }, isMended: true },
    });
    assert.match(imported, /^[0-9a-f]{64}$/);
    assert.ok(text.length > 0);
    assert.equal(left, '0');
    const [first, second, third] = state.starts;
    assert.equal(first, 0);
    assert.ok(second > 0 && second % CHUNK_BYTES === 0, 'stored chunks are not requested again');
    assert.equal(third, CHUNK_BYTES, 'only the damaged chunk is fetched');
  });
}
