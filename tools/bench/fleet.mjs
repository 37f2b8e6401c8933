// Measures 1 to 4 instances behind HAProxy (examples/fleet), with sticky sessions and with round
// robin: requests per second, the share of prompt tokens that were in the prefix cache, and the
// time to the first token.
//   node tools/bench/fleet.mjs [--kind workerd|node|wasmtime] [--counts 1,2,4] [--sessions 16] [--turns 5] [--clients 4]
//     [--rounds 3] [--model FILE]
// The load is generated on the same processors.

import { parseArgs } from 'node:util';
import { ask } from '../../tests/support/example_servers.mjs';
import { startFleet } from '../../tests/support/fleet.mjs';
import { environmentLine } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { median } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    kind: { type: 'string', default: 'workerd' },
    counts: { type: 'string', default: '1,2,3,4' },
    sessions: { type: 'string', default: '16' },
    turns: { type: 'string', default: '5' },
    clients: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    model: { type: 'string' },
  },
});
const [sessionCount, turns, clients, rounds] = /** @type {const} */ ([
  'sessions',
  'turns',
  'clients',
  'rounds',
]).map((name) => Number(options[name]));
const ANSWER_TOKENS = 24;

/**
 * @typedef {{messages: {role: string, content: string}[], turn: number, name: string}} Session
 * @typedef {{prompt: number, cached: number, firstMs: number[], seconds: number, failed: number}} Sums
 */

/**
 * Makes the system prompt of a town guide, different for each town, with about 350 tokens.
 * @param {number} index
 * @returns {Session}
 */
function sessionOf(index) {
  const street = (/** @type {number} */ i) =>
    `In street ${i} of town ${index} lives a cat that knows ${(i * 7 + index) % 50} stories.`;
  const content = Array.from({ length: 14 }, (_, i) => street(i)).join(' ');
  return { messages: [{ role: 'system', content }], turn: 0, name: `town ${index}` };
}

/** @param {string} origin @param {Session} session @param {Sums} sums */
async function takeTurn(origin, session, sums) {
  session.messages.push({ role: 'user', content: `Tell me story ${++session.turn}.` });
  const { messages, name } = session;
  const body = { messages, temperature: 0, max_tokens: ANSWER_TOKENS, stream: true };
  const started = performance.now();
  const headers = { 'content-type': 'application/json', 'x-session-id': name };
  const wanted = { ...body, stream_options: { include_usage: true } };
  const response = await ask(origin, '/v1/chat/completions', wanted, { headers });
  if (!response.body || response.status !== 200) {
    sums.failed++;
    return;
  }
  let [text, events] = ['', ''];
  const decoder = new TextDecoder();
  for await (const bytes of response.body) {
    if (events === '') sums.firstMs.push(performance.now() - started);
    events += decoder.decode(bytes, { stream: true });
  }
  for (const line of events.split('\n\n').filter((one) => one.startsWith('data: {'))) {
    const { choices, usage } = JSON.parse(line.slice(6));
    text += choices[0]?.delta.content ?? '';
    if (!usage) continue;
    sums.prompt += usage.prompt_tokens;
    sums.cached += usage.prompt_tokens_details.cached_tokens;
  }
  messages.push({ role: 'assistant', content: text });
}

/** @param {number} count @param {'hash' | 'roundrobin'} routing @returns {Promise<Sums>} */
async function measure(count, routing) {
  const kind = /** @type {import('../../tests/support/fleet.mjs').Kind} */ (options.kind);
  const fleet = await startFleet({
    ...{ count, kind, routing },
    ...(options.model && { model: options.model }),
  });
  try {
    // makes every instance load its model
    for (const { origin } of fleet.instances) {
      const body = { prompt: 'Once', max_tokens: 4 };
      await (await ask(origin, '/v1/completions', body)).text();
    }
    /** @type {Sums} */
    const sums = { prompt: 0, cached: 0, firstMs: [], seconds: 0, failed: 0 };
    const ready = Array.from({ length: sessionCount }, (_, index) => sessionOf(index));
    const started = performance.now();
    const client = async () => {
      for (let session = ready.shift(); session; session = ready.shift()) {
        await takeTurn(fleet.origin, session, sums);
        if (session.turn < turns) ready.push(session);
      }
    };
    await Promise.all(Array.from({ length: clients }, client));
    sums.seconds = (performance.now() - started) / 1000;
    return sums;
  } finally {
    await fleet.close();
  }
}

/** @param {number[]} values @param {number} share */
const quantile = (values, share) =>
  [...values].sort((a, b) => a - b)[Math.ceil(values.length * share) - 1];

console.log(`${environmentLine(describeEnvironment())}
${options.kind}, ${sessionCount} sessions of ${turns} turns, ${clients} clients, answers of ${ANSWER_TOKENS} tokens, median of ${rounds} rounds

| instances | routing | requests/s | prompt tokens from the cache | first token, ms: median | p95 | failed |
|---|---|---|---|---|---|---|`);
for (const count of options.counts.split(',').map(Number)) {
  /** @type {Record<'hash' | 'roundrobin', Sums[]>} */
  const all = { hash: [], roundrobin: [] };
  for (let round = 0; round < rounds; round++) {
    all.hash.push(await measure(count, 'hash'));
    if (count > 1) all.roundrobin.push(await measure(count, 'roundrobin'));
  }
  for (const [name, found] of Object.entries(all).filter(([, one]) => one.length > 0)) {
    const routing = count === 1 ? 'one' : name === 'hash' ? 'by session' : 'round robin';
    const rate = median(found.map(({ seconds }) => (sessionCount * turns) / seconds));
    const hits = median(found.map(({ cached, prompt }) => (100 * cached) / prompt));
    const first = found.flatMap(({ firstMs }) => firstMs);
    const failed = found.reduce((sum, one) => sum + one.failed, 0);
    const times = [median(first), quantile(first, 0.95)].map((ms) => ms.toFixed(0));
    console.log(
      `| ${count} | ${routing} | ${rate.toFixed(1)} | ${hits.toFixed(0)}% | ${times.join(' | ')} | ${failed} |`,
    );
  }
}
