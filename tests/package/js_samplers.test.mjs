// llama.cpp's samplers through the package, the handler and the `wick` command: with the demo model, the resulting
// distributions match the definitions of the samplers, which are stated here in plain JavaScript.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { native, wick } from '../support/cli.mjs';
import { dist, modelPath, openEngine } from '../support/package.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

/** @typedef {import('../../js/index.js').Engine} Engine */
/** @typedef {import('../../js/index.js').GenerateOptions} GenerateOptions */
/** @typedef {import('../../js/index.js').TokenDetail} TokenDetail */
/** Logits by token. @typedef {Map<number, number>} Logits */

const prompt = 'One day, a fox and a fox and a';
const CANDIDATES = 20;

/** @param {Engine} engine @param {GenerateOptions} options @returns {Promise<TokenDetail[]>} */
async function tokensOf(engine, options) {
  /** @type {TokenDetail[]} */
  const tokens = [];
  const onToken = (/** @type {TokenDetail} */ token) => void tokens.push(token);
  await engine
    .generate(prompt, { seed: 3, maxTokens: 40, ignoreEnd: true, ...options, onToken })
    .text();
  return tokens;
}

/** @param {Logits} logits @returns {[token: number, probability: number][]} by decreasing probability */
function softmax(logits) {
  const max = Math.max(...logits.values());
  const total = [...logits.values()].reduce((sum, logit) => sum + Math.exp(logit - max), 0);
  return [...logits]
    .map(
      ([token, logit]) => /** @type {[number, number]} */ ([token, Math.exp(logit - max) / total]),
    )
    .sort((a, b) => b[1] - a[1]);
}

/** @param {Logits} logits */
const entropyOf = (logits) =>
  softmax(logits).reduce((sum, [, p]) => sum - (p > 0 ? p * Math.log(p) : 0), 0);

/** @param {Logits} logits @param {(token: number, logit: number) => boolean} stays @returns {Logits} */
const filter = (logits, stays) =>
  new Map([...logits].filter(([token, logit]) => stays(token, logit)));

/** @param {Logits} logits @param {number} temperature @returns {Logits} */
const divide = (logits, temperature) =>
  new Map([...logits].map(([token, logit]) => [token, logit / temperature]));

/** The definitions: `leave` returns the remaining logits after a text. @type {Record<string, {options: GenerateOptions, leave: (logits: Logits, text: number[]) => Logits}>} */
const definitions = {
  'top-n-sigma': {
    options: { samplers: ['top_k', 'top_n_sigma'], topNSigma: 1.2 },
    leave(logits) {
      const values = [...logits.values()];
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
      const least = Math.max(...values) - 1.2 * Math.sqrt(variance);
      return filter(logits, (_, logit) => logit >= least);
    },
  },
  'typical-p': {
    options: { samplers: ['top_k', 'typ_p'], typicalP: 0.6 },
    leave(logits) {
      const entropy = entropyOf(logits);
      const ranked = softmax(logits)
        .map(([token, p]) => ({ token, p, distance: Math.abs(-Math.log(p) - entropy) }))
        .sort((a, b) => a.distance - b.distance);
      let sum = 0;
      const kept = new Set();
      for (const { token, p } of ranked) {
        kept.add(token);
        sum += p;
        if (sum >= 0.6) break;
      }
      return filter(logits, (token) => kept.has(token));
    },
  },
  XTC: {
    options: { samplers: ['top_k', 'xtc'], xtcProbability: 1, xtcThreshold: 0.08 },
    leave(logits) {
      const top = softmax(logits).filter(([, p]) => p >= 0.08);
      const dropped = new Set(top.slice(0, -1).map(([token]) => token));
      return filter(logits, (token) => !dropped.has(token));
    },
  },
  'dynamic temperature': {
    options: {
      samplers: ['top_k', 'temperature'],
      ...{ temperature: 1, dynatempRange: 0.8, dynatempExponent: 1.5 },
    },
    leave: (logits) =>
      divide(logits, 0.2 + 1.6 * (entropyOf(logits) / Math.log(logits.size)) ** 1.5),
  },
  'DRY, and min-p after it': {
    options: {
      samplers: ['top_k', 'dry', 'min_p'],
      ...{
        dryMultiplier: 1.5,
        dryBase: 1.25,
        dryAllowedLength: 1,
        drySequenceBreakers: [],
        minP: 0.02,
      },
    },
    leave(logits, text) {
      const lowered = new Map(logits);
      for (const [token, logit] of logits) {
        let longest = 0;
        for (let at = 1; at < text.length; at++) {
          let n = 0;
          while (text[at] === token && n < at && text[at - 1 - n] === text[text.length - 1 - n])
            n++;
          longest = Math.max(longest, n);
        }
        if (longest >= 1) lowered.set(token, logit - 1.5 * 1.25 ** (longest - 1));
      }
      const least = Math.max(...lowered.values()) + Math.log(0.02);
      return filter(lowered, (_, logit) => logit >= least);
    },
  },
  'the temperature before top-p': {
    options: { samplers: ['top_k', 'temperature', 'top_p'], temperature: 2, topP: 0.7 },
    leave(logits) {
      const flat = divide(logits, 2);
      let sum = 0;
      const kept = new Set();
      for (const [token, p] of softmax(flat)) {
        kept.add(token);
        sum += p;
        if (sum >= 0.7) break;
      }
      return filter(flat, (token) => kept.has(token));
    },
  },
};

