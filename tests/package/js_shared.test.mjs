// The `shared` option of createEngine outside a browser: a process that hides that it is Node, with the
// locks of a page. tests/package/tabs.test.mjs tests browsers, tests/package/js_tabs.test.mjs messages.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { TestLocks } from '../support/locks.mjs';
import { dist, modelPath, waitUntil } from '../support/package.mjs';

/** @type {typeof import('../../js/index.js')} */
const { createEngine } = await import(pathToFileURL(join(dist, 'index.js')).href);

const { process: node } = globalThis;
before(() => {
  const locks = new TestLocks();
  Object.defineProperty(globalThis, 'navigator', { value: { locks }, configurable: true });
  const versions = { ...node.versions, node: undefined };
  globalThis.process = new Proxy(node, {
    get: (target, name) => (name === 'versions' ? versions : Reflect.get(target, name)),
  });
});
after(() => {
  globalThis.process = node;
  Reflect.deleteProperty(globalThis, 'navigator');
});

/** @param {string} shared */
async function open(shared) {
  const led = { count: 0 };
  const engine = await createEngine({
    ...{ file: modelPath, threads: 1, shared },
    onLead: () => void led.count++,
  });
  return { engine, led };
}

test('tabs share an engine by name, and the next one leads when the first is closed', async () => {
  const [first, second] = [await open('one'), await open('one')];
  const other = await open('two');
  const alone = await createEngine({ file: modelPath, threads: 1 });
  assert.equal((await first.engine.info()).sharing, 'leader');
  assert.equal((await second.engine.info()).sharing, 'follower');
  assert.equal((await other.engine.info()).sharing, 'leader');
  assert.equal((await alone.info()).sharing, 'none');
  const options = { maxTokens: 8, temperature: 0 };
  const wanted = await alone.generate('Once', options).text();
  assert.equal(await second.engine.generate('Once', options).text(), wanted);
  const leaders = () => [first, second, other].map(({ led }) => led.count);
  assert.deepEqual(leaders(), [0, 0, 0], 'onLead is called only by a tab that takes over');
  await first.engine.close();
  assert.equal(await second.engine.generate('Once', options).text(), wanted);
  assert.equal((await second.engine.info()).sharing, 'leader');
  await waitUntil(() => second.led.count > 0, 'the second tab to lead');
  assert.deepEqual(leaders(), [0, 1, 0]);
  await Promise.all([second, other].map(({ engine }) => engine.close()));
  await alone.close();
});
