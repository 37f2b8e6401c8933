// engine.classify under Node: with a model's classification head, whose scores equal those of the `wick` command, and by the
// likelihood of labels, which is computed here from the logits of prompt and label.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { native, wick } from '../support/cli.mjs';
import { locate } from '../support/locate.mjs';
import {
  hasCode,
  isAbort,
  modelPath,
  openEngine,
  synthesize,
  temporaryFolder,
} from '../support/package.mjs';

const shared = locate('shared');
const withHead = join(shared.path, 'vectors/reference-more/models/bert-rank-labels.gguf');
const withoutHead = join(shared.path, 'vectors/reference-more/models/bert-cls.gguf');
const plainModel = join(shared.path, 'vectors/reference/models/gpt2.gguf');
const randomModel = join(temporaryFolder(), 'tiny.gguf');
await synthesize('tiny', 'q8_0', randomModel);

/** @param {number[]} logits */
function softmax(logits) {
  const sum = logits.reduce((total, logit) => total + Math.exp(logit), 0);
  return logits.map((logit) => Math.exp(logit) / sum);
}

/** @param {import('../../js/index.js').Classification} found @param {string[]} labels @param {number[]} wanted */
function assertFound(found, labels, wanted) {
  assert.equal(found.length, labels.length);
  for (const { label, score } of found) {
    assert.ok(Math.abs(score - wanted[labels.indexOf(label)]) < 1e-4, `${label}: ${score}`);
  }
  const scores = found.map(({ score }) => score);
  assert.deepEqual(
    scores,
    [...scores].sort((a, b) => b - a),
  );
}

/**
 * Returns the log probability of `label` after `prompt`, from the output of `wick logits`.
 * @param {string} file @param {number[]} prompt @param {number[]} label
 */
async function likelihood(file, prompt, label) {
  const { code, stdout } = await wick(native, [
    ...['logits', file, '--out', '-', '--tokens', [...prompt, ...label].join(',')],
  ]);
  assert.equal(code, 0);
  const logits = new Float32Array(stdout.buffer.slice(stdout.byteOffset).slice(0, stdout.length));
  const vocab = logits.length / (prompt.length + label.length);
  let sum = 0;
  for (const [index, token] of label.entries()) {
    const at = (prompt.length + index - 1) * vocab;
    const row = Array.from(logits.subarray(at, at + vocab));
    const most = Math.max(...row);
    const total = row.reduce((all, logit) => all + Math.exp(logit - most), 0);
    sum += row[token] - most - Math.log(total);
  }
  return sum;
}

describe('by a classification head', { skip: shared.skip }, () => {
  const labels = ['no', 'maybe', 'yes'];

  test('a score for each label, in the head’s order', async (t) => {
    const engine = await openEngine(t, { file: withHead });
    for (const text of ['a', 'a fox and a hen', 'the fox']) {
      const args = ['embed', withHead, '-p', text, '--pooling', 'rank'];
      const { code, stdout } = await wick(native, args);
      assert.equal(code, 0);
      const [{ scores }] = JSON.parse(stdout.toString());
      assertFound(await engine.classify(text, labels), labels, softmax(scores));
    }
  });

  test('a wrong number of labels and inputs longer than the context are rejected', async (t) => {
    const engine = await openEngine(t, { file: withHead });
    await assert.rejects(
      engine.classify('a', ['no', 'yes']),
      (error) =>
        hasCode('ARG')(error) && /has 3 scores, but 2 labels were given/.test(String(error)),
    );
    const long = 'a '.repeat(400);
    await assert.rejects(engine.classify(long, labels), hasCode('PROMPT_TOO_LONG'));
    assert.equal((await engine.classify(long, labels, { truncate: true })).length, 3);
    const encoder = await openEngine(t, { file: withoutHead });
    await assert.rejects(encoder.classify('a', labels), hasCode('UNSUPPORTED'));
  });
});

describe('by the likelihood of labels', () => {
  const labels = ['yes', 'a longer label', 'no'];

  const question = 'Say.\n\nA fox.\n\nLabels: yes, a longer label, no';
  for (const { name, file, prompt, skip } of [
    {
      name: 'with a chat template',
      file: randomModel,
      prompt: `<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`,
      skip: false,
    },
    {
      name: 'without a chat template',
      file: plainModel,
      prompt: `${question}\n\nLabel: `,
      skip: shared.skip,
    },
  ]) {
    test(`scores match the logits: ${name}`, { skip }, async (t) => {
      const engine = await openEngine(t, { file, kvType: 'f32' });
      const ids = await engine.tokenize(prompt);
      const wanted = [];
      for (const label of labels) {
        // the model, not the tokenizer, determines how the label is split into tokens
        /** @type {number[]} */
        const tokens = [];
        const onToken = (/** @type {{token: number}} */ { token }) => void tokens.push(token);
        await engine.generate(ids, { choices: [label], temperature: 0, onToken }).text();
        assert.equal(await engine.detokenize(tokens), label);
        wanted.push(await likelihood(file, ids, tokens));
      }
      assertFound(
        await engine.classify('A fox.', labels, { instructions: 'Say.' }),
        labels,
        softmax(wanted),
      );
    });
  }

  test('the demo model processes the text once for all labels', async (t) => {
    const engine = await openEngine(t, { file: modelPath });
    const many = Array.from({ length: 20 }, (_, index) => `label ${index}`);
    const text = 'The ship sails to the island. '.repeat(8);
    const read = (await engine.countTokens(text)) * 2;
    const before = (await engine.stats()).tokens.prompt;
    const found = await engine.classify(text, many);
    assert.deepEqual(new Set(found.map(({ label }) => label)), new Set(many));
    assert.ok(Math.abs(found.reduce((sum, { score }) => sum + score, 0) - 1) < 1e-9);
    const tokens = (await engine.stats()).tokens.prompt - before;
    assert.ok(tokens < read + 40 * 16, `${tokens} prompt tokens`);
    assert.deepEqual(await engine.classify(text, many, { salt: 'another' }), found);
  });

  test('errors name the wrong argument, and a signal aborts the call', async (t) => {
    const engine = await openEngine(t, { file: modelPath });
    for (const [args, message] of /** @type {[any[], RegExp][]} */ ([
      [[5, labels], /text must be a string, not 5/],
      [['a', 'yes'], /labels must be an array of two strings or more, not the string "yes"/],
      [['a', ['yes']], /labels must be an array of two strings or more/],
      [['a', ['yes', '']], /labels\[1\] must be a non-empty string/],
      [['a', ['yes', 3]], /labels\[1\] must be a non-empty string/],
      [['a', ['yes', 'no', 'yes']], /labels\[2\] appears twice: the string "yes"/],
      [['a', labels, { instructions: 3 }], /instructions must be a string, not 3/],
      [['a', labels, { truncate: 'no' }], /truncate must be true or false/],
      [['a', labels, { maxTokens: 3 }], /maxTokens/],
    ])) {
      await assert.rejects(/** @type {any} */ (engine).classify(...args), (error) => {
        assert.match(/** @type {Error} */ (error).message, message);
        return hasCode('ARG')(error);
      });
    }
    await assert.rejects(engine.classify('a', labels, { signal: AbortSignal.abort() }), isAbort);
  });
});
