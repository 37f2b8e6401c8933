// A guest that calls all functions of wick:llm and prints the results as JSON
// (tests/edge/component_llm.test.mjs).
// @ts-nocheck component imports have no types here

import stdin from 'wasi:cli/stdin@0.3.0';
import llm from 'wick:llm/engine@0.2.0';

const config = { memoryBytesMax: 0, contextTokens: 256, kvTokensMax: 0 };
const options = {
  ...{ maxTokens: 12, temperature: 0, topK: 0, topP: 1, minP: 0, repeatPenalty: 1, seed: 0 },
  ...{ controlTokens: true, stops: [], salt: '', constraint: { kind: 'none', text: '' } },
};

/** @param {Uint8Array[]} pieces */
async function* each(pieces) {
  yield* pieces;
}

/** @param {Uint8Array[]} pieces @param {any} [limits] */
async function load(pieces, limits = config) {
  return llm.load(each(pieces), limits).read();
}

/** @param {any} from a model or a session @param {string} prompt @param {any} [changed] */
async function textOf(from, prompt, changed = {}) {
  const [stream, ending] = from.generate(prompt, { ...options, ...changed });
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return { pieces, text: pieces.join(''), ending: await ending.read() };
}

/** @param {() => any} call @returns {any} the thrown error */
function errorOf(call) {
  try {
    call();
    return 'none';
  } catch (error) {
    return error?.payload ?? error;
  }
}

/** @param {any} model */
async function sessions(model) {
  const session = model.open('');
  const first = await textOf(session, 'The fox');
  const fork = session.fork();
  const state = session.save();
  const restored = model.restore(state);
  const counts = [session.countTokens(), fork.countTokens(), restored.countTokens()];
  const texts = [];
  for (const one of [session, fork, restored]) texts.push((await textOf(one, ' and')).text);
  const damaged = Uint8Array.from(state);
  damaged[damaged.length >> 1] ^= 255;
  const refused = errorOf(() => model.restore(damaged));
  return { first: first.text, counts, texts, refused, stateBytes: state.length };
}

const call = {
  type: 'function',
  function: {
    name: 'count',
    parameters: { type: 'object', properties: { n: { enum: [7] } }, required: ['n'] },
  },
};

/** @param {any} model @param {object} conversation @param {any} [changed] */
async function replyOf(model, conversation, changed = {}) {
  const [stream, ending] = model.chat(JSON.stringify(conversation), { ...options, ...changed });
  const deltas = [];
  for await (const piece of stream) deltas.push(...JSON.parse(piece));
  return { deltas, ending: await ending.read() };
}

/** Tests templates, constraints, tools, tokens and tenants. @param {any} model */
async function chats(model) {
  const messages = [{ role: 'user', content: 'Tell me a story about a fox.' }];
  const tokens = model.tokenize('The fox', true);
  const constraint = (/** @type {string} */ kind, /** @type {string} */ text) => ({
    maxTokens: 60,
    constraint: { kind, text },
  });
  const schema = constraint('json-schema', '{"enum":[["fox",7]]}');
  const long = `${'The fox ran over the hill. '.repeat(8)}`;
  const cachedOf = async (/** @type {string} */ salt) =>
    (await textOf(model, long, { salt, maxTokens: 1 })).ending.val.tokensCached;
  const answers = {
    reply: await replyOf(model, { messages }),
    json: await replyOf(model, { messages }, schema),
    calls: await replyOf(
      model,
      { messages, tools: [call], tool_choice: 'required' },
      { maxTokens: 100 },
    ),
    regex: (await textOf(model, 'The fox', constraint('regex', '(hen|bus){2}'))).text,
    gbnf: (await textOf(model, 'The fox', constraint('gbnf', 'root ::= "a" "b"+ "."'))).text,
    choice: (await textOf(model, 'The fox', constraint('choice', '["net"]'))).text,
    wrong: errorOf(() => model.generate('a', { ...options, ...constraint('gbnf', 'root ::= (') })),
    noMessages: errorOf(() => model.chat('{"messages":7}', options)),
    noJson: errorOf(() => model.chat('{', options)),
    tokens: [...tokens],
    text: model.detokenize(tokens),
    unknown: errorOf(() => model.detokenize(Int32Array.of(1 << 20))),
    tenants: [await cachedOf('one'), await cachedOf('one'), await cachedOf('two')],
    rendered: model.render(JSON.stringify({ messages })),
  };
  model.setTemplate('{{ messages[0].content | upper }}');
  const changed = model.render(JSON.stringify({ messages }));
  const refused = errorOf(() => model.setTemplate('{% if %}'));
  model.setTemplate('');
  const again = model.render(JSON.stringify({ messages }));
  return { ...answers, changed, refused, again };
}

/** @param {any} model */
async function left(model) {
  const [stream, ending] = model.generate('The fox', { ...options, maxTokens: 200 });
  const first = await stream.next();
  await stream.return();
  return { first: first.value, ending: await ending.read() };
}

/** Drops a session during its request, and then its model. @param {any} model */
async function dropped(model) {
  const session = model.open('');
  const [stream, ending] = session.generate('The fox', { ...options, maxTokens: 200 });
  await stream.next();
  session[Symbol.dispose]();
  for await (const _ of stream);
  const ended = await ending.read();
  const [last] = model.generate('The fox', options);
  model[Symbol.dispose]();
  let text = '';
  for await (const piece of last) text += piece;
  return { ended, text };
}

/** @param {string} prompt */
export async function ask(prompt) {
  const pieces = [];
  for await (const piece of stdin.readViaStream()[0]) pieces.push(Uint8Array.from(piece));
  const { val: model } = await load(pieces);
  const [text, both] = [await textOf(model, prompt, { maxTokens: 40 }), [0, 1]];
  const together = await Promise.all(both.map((i) => textOf(model, `${prompt} ${i}`)));
  const alone = [];
  for (const i of both) alone.push(await textOf(model, `${prompt} ${i}`));
  const vectors = await model.embed(['a fox', 'a fox', 'a net'], 4, true).read();
  const broken = pieces[0].slice();
  broken[0] ^= 1;
  return JSON.stringify({
    ...{ pieces: pieces.length, info: model.getInfo(), text, vectors },
    together: together.map((one) => one.text),
    alone: alone.map((one) => one.text),
    sessions: await sessions(model),
    chats: await chats(model),
    left: await left(model),
    after: (await textOf(model, prompt, { maxTokens: 40 })).text,
    errors: {
      broken: await load([broken, ...pieces.slice(1)]),
      cut: await load(pieces.slice(0, 3)),
      memory: await load(pieces, { ...config, memoryBytesMax: 2e6 }),
      empty: await model.embed([], 0, true).read(),
      temperature: errorOf(() => model.generate(prompt, { ...options, temperature: -1 })),
    },
    dropped: await dropped(model),
  });
}
