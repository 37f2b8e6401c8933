// The typed interface wick:llm: guests in JavaScript, Python and Rust, composed with the engine component, in wasmtime.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { openSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { built, locate } from '../support/locate.mjs';
import {
  bodyAbout,
  imagePartOf,
  messagePartOf,
  partOf,
  ppmOf,
  texts,
  typeOf,
  skip as withoutVectors,
} from '../support/media_files.mjs';
import { createEngine, modelPath, temporaryFolder } from '../support/package.mjs';

const skip = locate('wasmtimeCommand').skip;
const prompt = 'The fox';
const folder = temporaryFolder();
/** @param {string} path in the repository @returns {string} the absolute path */
const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** @param {string} program @param {string[]} args @param {number} [input] */
function run(program, args, input) {
  const child = spawnSync(program, args, {
    stdio: [input ?? 'ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    timeout: 600000, // the Rust guest compiles 40 crates
    maxBuffer: 1e7,
  });
  assert.equal(child.status, 0, child.stderr);
  return child.stdout;
}

/** @param {string} guest @param {string} out @param {string} [input] a file @returns {string} the result of its `ask` */
function ask(guest, out, input = modelPath) {
  const wit = at('examples/component/guest.wit');
  const engine = built('edge/wick-llm.wasm');
  run(locate('node24').path, [at('tools/component/guest.mjs'), at(guest), wit, engine, out]);
  const flags = ['-Scli', '-Sp3', '-Wcomponent-model-async', '--invoke', `ask("${prompt}")`];
  const output = run(locate('wasmtimeCommand').path, ['run', ...flags, out], openSync(input, 'r'));
  return JSON.parse(output.replaceAll("\\'", "'")); // wasmtime prints a string in WAVE syntax
}

/** @param {string} text @param {number} count @returns {string} the continuation that `wick run` prints */
const native = (text, count) =>
  run(built('native/wick'), ['run', modelPath, '-p', text, '-n', `${count}`]);

describe('wick:llm', { skip }, () => {
  for (const [language, missing] of [
    ['js', false],
    ['py', locate('componentizePy').skip],
    ['rs', locate('rustForWasm').skip],
  ]) {
    test(`the example’s guest.${language} streams the same text as wick run`, {
      skip: missing,
    }, () => {
      const guest = `examples/component/guest.${language}`;
      assert.equal(ask(guest, `${folder}/${language}.wasm`), native(prompt, 40));
    });
  }

  test('concurrent requests, embeddings, sessions, conversations and errors work', async () => {
    const answers = JSON.parse(ask('tests/support/llm_guest.js', `${folder}/all.wasm`));
    const text = native(prompt, 40);
    assert.ok(answers.pieces > 10, 'the file is read in pieces');
    assert.equal(answers.info.architecture, 'llama');
    assert.equal(answers.info.contextTokens, 256);

    assert.equal(answers.text.text, text);
    assert.ok(answers.text.pieces.length > 20, 'the text is streamed');
    const { finish, tokensOut } = answers.text.ending.val;
    assert.deepEqual([finish, tokensOut], ['length', 40]);
    assert.deepEqual(answers.together, [native(`${prompt} 0`, 12), native(`${prompt} 1`, 12)]);
    assert.deepEqual(answers.together, answers.alone);

    checkVectors(answers.vectors.val);
    checkSessions(answers.sessions);
    await checkChats(answers.chats);
    assert.equal(answers.left.first, answers.text.pieces[0]);
    assert.equal(answers.left.ending.val.tag, 'aborted');
    assert.equal(answers.after, text, 'the model continues after a dropped stream');
    checkErrors(answers.errors);
    assert.equal(answers.dropped.ended.val.tag, 'aborted');
    assert.equal(
      answers.dropped.text,
      native(prompt, 12),
      'a request outlives the handle of its model',
    );
  });
});

const mediaSkip = { skip: skip || withoutVectors };

/** @param {string} id of a type @param {object} head input for the media guest @returns {any} its report */
function askAboutMedia(id, head) {
  const { model, mmproj } = typeOf(id);
  const files = [readFileSync(model), readFileSync(mmproj)];
  const line = JSON.stringify({ model: files[0].length, template: texts, ...head });
  const input = `${folder}/media.bin`;
  writeFileSync(input, Buffer.concat([Buffer.from(`${line}\n`), ...files]));
  return JSON.parse(ask('tests/support/llm_media_guest.js', `${folder}/media.wasm`, input));
}

test('wick:llm stops encoding an image when its stream is dropped', mediaSkip, () => {
  const bodies = [320, 319, 318, 317, 316].map((width) => {
    const rgb = new Uint8Array(3 * width * 16).map((_, i) => i * i); // few bytes, but the image is scaled up
    return bodyAbout(imagePartOf(ppmOf(rgb, width, 16)));
  });
  const { left, text } = askAboutMedia('gemma4', { leaving: bodies });
  for (const { left: ending, whole } of left) {
    assert.deepEqual([ending.val.tag, whole.tag], ['aborted', 'ok']);
  }
  // the minimum of each kind is least affected by other processes
  const leftMs = Math.min(...left.map((/** @type {any} */ one) => one.leftMs));
  const wholeMs = Math.min(...left.map((/** @type {any} */ one) => one.wholeMs));
  assert.ok(leftMs < wholeMs / 2, `${leftMs} ms of ${wholeMs}`);
  assert.ok(text.length > 0);
});

test('wick:llm accepts images in conversations', mediaSkip, async () => {
  const { model, mmproj } = typeOf('gemma3');
  const known = messagePartOf(partOf('gemma3', 'sq'));
  const bodies = {
    known: bodyAbout(known),
    other: bodyAbout(messagePartOf(partOf('gemma3', 'wide'))),
    many: { messages: [{ role: 'user', content: Array(600).fill(known) }] },
    png: bodyAbout({ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }),
    video: bodyAbout({ type: 'image_url', image_url: {} }),
  };
  const answers = askAboutMedia('gemma3', { bodies });
  const engine = await createEngine({
    ...{ file: model, mmproj, threads: 1, contextSize: 512, chatTemplate: texts },
  });
  for (const name of /** @type {const} */ (['known', 'other'])) {
    const body = /** @type {any} */ ({ ...bodies[name], max_tokens: 12 });
    const { choices, usage } = /** @type {any} */ (
      await engine.chat.completions.create({ ...body, ignore_eos: false })
    );
    assert.equal(answers.replies[name].text, choices[0].message.content);
    assert.equal(answers.replies[name].ending.val.tokensPrompt, usage?.prompt_tokens);
  }
  await engine.close();
  assert.equal(answers.both.text, answers.replies.other.text);
  assert.equal(answers.text, answers.alone);
  assert.deepEqual([answers.loaded.tag, answers.again.val.tag], ['ok', 'busy']);
  assert.equal(answers.broken.val.tag, 'truncated');
  const refusals = Object.entries({ ...answers.replies, without: answers.without })
    .filter(([, { refused }]) => refused)
    .map(([name, { refused }]) => [name, refused.tag, refused.val.message]);
  assert.deepEqual(
    refusals.map(([name, tag]) => [name, tag]),
    [
      ['many', 'full'],
      ['png', 'unsupported'],
      ['video', 'argument'],
      ['without', 'unsupported'],
    ],
  );
  const words = [
    /^conversation: prompt: images and recordings have/,
    /decodes only PPM/,
    /must have a url/,
    /mmproj/,
  ];
  for (const [index, word] of words.entries()) assert.match(refusals[index][2], word);
});

/** @param {number[][]} vectors */
function checkVectors(vectors) {
  assert.equal(vectors.length, 3);
  assert.deepEqual(vectors[0], vectors[1]);
  assert.notDeepEqual(vectors[0], vectors[2]);
  for (const vector of vectors) {
    assert.equal(vector.length, 4);
    assert.ok(Math.abs(Math.hypot(...vector) - 1) < 1e-5);
  }
}

/** @param {any} answers */
function checkSessions({ first, counts, texts, refused, stateBytes }) {
  assert.equal(first, native(prompt, 12));
  assert.equal(counts[0], 3 + 12); // prompt and answer
  assert.equal(new Set(counts).size, 1);
  assert.ok(texts[0].length > 0);
  assert.equal(new Set(texts).size, 1, 'a fork and a restored session continue like the session');
  assert.equal(refused.tag, 'corrupt');
  assert.ok(stateBytes > 1000);
}

/** Compares conversations with those of the package. @param {any} found the guest's output */
async function checkChats(found) {
  const engine = await createEngine({ file: modelPath, threads: 1, contextSize: 256 });
  const messages = [{ role: 'user', content: 'Tell me a story about a fox.' }];
  const text = await engine.chat.completions.create(
    /** @type {any} */ ({ messages, temperature: 0, max_tokens: 12 }),
  );
  await engine.close();
  const contentOf = (/** @type {any} */ { deltas }) =>
    deltas.map((/** @type {any} */ delta) => delta.content ?? '').join('');
  assert.equal(contentOf(found.reply), /** @type {any} */ (text).choices[0].message.content);
  assert.equal(found.reply.ending.val.tokensOut, 12);
  assert.ok(found.reply.deltas.length > 4, 'the reply is streamed');
  assert.deepEqual(JSON.parse(contentOf(found.json)), ['fox', 7]);
  checkCall(found.calls);

  assert.match(found.regex, /^(hen|bus){2}$/);
  assert.match(found.gbnf, /^ab+\.?$/);
  assert.equal(found.choice, 'net');
  assert.equal(found.wrong.tag, 'argument');
  assert.deepEqual([found.noMessages.tag, found.noJson.tag], ['format', 'format']);

  assert.ok(found.tokens.length > 1);
  assert.equal(found.text, 'The fox');
  assert.equal(found.unknown.tag, 'argument');
  const [first, again, other] = found.tenants;
  assert.equal(first, 0);
  assert.ok(again >= 16, 'a tenant finds its own cached tokens');
  assert.equal(other, 0, 'a different tenant does not');

  assert.match(found.rendered, /Tell me a story about a fox\./);
  assert.equal(found.changed, 'TELL ME A STORY ABOUT A FOX.');
  assert.equal(found.refused.tag, 'format');
  assert.equal(found.again, found.rendered);
}

/** @param {any} reply must contain a call */
function checkCall({ deltas, ending }) {
  const calls = deltas.flatMap((/** @type {any} */ delta) => delta.tool_calls ?? []);
  const parts = calls.map((/** @type {any} */ part) => part.function.arguments ?? '');
  assert.equal(calls[0].function.name, 'count');
  assert.deepEqual(JSON.parse(parts.join('')), { n: 7 });
  assert.equal(ending.val.finish, 'stop');
}

/** @param {any} errors */
function checkErrors({ broken, cut, memory, empty, temperature }) {
  assert.deepEqual([broken.tag, broken.val.tag, broken.val.val.offset], ['err', 'format', 0]);
  assert.equal(cut.val.tag, 'truncated');
  assert.equal(memory.val.tag, 'memory');
  assert.match(memory.val.val.setting, /memory_bytes_max/);
  assert.match(memory.val.val.message, /the budget is 2000000/);
  assert.equal(empty.val.tag, 'argument');
  assert.deepEqual([temperature.tag, temperature.val.setting], ['argument', 'temperature']);
}
