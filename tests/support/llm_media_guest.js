// A guest that asks wick:llm questions about images, and prints the results as JSON (tests/edge/component_llm.test.mjs).
// Its input is a line of JSON with the model's size, a template, and bodies of requests to answer or to drop, followed by
// both files.
// @ts-nocheck component imports have no types here

import stdin from 'wasi:cli/stdin@0.3.0';
import llm from 'wick:llm/engine@0.2.0';

const config = { memoryBytesMax: 0, contextTokens: 512, kvTokensMax: 0 };
const options = {
  ...{ maxTokens: 12, temperature: 0, topK: 0, topP: 1, minP: 0, repeatPenalty: 1, seed: 0 },
  ...{ controlTokens: true, stops: [], salt: '', constraint: { kind: 'none', text: '' } },
};

/** @param {Uint8Array} bytes */
async function* pieces(bytes) {
  for (let at = 0; at < bytes.length; at += 65536) yield bytes.slice(at, at + 65536);
}

/** @param {any} model @param {object} body */
async function replyOf(model, body) {
  let started;
  try {
    started = model.chat(JSON.stringify(body), options);
  } catch (error) {
    return { refused: error?.payload ?? error };
  }
  const [stream, ending] = started;
  let text = '';
  for await (const piece of stream) {
    for (const { content = '' } of JSON.parse(piece)) text += content;
  }
  return { text, ending: await ending.read() };
}

/** Drops one stream while its image is encoded, then reads a complete reply. @param {any} model @param {object} body */
async function leave(model, body) {
  const begin = performance.now();
  const [stream, ending] = model.chat(JSON.stringify(body), options);
  await stream.return();
  const left = await ending.read();
  const middle = performance.now();
  const { ending: whole } = await replyOf(model, body);
  return { left, whole, leftMs: middle - begin, wholeMs: performance.now() - middle };
}

/** @param {any} model */
async function textOf(model) {
  const [stream] = model.generate('Once', options);
  let text = '';
  for await (const piece of stream) text += piece;
  return text;
}

/** @returns {Promise<Uint8Array>} */
async function input() {
  const read = [];
  for await (const piece of stdin.readViaStream()[0]) read.push(Uint8Array.from(piece));
  const all = new Uint8Array(read.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of read) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

export async function ask() {
  const all = await input();
  const end = all.indexOf(10);
  let head = '';
  for (let i = 0; i < end; i++) head += String.fromCharCode(all[i]);
  const { model: size, bodies, template, leaving } = JSON.parse(head);
  const { val: model } = await llm.load(pieces(all.slice(end + 1, end + 1 + size)), config).read();
  const mmproj = all.slice(end + 1 + size);
  model.setTemplate(template);
  if (leaving) {
    await model.loadMedia(pieces(mmproj)).read();
    const left = [];
    for (const body of leaving) left.push(await leave(model, body));
    return JSON.stringify({ left, text: await textOf(model) });
  }
  const without = await replyOf(model, bodies.known);
  const broken = await model.loadMedia(pieces(mmproj.slice(0, 4000))).read();
  const loaded = await model.loadMedia(pieces(mmproj)).read();
  const again = await model.loadMedia(pieces(mmproj)).read();
  const replies = {};
  for (const [name, body] of Object.entries(bodies)) replies[name] = await replyOf(model, body);
  const [both, text] = await Promise.all([replyOf(model, bodies.other), textOf(model)]);
  return JSON.stringify({
    without,
    broken,
    loaded,
    again,
    replies,
    both,
    text,
    alone: await textOf(model),
  });
}