describe('samplers of generate()', () => {
  for (const [name, { options, leave }] of Object.entries(definitions)) {
    test(`${name}: the distribution after sampling matches the definition`, async (t) => {
      const engine = await openEngine(t, { file: modelPath });
      const wanted = { ...options, topK: CANDIDATES, logprobs: CANDIDATES };
      const before = await tokensOf(engine, wanted);
      const after = await tokensOf(engine, { ...wanted, logprobsAfter: true });
      assert.deepEqual(
        after.map(({ token }) => token),
        before.map(({ token }) => token),
      );
      const text = await engine.tokenize(prompt);
      let changed = 0;
      for (const [index, { token, top }] of before.entries()) {
        const logits = new Map(top.map((one) => [one.token, one.logprob]));
        // the engine rounds weights below e^-87 to 0
        const left = softmax(leave(logits, [...text])).filter(([, p]) => p > 1e-20);
        const found = after[index].top.filter(({ logprob }) => Math.exp(logprob) > 1e-20);
        assert.deepEqual(
          new Set(found.map((one) => one.token)),
          new Set(left.map(([one]) => one)),
          `${name}, token ${index}`,
        );
        const expected = new Map(left);
        for (const one of found) {
          const difference = Math.exp(one.logprob) - (expected.get(one.token) ?? Number.NaN);
          assert.ok(Math.abs(difference) < 1e-4, `${name}: token ${index} is off by ${difference}`);
        }
        if (left.length < logits.size || Math.abs(left[0][1] - softmax(logits)[0][1]) > 1e-3)
          changed++;
        text.push(token);
      }
      assert.ok(changed > 3, `${changed} of ${before.length} were changed`);
    });
  }

  test('omitting a sampler from the order turns it off, and errors name the option', async (t) => {
    const engine = await openEngine(t, { file: modelPath });
    /** @param {any} options */
    const text = (options) =>
      engine.generate(prompt, { seed: 3, maxTokens: 20, ...options }).text();
    const plain = { samplers: ['temperature'], temperature: 0.7 };
    assert.equal(
      await text({ ...plain, dryMultiplier: 5, xtcProbability: 1, topK: 1 }),
      await text(plain),
    );
    assert.equal(await text({ penaltyLast: 0, repeatPenalty: 5 }), await text({}));
    assert.notEqual(await text({ penaltyLast: -1, repeatPenalty: 5 }), await text({}));
    for (const [options, message] of /** @type {[object, RegExp][]} */ ([
      [{ samplers: ['top_q'] }, /^samplers must be an array of at most 16 of penalties, dry/],
      [{ samplers: 'top_k' }, /^samplers must be/],
      [{ drySequenceBreakers: [''] }, /^drySequenceBreakers must be/],
      [{ mirostat: 3 }, /^mirostat must be a whole number from 0 to 2/],
      [{ adaptiveDecay: 1 }, /^adaptiveDecay must be a number from 0 to 0.99/],
      [{ typicalP: Number.NaN }, /^typicalP must be a number from 0 to 1/],
      [{ logprobsAfter: 1 }, /^logprobsAfter must be true or false/],
      [{ typical_p: 1 }, /did you mean typicalP/],
      [{ drySequenceBreakers: Array(17).fill('x') }, /option drySequenceBreakers/],
    ])) {
      await assert.rejects(async () => text(options), { code: 'ARG', message });
    }
  });

  test('output matches the grammar with any sampler', async (t) => {
    const engine = await openEngine(t, { file: modelPath });
    const regex = /(red|green|blue)( (red|green|blue)){3}/;
    for (const options of /** @type {GenerateOptions[]} */ ([
      { dryMultiplier: 50, dryAllowedLength: 0 },
      { xtcProbability: 1, xtcThreshold: 0 },
      { typicalP: 0.01, topNSigma: 0.01 },
      { mirostat: 1, mirostatTau: 9 },
      { mirostat: 2, mirostatTau: 0 },
      { adaptiveTarget: 0.1, dynatempRange: 2, samplers: ['temperature', 'adaptive_p'] },
    ])) {
      const text = await engine.generate(prompt, { regex, temperature: 2, ...options }).text();
      assert.match(text, new RegExp(`^${regex.source}$`), JSON.stringify(options));
    }
  });
});

