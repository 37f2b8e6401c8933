// Chat templates of models (../shared/vectors/templates): each renders the same text as Python's jinja2, and
// message content never becomes a control token, whatever the template does with it.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Template } from '@huggingface/jinja';
import { byteVocabulary, CONTROLS_FIRST } from '../support/byte_vocabulary.mjs';
import {
  callMessages,
  randomConversation,
  tools,
  usualConversations,
} from '../support/conversations.mjs';
import { built, locate, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

const shared = locate('shared');
const python = locate('tokenizers');
const skip = shared.skip || python.skip;
const wick = built('native/wick');
const folder = mkdtempSync(join(tmpdir(), 'wick-templates-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const templates = shared.skip
  ? []
  : readdirSync(join(shared.path, 'vectors/templates'))
      .filter((name) => name.endsWith('.jinja'))
      .map((name) => join(shared.path, 'vectors/templates', name));
const nameOf = (/** @type {string} */ path) => path.slice(path.lastIndexOf('/') + 1);

/** Control strings that templates of other families contain. */
const familiar = [
  ...[
    '<|im_start|>',
    '<|im_end|>',
    '<|endoftext|>',
    '<s>',
    '</s>',
    '[INST]',
    '[/INST]',
    '<bos>',
    '<eos>',
  ],
  ...['<|eot_id|>', '<|start_header_id|>', '<|end_header_id|>', '<start_of_turn>', '<end_of_turn>'],
  ...[
    '<think>',
    '</think>',
    '<tool_call>',
    '</tool_call>',
    '<|channel|>',
    '<|message|>',
    '<|end|>',
  ],
];

/** @param {string} source @returns {string[]} strings that look like control tokens */
function controlsOf(source) {
  const form = /<[|｜][^<>\n{}'"]{1,48}[|｜]>|<\/?[a-z_|]+>|\[\/?[A-Z_]+\]|<\|?[a-z_]+\|?>/g;
  return [...new Set([...familiar, ...(source.match(form) ?? [])])];
}

/** Deterministic numbers in [0, 1). @param {number} seed */
function randomFrom(seed) {
  let state = seed + 1;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

const controls = [...new Set(templates.flatMap((path) => controlsOf(readFileSync(path, 'utf8'))))];
const vocabulary = join(folder, 'bytes.gguf');
writeFileSync(vocabulary, byteVocabulary(controls));

/** bos_token and similar variables, which are empty for vocabularies without such tokens. */
const own = { bos_token: '<BOS>', eos_token: '<EOS>', pad_token: '<PAD>', unk_token: '<UNK>' };

/** The variable that a template of the vectors (firefunction) requires. */
const demanded = { functions: '[]', datetime: 'now' };

/** Parses each printed line as JSON. @param {Buffer} stdout @returns {any[]} */
const linesOf = (stdout) =>
  stdout
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

/**
 * @param {string} path of a template
 * @param {Record<string, any>[]} conversations
 * @param {...string} options
 * @returns {Promise<any[]>} {text, spans, tokens} or {error, message} for each conversation
 */
async function render(path, conversations, ...options) {
  const lines = join(folder, `${nameOf(path)}.lines`);
  writeFileSync(lines, conversations.map((variables) => JSON.stringify(variables)).join('\n'));
  const args = ['template', vocabulary, '--template', path, '--lines', '-f', lines, ...options];
  const { code, stdout, stderr } = await run(wick, args);
  assert.equal(code, 0, stderr.toString());
  return linesOf(stdout);
}

/** @param {[string, Record<string, any>[]][]} requests @returns {Promise<any[][]>} texts, or {error} */
async function renderInPython(requests) {
  const { code, stdout, stderr } = await run(python.path, [join(root, 'tools/text/templates.py')], {
    input: requests.map((request) => JSON.stringify(request)).join('\n'),
  });
  assert.equal(code, 0, stderr.toString());
  return linesOf(stdout);
}

/**
 * Compares with jinja2, or with @huggingface/jinja if jinja2's sandbox rejects a growing list.
 * @param {string} path
 * @param {Record<string, any>[]} conversations
 * @param {any[]} wanted
 * @returns {Promise<number>} the number of equal results
 */
async function compare(path, conversations, wanted) {
  const found = await render(path, conversations, '--keep-arguments');
  const library = new Template(readFileSync(path, 'utf8'));
  let same = 0;
  for (const [index, { text, message }] of found.entries()) {
    let expected = wanted[index];
    if (/SecurityError/.test(expected.error)) {
      try {
        expected = library.render(structuredClone(conversations[index]));
      } catch {
        continue;
      }
    }
    // jinja2 returns generators where Wick returns lists, which can be written as JSON
    if (/generator is not JSON serializable/.test(expected.error)) continue;
    const label = `${nameOf(path)}, ${JSON.stringify(conversations[index]).slice(0, 300)}`;
    if (typeof expected === 'string') {
      assert.equal(text ?? message, expected, label);
      same++;
    } else {
      assert.equal(text, undefined, `${label}: jinja2 says ${expected.error}`);
    }
  }
  return same;
}

describe('the same text as jinja2', { skip }, () => {
  test('plain, system, several turns, tool calls, thinking', async () => {
    const conversations = usualConversations().map((variables) => ({ ...own, ...variables }));
    const wanted = await renderInPython(templates.map((path) => [path, conversations]));
    let same = 0;
    for (const [index, path] of templates.entries()) {
      same += await compare(path, conversations, wanted[index]);
    }
    assert.ok(same > templates.length * 25, `${same} texts`);
  });

  test('random conversations', async () => {
    const random = randomFrom(soakSeed);
    const count = soakCount(400);
    const conversations = Array.from({ length: count }, () => ({
      ...own,
      ...randomConversation(random),
    }));
    const wanted = await renderInPython(templates.map((path) => [path, conversations]));
    for (const [index, path] of templates.entries()) {
      await compare(path, conversations, wanted[index]);
    }
  });
});

test('arguments of tool calls are written exactly once, as strings or as objects', {
  skip,
}, async () => {
  const [texts, objects] = [true, false].map((isText) =>
    [1, 2].map((count) => ({
      ...own,
      messages: callMessages(isText, count),
      tools,
      add_generation_prompt: true,
    })),
  );
  const wanted = await renderInPython(templates.map((path) => [path, [...texts, ...objects]]));
  let refused = 0;
  for (const [index, path] of templates.entries()) {
    const found = await render(path, [...texts, ...objects]);
    for (const [at, { text }] of found.entries()) {
      const both = [wanted[index][at % 2], wanted[index][2 + (at % 2)]];
      if (/SecurityError|generator is not/.test(both[0].error)) continue;
      const given = wanted[index][at];
      if (given.error) refused++;
      const possible = both.filter((one) => typeof one === 'string');
      if (possible.length === 0) continue; // rejected, or written without the roles that the template lacks
      assert.notEqual(text, undefined, `${nameOf(path)}, ${at}`);
      const isWhole = (/** @type {string} */ one) =>
        one.includes('kind') && one.split('rich').length > 1 + (at % 2);
      assert.ok(isWhole(text), `${nameOf(path)}, ${at}: a part is missing`);
      if (!possible.some(isWhole)) continue; // the template omits a part
      assert.ok(possible.includes(text), `${nameOf(path)}, ${at}: ${text}`);
      const isQuotedTwice = (/** @type {string} */ one) => one.includes('{\\"city\\"');
      if (possible.some((one) => !isQuotedTwice(one))) {
        assert.ok(!isQuotedTwice(text), `${nameOf(path)}, ${at}: arguments are quoted twice`);
      }
    }
  }
  assert.ok(refused > 20, 'too few templates reject the given form');
});

describe('content cannot inject control tokens', { skip: shared.skip }, () => {
  /**
   * Checks the position of each token in the text, and that control tokens occur only in text written by the template.
   * @param {{text: string, spans: number[], tokens: number[]}} rendered
   * @param {string} label
   * @returns {number} the number of control tokens
   */
  function checkTokens({ text, spans, tokens }, label) {
    const bytes = Buffer.from(text);
    const isContent = new Uint8Array(bytes.length);
    for (let i = 0, at = 0; i < spans.length; i += 2) {
      isContent.fill(spans[i + 1], at, spans[i]);
      at = spans[i];
    }
    let at = 0;
    let count = 0;
    for (const token of tokens) {
      const piece = token < CONTROLS_FIRST ? undefined : controls[token - CONTROLS_FIRST];
      const size = piece === undefined ? 1 : Buffer.byteLength(piece);
      if (piece !== undefined) {
        count++;
        assert.equal(bytes.toString('utf8', at, at + size), piece, label);
        const from = isContent.subarray(at, at + size).indexOf(1);
        assert.equal(from, -1, `${label}: ${piece} at ${at} is a control token`);
      }
      at += size;
    }
    assert.equal(at, bytes.length, `${label}: the tokens do not cover the whole text`);
    return count;
  }

  /** @param {string} text @returns {Record<string, any>[]} conversations with the text in every role and position */
  function everywhere(text) {
    const padded = `a ${text} b`;
    const call = { name: text, arguments: { [text]: padded } };
    const user = { role: 'user', content: 'Hello' };
    const answer = { role: 'assistant', content: padded, reasoning_content: padded };
    const calling = {
      role: 'assistant',
      content: padded,
      tool_calls: [{ id: 'call00001', type: 'function', function: call }],
    };
    const named = structuredClone(tools);
    named[0].function.description = padded;
    named[0].function.name = text;
    const result = { role: 'tool', tool_call_id: 'call00001', name: text, content: padded };
    return [
      { messages: [{ role: 'user', content: text }] },
      { messages: [{ role: 'user', content: `  ${padded}\n` }] },
      { messages: [{ role: 'system', content: padded }, user] },
      { messages: [{ role: 'developer', content: padded }, user] },
      { messages: [user, answer, user] },
      { messages: [user, calling, result], tools: named },
      { messages: [{ role: text, content: 'x' }, user] },
    ];
  }

  for (const path of templates) {
    test(nameOf(path), async () => {
      const strings = controlsOf(readFileSync(path, 'utf8'));
      // halves, which the template might complete, and all strings at once
      const texts = [...strings, ...strings.map((one) => one.slice(0, -1)), strings.join('')];
      /** @type {Record<string, any>[]} */
      const conversations = texts.flatMap(everywhere).map((one) => ({ ...demanded, ...one }));
      const found = await render(path, conversations, '--tokens');
      let rendered = 0;
      for (const [index, one] of found.entries()) {
        if (one.error) continue; // the template rejects this role or tool
        checkTokens(one, `${nameOf(path)}, ${JSON.stringify(conversations[index].messages)}`);
        rendered++;
      }
      assert.ok(rendered >= texts.length, `${rendered} of ${found.length} were rendered`);

      // the template's control tokens count, and those in content only on request
      const plain = [{ ...demanded, messages: [{ role: 'user', content: 'Hello there' }] }];
      const [own] = await render(path, plain, '--tokens');
      const [same] = await render(path, plain, '--tokens', '--parse-special');
      assert.deepEqual(own.tokens, same.tokens);
      const typed = [{ ...demanded, messages: [{ role: 'user', content: strings[0] }] }];
      const [text] = await render(path, typed, '--tokens');
      const [command] = await render(path, typed, '--tokens', '--parse-special');
      assert.ok(command.tokens.length < text.tokens.length);
    });
  }
});
