// engine.metrics(): time per op, as JSON and as Prometheus text. Also checks that metrics cost
// almost nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode, modelPath, openEngine } from '../support/package.mjs';

const products = /** @type {const} */ (['qkv', 'attn_output', 'gate_up', 'down', 'logits']);

/** @param {import('../../js/index.js').Engine} engine @param {number} [maxTokens] */
const speak = (engine, maxTokens = 16) =>
  engine.generate('A lamp', { temperature: 0, maxTokens, ignoreEnd: true }).text();

test('metrics() rejects if metrics are off', async (t) => {
  const engine = await openEngine(t);
  await assert.rejects(engine.metrics(), hasCode('NODATA'));
});

test('with metrics on, calls, time and bytes of every op are counted, and the output is unchanged', async (t) => {
  const plain = await openEngine(t);
  const engine = await openEngine(t, { file: modelPath, metrics: true });
  assert.equal(await speak(engine), await speak(plain));
  const { passes, dispatch, kernels } = await engine.metrics();
  const { shape, plan } = await engine.info();
  assert.ok(shape && plan);
  const { prefill, decode } = passes;
  assert.equal(decode.qkv.count, shape.layers * 15);
  assert.equal(prefill.qkv.count, shape.layers);
  assert.equal(decode.sample.count, 15);
  for (const op of products) {
    assert.ok(decode[op].macs > 0, op);
    assert.ok(/** @type {number} */ (decode[op].gb_per_s) > 0, op);
    assert.ok(/** @type {number} */ (decode[op].gmac_per_s) > 0, op);
  }
  // the matrix products of a token read all weights except norms
  const bytes = products.reduce((sum, op) => sum + decode[op].bytes, 0) / 15;
  assert.ok(Math.abs(bytes / plan.weightsBytes - 1) < 0.02, `${bytes} of ${plan.weightsBytes}`);
  const share = Object.values(decode).reduce((sum, op) => sum + op.share, 0);
  assert.ok(Math.abs(share - 1) < 1e-6);
  const all = [prefill, decode].flatMap((pass) => Object.values(pass));
  const count = all.reduce((sum, op) => sum + op.count, 0);
  assert.equal(dispatch.dispatches, count);
  assert.equal(dispatch.lanes[kernels].dispatches, count);
});

test('Prometheus text, and reset', async (t) => {
  const engine = await openEngine(t, { file: modelPath, metrics: true });
  await speak(engine);
  const { dispatches } = (await engine.metrics()).dispatch;
  assert.ok(dispatches > 0);
  assert.equal(
    (await engine.metrics()).dispatch.dispatches,
    dispatches,
    'must not be reset without the option',
  );
  const text = await engine.metrics({ format: 'prometheus', reset: true });
  assert.match(text, /^# TYPE wick_op_latency_us histogram$/m);
  assert.match(text, /^wick_op_macs_total\{pass="decode",op="logits"\} [1-9]\d+$/m);
  for (const line of text.trim().split('\n')) {
    assert.match(
      line,
      /^(# (HELP|TYPE) wick_\S+ .+|wick_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? \S+)$/,
    );
  }
  assert.equal((await engine.metrics()).dispatch.dispatches, 0);
  await assert.rejects(engine.metrics(/** @type {any} */ ({ format: 'xml' })), hasCode('ARG'));
});
