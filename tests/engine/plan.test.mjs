// The memory plan: its bounds for a vocabulary of 151,936 tokens, and a comparison with the actual memory use of a
// run, in the builds for browsers.

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { built } from '../support/locate.mjs';
import { openEngine, synthesize, temporaryFolder } from '../support/package.mjs';
import { run } from '../support/process.mjs';

const MB = 1e6;
const SCRATCH_BYTES_MAX = 24 * MB; // at a micro-batch of 128
const slack = 1.02;

const file = join(temporaryFolder(), 'large-vocabulary.gguf');
await synthesize('qwen2.5-0.5b', 'q4_0', file);

const options = { file, threads: 1, contextSize: 1024, batchSize: 128 };

describe('the plan of Qwen2.5-0.5B’s shape', () => {
  /** @type {any[]} */
  let tensors;
  before(async () => {
    const args = ['inspect', file, '--json'];
    const { code, stdout, stderr } = await run(built('native/wick'), args);
    assert.equal(code, 0, stderr);
    tensors = JSON.parse(stdout.toString()).tensors;
  });

  test('the plan bounds the peak of a run with a second thread', async (t) => {
    const engine = await openEngine(t, { ...options, threads: 2 });
    const loaded = await engine.info();
    const { plan } = loaded;
    assert.ok(plan && loaded.shape?.vocab === 151_936);
    // the part before the first tensor has the metadata and the tensor list
    const metadataBytes = Math.min(...tensors.map((tensor) => tensor.offset_bytes));
    const tensorBytes = tensors.reduce((sum, tensor) => sum + tensor.size_bytes, 0);
    t.diagnostic(JSON.stringify({ ...plan, metadataBytes, tensorBytes }));
    assert.ok(plan.scratchBytes <= SCRATCH_BYTES_MAX, 'scratch');
    assert.ok(plan.tokenizerBytes <= 2 * metadataBytes, 'tokenizer');
    assert.ok(plan.directoryBytes <= 1.25 * metadataBytes, 'directory');
    assert.ok(
      plan.weightsBytes <= tensorBytes * 1.001,
      'tied embeddings count once, and no type grows',
    );
    const { weightsBytes, kvBytes, scratchBytes, tokenizerBytes, directoryBytes } = plan;
    const parts = weightsBytes + kvBytes + scratchBytes + tokenizerBytes + directoryBytes;
    assert.ok(plan.totalBytes >= parts && plan.totalBytes <= parts * slack, 'the total');

    // a prompt of more than one micro-batch
    const prompt = (await engine.tokenize('a bc def '.repeat(60))).slice(0, 130);
    const generation = engine.generate(prompt, { temperature: 0, maxTokens: 4, ignoreEnd: true });
    await generation.text();
    assert.equal(generation.result?.usage.completionTokens, 4);
    const { memory } = await engine.info();
    t.diagnostic(`peak ${memory.peakBytes}, linear ${memory.linearBytes}`);
    assert.ok(memory.peakBytes <= plan.totalBytes * slack, `peak ${memory.peakBytes}`);
    const planned = statSync(file).size + plan.kvBytes + plan.scratchBytes;
    assert.ok(memory.linearBytes <= 1.1 * planned, `linear memory ${memory.linearBytes}`);
  });

  test('a budget just below the plan is rejected before the weights arrive', async (t) => {
    const directory = await openEngine(t, { ...options, directoryOnly: true });
    const total = (await directory.info()).plan?.totalBytes ?? 0;
    await directory.close();
    /** @type {number[]} */
    const loaded = [];
    const refused = openEngine(t, {
      ...options,
      memoryLimit: total - MB,
      onProgress: (progress) => loaded.push(progress.loaded),
    });
    await assert.rejects(refused, { code: 'NOMEM' });
    assert.ok(Math.max(0, ...loaded) < 0.1 * statSync(file).size, `${loaded} bytes were read`);
  });
});
