// lm-evaluation-harness over HTTP, with a task of a few questions: its scores equal the native program's log
// probabilities. The harness is large, so only `tools/setup.sh lm-eval` installs it.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { listen } from '../../js/cli/http_server.js';

import { built, locate } from '../support/locate.mjs';
import { createEngine, dist, modelPath, temporaryFolder } from '../support/package.mjs';
import { run } from '../support/process.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

/** @typedef {{question: string, choices: string[], answer: number}} Question */
/** @type {Question[]} */
const questions = [
  { question: 'The fox ran over the', choices: [' hill', ' spoon'], answer: 0 },
  { question: 'Once upon a', choices: [' time', ' green', ' hen'], answer: 0 },
  { question: 'I like to eat', choices: [' the', ' an apple', ' rain'], answer: 1 },
  { question: 'The sun is', choices: [' hot', ' a fish'], answer: 1 },
];

const folder = temporaryFolder();
const task = {
  task: 'wick_tiny',
  dataset_path: 'json',
  dataset_kwargs: { data_files: { test: join(folder, 'questions.jsonl') } },
  test_split: 'test',
  output_type: 'multiple_choice',
  doc_to_text: '{{question}}',
  doc_to_choice: '{{choices}}',
  doc_to_target: 'answer',
  target_delimiter: '', // the choices begin with a space
  metric_list: [{ metric: 'acc', aggregation: 'mean', higher_is_better: true }],
};

/**
 * Adds vLLM's tokenizer routes, which the harness uses, to those of createHandler.
 * @param {import('../../js/index.js').Engine} engine @returns {(request: Request) => Promise<Response>}
 */
function withTokens(engine) {
  const handle = createHandler(engine);
  /** @type {Record<string, (body: any) => Promise<object>>} */
  const routes = {
    '/tokenizer_info': async () => ({ eos_token: '<|im_end|>' }),
    '/tokenize': async ({ prompt }) => {
      const tokens = [...(await engine.tokenize(prompt, { addSpecial: false }))];
      return { tokens, count: tokens.length };
    },
    '/detokenize': async ({ tokens }) => ({ prompt: await engine.detokenize(tokens) }),
  };
  return async (request) => {
    const answer = routes[new URL(request.url).pathname];
    if (!answer) return handle(request);
    return Response.json(await answer(request.method === 'POST' ? await request.json() : {}));
  };
}

/**
 * Returns the summed log probabilities of the last tokens, from logits written by the native program.
 * @param {string} text @param {number[]} ids its tokens @param {number} from index of the first token to count
 */
async function nativeScore(text, ids, from) {
  const [textFile, logitsFile] = ['text.txt', 'logits.f32'].map((name) => join(folder, name));
  writeFileSync(textFile, text);
  const args = ['perplexity', modelPath, '-f', textFile, '--save', logitsFile];
  const { code, stderr } = await run(built('native/wick'), args);
  assert.equal(code, 0, stderr);
  const bytes = Uint8Array.from(readFileSync(logitsFile));
  const logits = new Float32Array(bytes.buffer);
  const size = logits.length / ids.length;
  let sum = 0;
  for (let at = from; at < ids.length; at++) {
    const row = logits.subarray((at - 1) * size, at * size); // the prediction after the previous token
    const most = row.reduce((a, b) => Math.max(a, b));
    const total = row.reduce((all, one) => all + Math.exp(one - most), 0);
    sum += row[ids[at]] - most - Math.log(total);
  }
  return sum;
}

const harness = locate('lmEval');
test('scores equal native log probabilities', { skip: harness.skip }, async (t) => {
  const engine = await createEngine({ file: modelPath, threads: 1 });
  t.after(() => engine.close());
  const server = await listen(withTokens(engine), { host: '127.0.0.1', port: 0 });
  t.after(() => server.close());
  writeFileSync(
    join(folder, 'questions.jsonl'),
    questions.map((one) => `${JSON.stringify(one)}\n`).join(''),
  );
  writeFileSync(join(folder, 'wick_tiny.yaml'), JSON.stringify(task)); // JSON is YAML
  const of = `model=any,base_url=${server.url}/v1/completions,tokenizer_backend=remote,num_concurrent=2`;
  const args = ['--model', 'local-completions', '--model_args', of, '--tasks', 'wick_tiny'];
  const where = ['--include_path', folder, '--output_path', join(folder, 'out'), '--log_samples'];
  const offline = { HF_HUB_OFFLINE: '1', HF_DATASETS_OFFLINE: '1', HF_HOME: folder };
  const env = { ...process.env, ...offline, OPENAI_API_KEY: 'none' };
  const command = ['-m', 'lm_eval', ...args, ...where];
  const { code, stderr } = await run(harness.path, command, { env });
  assert.equal(code, 0, stderr);

  const out = join(folder, 'out', readdirSync(join(folder, 'out'))[0]);
  const read = (/** @type {string} */ begin) => {
    const name = readdirSync(out).find((one) => one.startsWith(begin));
    return readFileSync(join(out, String(name)), 'utf8');
  };
  const samples = read('samples_')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(samples.length, questions.length);
  let right = 0;
  for (const { doc, resps } of samples) {
    const scores = [];
    for (const [index, choice] of doc.choices.entries()) {
      const text = doc.question + choice;
      const ids = [...(await engine.tokenize(text))];
      const from = (await engine.tokenize(doc.question)).length;
      const score = await nativeScore(text, ids, from);
      const [found] = resps[index][0];
      assert.ok(Math.abs(Number(found) - score) < 1e-4, `${text}: ${found}, natively ${score}`);
      scores.push(score);
    }
    right += Number(scores.indexOf(Math.max(...scores)) === doc.answer);
  }
  const accuracy = JSON.parse(read('results_')).results.wick_tiny['acc,none'];
  assert.equal(accuracy, right / questions.length);
  assert.ok(right > 0 && right < questions.length, 'some answers must be right and some wrong');
});
