// Routes of llama.cpp's server that count and render (wick-llm/openai), and the paths of the same routes on other servers.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { toolTemplate } from '../support/client_requests.mjs';
import { createEngine, dist, modelPath } from '../support/package.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

const messages = [{ role: /** @type {const} */ ('user'), content: 'Tell me a story.' }];
const tool = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } };

describe('routes that count and render', () => {
  /** @type {import('../../js/index.js').Engine} */
  let engine;
  /** @type {(request: Request) => Promise<Response>} */
  let handle;
  before(async () => {
    engine = await createEngine({ file: modelPath, threads: 1, chatTemplate: toolTemplate });
    handle = createHandler(engine, { model: 'small' });
  });
  after(() => engine.close());

  /** @param {string} path @param {object} [body] @returns {Promise<any>} the JSON response, with the status */
  async function ask(path, body) {
    const headers = { 'content-type': 'application/json' };
    const init = body ? { method: 'POST', headers, body: JSON.stringify(body) } : {};
    const response = await handle(new Request(`http://wick.test${path}`, init));
    return { status: response.status, ...(await response.json()) };
  }

  test('/tokenize returns ids, or ids with their text', async () => {
    const content = 'A fox — 🦊<|im_end|>';
    const plain = await engine.tokenize(content, { addSpecial: false });
    const { tokens, count, max_model_len: most } = await ask('/tokenize', { content });
    assert.deepEqual(tokens, plain);
    assert.deepEqual([count, most], [plain.length, (await engine.info()).contextSize]);
    const pieces = (await ask('/tokenize', { content, with_pieces: true })).tokens;
    assert.deepEqual(
      pieces.map((/** @type {any} */ { id }) => id),
      plain,
    );
    const bytes = pieces.flatMap((/** @type {any} */ { piece }) =>
      typeof piece === 'string' ? [...new TextEncoder().encode(piece)] : piece,
    );
    assert.equal(new TextDecoder().decode(Uint8Array.from(bytes)), content);
    assert.ok(pieces.some((/** @type {any} */ { piece }) => Array.isArray(piece)));
    const whole = await ask('/tokenize', { content, add_special: true });
    assert.deepEqual(whole.tokens, await engine.tokenize(content));
    const text = await ask('/tokenize', { content, parse_special: false });
    assert.deepEqual(
      text.tokens,
      await engine.tokenize(content, { addSpecial: false, parseSpecial: false }),
    );
    assert.ok(text.tokens.length > tokens.length);
  });

  test('/tokenize accepts vLLM’s formats: a prompt, or a conversation', async () => {
    const { tokens } = await ask('/v1/tokenize', { model: 'small', prompt: 'A fox' });
    assert.deepEqual(tokens, await engine.tokenize('A fox'));
    const chat = await ask('/tokenize', { messages, tools: [tool] });
    assert.deepEqual(
      chat.tokens,
      await engine.tokenize(messages, { tools: [/** @type {any} */ (tool)] }),
    );
    assert.ok(chat.count > (await ask('/tokenize', { messages })).count);
  });

  test('/detokenize returns the text of ids', async () => {
    const content = 'A fox — 🦊<|im_end|>';
    const { tokens } = await ask('/tokenize', { content });
    assert.equal((await ask('/detokenize', { tokens })).content, content);
    assert.equal((await ask('/v1/detokenize', { tokens })).prompt, content);
    assert.equal((await ask('/detokenize', { tokens: [] })).content, '');
  });

  test('/apply-template returns the prompt for a conversation', async () => {
    const { prompt } = await ask('/apply-template', { messages });
    assert.equal(prompt, await engine.applyTemplate(messages));
    assert.match(prompt, /Tell me a story\./);
    const closed = await ask('/apply-template', { messages, add_generation_prompt: false });
    const addGenerationPrompt = false;
    assert.equal(closed.prompt, await engine.applyTemplate(messages, { addGenerationPrompt }));
    assert.match((await ask('/apply-template', { messages, tools: [tool] })).prompt, /weather/);
  });

  test('/props describes the server', async () => {
    const props = await ask('/props');
    const { contextSize, chatTemplate } = await engine.info();
    assert.equal(props.default_generation_settings.n_ctx, contextSize);
    assert.equal(props.chat_template, toolTemplate); // the option replaces the file's template
    assert.equal(chatTemplate, toolTemplate);
    assert.equal(props.model_alias, 'small');
    assert.equal(props.eos_token, '<|im_end|>');
  });

  test('paths of other servers reach the same routes', async () => {
    const body = { messages, max_tokens: 2, temperature: 0 };
    const { choices } = await ask('/v1/chat/completions', body);
    assert.deepEqual((await ask('/chat/completions', body)).choices, choices);
    assert.equal((await ask('/messages', body)).type, 'message');
    assert.equal(
      (await ask('/completions', { prompt: 'a', max_tokens: 1 })).object,
      'text_completion',
    );
    assert.equal((await ask('/v1/health')).status, 'ok');
    assert.equal((await ask('/models')).data[0].id, 'small');
    assert.deepEqual(
      (await ask('/v1/chat/completions', { ...body, stop: 'e', max_tokens: 30 })).choices[0]
        .stop_reason,
      'e',
    );
    assert.equal(
      (await ask('/responses', { input: 'a', max_output_tokens: 1 })).object,
      'response',
    );
    for (const path of ['/rerank', '/reranking', '/v1/reranking', '/v2/rerank', '/embeddings']) {
      const { error } = await ask(path, { query: 'a', documents: ['b'], input: 'a' });
      assert.notEqual(error?.code, 'not_found', path);
    }
  });

  test('errors about invalid fields name the field', async () => {
    for (const [path, body, param] of /** @type {[string, object, string][]} */ ([
      ['/tokenize', {}, 'content'],
      ['/tokenize', { content: 5 }, 'content'],
      ['/tokenize', { content: 'a', add_special: 1 }, 'add_special'],
      ['/tokenize', { messages: [] }, 'messages'],
      ['/tokenize', { text: 'a' }, 'text'],
      ['/detokenize', {}, 'tokens'],
      ['/detokenize', { tokens: 'a' }, 'tokens'],
      ['/detokenize', { tokens: [-1] }, 'tokens'],
      ['/detokenize', { tokens: [1, 2 ** 40] }, 'tokens[1]'],
      ['/apply-template', {}, 'messages'],
      ['/apply-template', { messages: [{ role: 'user' }] }, 'messages[0].content'],
      ['/apply-template', { messages, tools: [5] }, 'tools[0]'],
    ])) {
      const { status, error } = await ask(path, body);
      assert.deepEqual([status, error.param], [400, param], `${path} ${error.message}`);
    }
  });
});
