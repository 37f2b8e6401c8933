// Requests with random schemas, expressions and choices give the same text, finish reason and probabilities alone in a
// plain engine as in a busy one: alongside others, on forks and restored sessions, with a draft model, with proposals,
// and with preemption due to insufficient pages.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modelPath, openEngine } from '../support/package.mjs';
import { randomFrom } from '../support/random_numbers.mjs';
import { wholeSchema } from '../support/random_schema.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

/** @typedef {ReturnType<typeof randomFrom>} Random */
/** @typedef {import('../../js/index.js').Engine} Engine */
/** @typedef {import('../../js/index.js').Generation} Generation */
/** @typedef {import('../../js/index.js').GenerateOptions} GenerateOptions */
/** @typedef {{text: string, options: GenerateOptions, way: 'plain' | 'fork' | 'restored'}} Case */

const before =
  'A boat, a fox and a lantern are on the table. The fox is red, and the boat is old. ';
const expressions = [
  '[a-f]{4,9}',
  '(yes|no|maybe), because [a-z ]{5,20}\\.',
  '\\d{1,3}( \\d{1,3})*',
];
const choices = [
  ['red', 'red fox', 'reddish'],
  ['a boat', 'a lantern', '\u{1F98A}', 'a b'],
];
const asked = ['A record: ', 'As JSON:\n', 'The answer is ', 'list of all thin'];

/** @param {Random} random @returns {GenerateOptions} */
function constraint(random) {
  const kind = random.below(8);
  if (kind < 5) return { jsonSchema: wholeSchema(random) };
  if (kind === 5) return { regex: random.pick(expressions) };
  if (kind === 6) return { choices: random.pick(choices) };
  return { healing: random.chance(0.5) }; // some requests have no constraint
}

/** @param {Random} random @returns {Case} */
const caseOf = (random) => ({
  text: random.pick(asked),
  options: {
    ...constraint(random),
    temperature: random.pick([0, 0, 0.9, 1.5]),
    seed: random.below(1e6),
    maxTokens: 8 + random.below(70),
    ...(random.chance(0.3) && { logprobs: 2 }),
    ...(random.chance(0.2) && { stop: ['":'] }),
    ...(random.chance(0.2) && { repeatPenalty: 1.2 }),
    priority: random.below(3),
  },
  way: random.pick(['plain', 'plain', 'fork', 'restored']),
});

/**
 * Returns the generated text, token by token with probabilities, or the code of the error.
 * @param {(options: GenerateOptions) => Generation} begin @param {GenerateOptions} options
 */
async function outcome(begin, options) {
  /** @type {unknown[]} */
  const tokens = [];
  try {
    const generation = begin({ ...options, onToken: (token) => void tokens.push({ ...token }) });
    const text = await generation.text();
    return { text, tokens, finish: generation.result?.finishReason };
  } catch (error) {
    return { refused: /** @type {any} */ (error).code };
  }
}

/** Runs alone, in an engine without anything that saves passes. @param {Engine} engine @param {Case} one */
async function alone(engine, { text, options, way }) {
  const plainly = { ...options, speculation: /** @type {const} */ (false) };
  if (way === 'plain') return outcome((all) => engine.generate(before + text, all), { ...plainly });
  const session = await engine.createSession();
  await session.append(before);
  const found = await outcome((all) => session.prompt(text, all), plainly);
  await session.close();
  return found;
}

/** @typedef {Awaited<ReturnType<Engine['createSession']>>} Session */

/** @param {Engine} engine @param {Session} trunk @param {Uint8Array<ArrayBuffer>} state @param {Case} one */
async function beside(engine, trunk, state, { text, options, way }) {
  const proposing = { ...options, speculation: /** @type {const} */ ('always') };
  if (way === 'plain') return outcome((all) => engine.generate(before + text, all), proposing);
  const session = way === 'fork' ? await trunk.fork() : (await engine.loadState(state)).session;
  assert.ok(session);
  const found = await outcome((all) => session.prompt(text, all), proposing);
  await session.close();
  return found;
}

test('a constrained request gives the same text whatever else the engine does', async (t) => {
  const plain = await openEngine(t, { file: modelPath, prefixCache: false, contextSize: 192 });
  const full = await openEngine(t, {
    ...{ file: modelPath, contextSize: 192, kvTokens: 192, threads: 2 },
    draft: { file: modelPath.replace('q8_0', 'q4_0') },
  });
  const trunk = await full.createSession();
  await trunk.append(before);
  const state = await trunk.save();
  const rounds = soakCount(400);
  const counts = { same: 0, refused: 0 };
  for (let round = 0; round < rounds; round++) {
    const random = randomFrom(soakSeed * 1e6 + round);
    const cases = Array.from({ length: 2 + random.below(6) }, () => caseOf(random));
    const found = await Promise.all(cases.map((one) => beside(full, trunk, state, one)));
    for (const [index, one] of cases.entries()) {
      const wanted = await alone(plain, one);
      assert.deepEqual(found[index], wanted, `${round}.${index}: ${JSON.stringify(one)}`);
      counts['refused' in wanted ? 'refused' : 'same']++;
    }
  }
  const { requests, tokens } = await full.stats();
  t.diagnostic(
    `${JSON.stringify(counts)}, ${requests.preempted} gave way, ` +
      `${tokens.accepted} of ${tokens.proposed} proposed tokens taken`,
  );
  assert.ok(counts.same > counts.refused * 4, JSON.stringify(counts));
  assert.ok(requests.preempted > 0, 'no request was preempted');
  assert.ok(tokens.accepted > 0, 'no proposal was accepted');
});
