// Requests in the formats that public clients send (tests/support/client_requests.mjs), to the handler: each is answered
// with every chat template. tests/edge/component_equal.test.mjs checks that components give the same answers.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { clientRequests, toolTemplate } from '../support/client_requests.mjs';
import { locate, root } from '../support/locate.mjs';
import { createEngine, dist, modelPath } from '../support/package.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

/** @param {string} path @param {object} body */
const post = (path, body) =>
  new Request(`http://wick.test${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });

const shared = locate('shared');
/** Templates of popular models, and one that supports neither system messages nor tools. */
const real = [
  ...['Qwen3.5-4B', 'meta-llama-Llama-3.1-8B-Instruct', 'google-gemma-2-2b-it'],
  ...['mistralai-Mistral-Nemo-Instruct-2407', 'openai-gpt-oss-120b', 'Apertus-8B-Instruct'],
];

describe('client requests', () => {
  /** @param {string} chatTemplate */
  async function answerAll(chatTemplate) {
    const engine = await createEngine({ file: modelPath, threads: 1, chatTemplate });
    const handle = createHandler(engine);
    for (const { client, path, body } of clientRequests) {
      const response = await handle(post(path, body));
      const text = await response.text();
      assert.equal(response.status, 200, `${client}: ${text}`);
      if (!body.stream) assert.ok(JSON.parse(text).usage, client);
      else
        assert.match(text, /data: \[DONE\]\n\n$|event: response\.(completed|incomplete)\n/, client);
      assert.doesNotMatch(text, /"error":\{/, client);
    }
    await engine.close();
  }

  test('with a template for tools', () => answerAll(toolTemplate));

  for (const name of real) {
    test(`with the template of ${name}`, { skip: shared.skip }, () =>
      answerAll(readFileSync(join(shared.path, `vectors/templates/${name}.jinja`), 'utf8')),
    );
  }

  test('calls of other tool types become function calls', async () => {
    const asked = /** @type {any[]} */ ([]);
    const create = async (/** @type {any} */ body) => {
      asked.push(body);
      throw new Error('enough');
    };
    const engine = /** @type {any} */ ({
      ...{ generate() {}, info: async () => ({ name: 'stub' }) },
      chat: { completions: { create } },
    });
    const found = clientRequests.find(({ client }) => client === 'Codex, after tools');
    assert.ok(found);
    await createHandler(engine, { onError() {} })(post(found.path, found.body));
    const calls = asked[0].messages.flatMap((/** @type {any} */ message) =>
      (message.tool_calls ?? []).map((/** @type {any} */ one) => [one.id, one.function]),
    );
    assert.deepEqual(calls.slice(1), [
      ['call_2', { name: 'apply_patch', arguments: '{"input":"*** Begin Patch"}' }],
      [
        'call_3',
        {
          name: 'local_shell',
          arguments: '{"type":"exec","command":["ls"],"timeout_ms":null,"env":null}',
        },
      ],
    ]);
    assert.deepEqual(
      asked[0].tools.map((/** @type {any} */ tool) => tool.function.name),
      ['exec_command'],
    );
    const roles = asked[0].messages.map((/** @type {any} */ { role }) => role);
    assert.deepEqual(roles.slice(-4), ['tool', 'assistant', 'tool', 'user']);
  });
});

describe('the documented list of tested clients', () => {
  const text = readFileSync(join(root, 'docs/guide/server.md'), 'utf8');
  const rows = [...text.matchAll(/^- .*\(`([\w@/-]+)`\) ([\d.]+):/gm)];

  test('has the versions in the lock files', () => {
    const read = (/** @type {string} */ path) => readFileSync(join(root, path), 'utf8');
    const python = ['clients', 'lm-eval'].map((name) => read(`tools/${name}/requirements.txt`));
    const locks = ['package.json', 'tools/edge/package.json'].map(read).concat(python);
    assert.equal(rows.length, 7);
    for (const [row, name, version] of rows) {
      const pins = [`"${name}": "${version}"`, `\n${name}==${version} `];
      assert.ok(
        locks.some((lock) => pins.some((pin) => lock.includes(pin))),
        row,
      );
    }
  });

  test('contains each client whose requests are sent', () => {
    const named = text.replaceAll(/\s+/g, ' ');
    for (const { client } of clientRequests) {
      const name = client.replace(/(,| with) .*/, '');
      assert.ok(named.includes(name), name);
    }
  });
});