test('the handler accepts the fields of llama.cpp’s server', async (t) => {
  const engine = await openEngine(t, { file: modelPath });
  const handle = createHandler(engine);
  const fields = { seed: 5, temperature: 1, dry_multiplier: 1, xtc_probability: 0.5, top_k: 10 };
  const more = { samplers: ['dry', 'top_k', 'xtc'], max_tokens: 12, post_sampling_probs: true };
  const request = new Request('http://wick.test/v1/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt, logprobs: 20, ...fields, ...more }),
  });
  const answer = /** @type {any} */ (await (await handle(request)).json());
  const same = await tokensOf(engine, {
    ...{ seed: 5, temperature: 1, dryMultiplier: 1, xtcProbability: 0.5, topK: 10, maxTokens: 12 },
    ...{ samplers: ['dry', 'top_k', 'xtc'], logprobs: 20, logprobsAfter: true, ignoreEnd: false },
  });
  const [{ logprobs }] = answer.choices;
  assert.deepEqual(
    logprobs.token_logprobs,
    same.map(({ logprob }) => logprob),
  );
  for (const alternatives of logprobs.top_logprobs) {
    const all = /** @type {number[]} */ (Object.values(alternatives));
    const sum = all.reduce((total, logprob) => total + Math.exp(logprob), 0);
    assert.ok(all.length <= 10 && Math.abs(sum - 1) < 1e-4, `${sum}`);
  }
});

test('the `wick` command has the samplers under llama.cpp’s names', async () => {
  const model = [modelPath, '-p', prompt, '-n', '16', '--seed', '3', '--temp', '1'];
  const text = async (/** @type {string[]} */ ...options) => {
    const { code, stdout, stderr } = await wick(native, ['run', ...model, ...options]);
    assert.equal(code, 0, stderr);
    return stdout.toString();
  };
  const plain = await text();
  const dry = ['--dry-multiplier', '3', '--dry-allowed-length', '0'];
  assert.notEqual(await text(...dry), plain);
  assert.notEqual(
    await text(...dry, '--dry-sequence-breaker', 'none'),
    await text(...dry, '--dry-penalty-last-n', '0'),
  );
  assert.equal(await text(...dry, '--dry-penalty-last-n', '0'), plain);
  assert.equal(await text('--repeat-penalty', '3', '--repeat-last-n', '0'), plain);
  assert.notEqual(await text('--repeat-penalty', '3', '--repeat-last-n', '-1'), plain);
  for (const [option, value] of [
    ['--typical', '0.2'],
    ['--top-nsigma', '1'],
    ['--xtc-probability', '1'],
    ['--dynatemp-range', '1'],
    ['--mirostat=1', '--mirostat-ent=0.5'],
    ['--mirostat=2', '--mirostat-ent=0.5'],
    ['--adaptive-target', '0.3'],
  ]) {
    assert.notEqual(await text(option, value), plain, option);
  }
  const named = await text('--samplers', 'temperature;top_k;', '--top-k', '3');
  assert.equal(await text('--sampling-seq', 'tk', '--top-k', '3'), named);
  assert.equal(await text('--sampling-seq', 't', '--top-k', '3'), plain);
  for (const [options, message] of /** @type {[string[], RegExp][]} */ ([
    [['--samplers', 'top_k;top_q'], /--samplers: unknown sampler 'top_q'/],
    [['--samplers', 'top_k', '--sampling-seq', 'k'], /cannot be used together/],
    [['--sampling-seq', 'kz'], /samplers: letter 1 is not one of/],
    [['--samplers', 'xtc;'.repeat(17)], /'xtc' exceeds the maximum number/],
  ])) {
    const { code, stderr } = await wick(native, ['run', ...model, ...options]);
    assert.equal(code, 2);
    assert.match(stderr, message);
  }
  const { stderr } = await wick(native, [
    'run',
    ...model,
    '--top-k',
    '2',
    '--logprobs',
    '5',
    '--logprobs-after',
  ]);
  for (const line of stderr.trim().split('\n')) assert.ok(JSON.parse(line).top.length <= 2, line);
});
