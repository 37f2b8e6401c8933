// Real clients run a two-turn conversation with a tool: the model calls it, the client sends the result, the model
// answers. With `wick serve` and with a component, directly and through LiteLLM's proxy. The demo model is constrained to
// a call by `tool_choice`. Members that a client adds to its messages change neither prompt nor answer.
// (client_requests.test.mjs tests request formats of more clients. docs/guide/server.md lists clients and versions.)

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { z } from 'zod';
import { toolTemplate } from '../support/client_requests.mjs';
import { startWasmtime } from '../support/component_servers.mjs';
import { startPrinting, startServer } from '../support/example_servers.mjs';
import { locate, root } from '../support/locate.mjs';
import { dist, modelPath, temporaryFolder } from '../support/package.mjs';
import { run } from '../support/process.mjs';

/** @typedef {{call: [string, {city: string}], answer: string}} Conversation */
/** @typedef {{url: string, model: string}} Target a base URL, and the model's name on that server */

const key = 'secret-key';
const question = 'Is it cold in Oslo?';
const result = '-3 degrees';
const parameters = {
  type: 'object',
  properties: { city: { type: 'string', enum: ['Oslo', 'Rome'] } },
  required: ['city'],
};
const greedy = { temperature: 0 };
const weather = { type: 'function', function: { name: 'weather', parameters } };
const client = (/** @type {string} */ name) => join(root, 'tests/support/clients', name);
const [python, node24] = [locate('clients'), locate('node24')];

/** Runs the reference conversation, without a client library. @param {Target} at @returns {Promise<Conversation>} */
async function converse({ url, model }) {
  const ask = async (/** @type {object} */ body) => {
    const response = await fetch(`${url}/chat/completions`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${key}` },
      body: JSON.stringify({ ...greedy, model, tools: [weather], ...body }),
    });
    const answer = await response.json();
    assert.equal(response.status, 200, JSON.stringify(answer));
    return answer.choices[0].message;
  };
  return chatOf(ask);
}

/** @param {(body: any) => Promise<any>} ask returns the message of the response @returns {Promise<Conversation>} */
async function chatOf(ask) {
  const messages = [{ role: 'user', content: question }];
  const first = await ask({ messages, tool_choice: 'required', max_tokens: 100 });
  const [{ id, function: called }] = first.tool_calls;
  const reported = { role: 'tool', tool_call_id: id, content: result };
  const { content } = await ask({ messages: [...messages, first, reported], max_tokens: 12 });
  return { call: [called.name, JSON.parse(called.arguments)], answer: content };
}

const openaiAt = (/** @type {Target} */ { url }) =>
  new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0 });

/** @param {Target} at @param {boolean} stream @returns {Promise<Conversation>} */
function openaiChat(at, stream) {
  const { completions } = openaiAt(at).chat;
  return chatOf(async (body) => {
    const asked = { ...greedy, model: at.model, tools: [weather], ...body };
    if (stream) return completions.stream(asked).finalMessage();
    return (await completions.create(asked)).choices[0].message;
  });
}

/** @param {Target} at @param {boolean} stream @returns {Promise<Conversation>} */
async function openaiResponses(at, stream) {
  const { responses } = openaiAt(at);
  const tools = [{ type: 'function', name: 'weather', parameters, strict: false }];
  const ask = async (/** @type {any} */ body) => {
    const asked = { ...greedy, model: at.model, tools, ...body };
    return stream ? responses.stream(asked).finalResponse() : responses.create(asked);
  };
  const input = [{ role: 'user', content: question }];
  const first = await ask({ input, tool_choice: 'required', max_output_tokens: 100 });
  /** @type {any[]} */
  const items = first.output;
  const called = items.find((item) => item.type === 'function_call');
  const reported = { type: 'function_call_output', call_id: called.call_id, output: result };
  const second = await ask({ input: [...input, ...first.output, reported], max_output_tokens: 12 });
  return { call: [called.name, JSON.parse(called.arguments)], answer: second.output_text };
}

/** @param {Target} at @param {'chat' | 'responses'} name @param {boolean} stream @returns {Promise<Conversation>} */
async function aiSdk({ url, model }, name, stream) {
  const execute = async () => result;
  const inputSchema = z.object({ city: z.enum(['Oslo', 'Rome']) });
  const asked = {
    model: createOpenAI({ baseURL: url, apiKey: key })[name](model),
    ...{ ...greedy, maxRetries: 0, prompt: question, maxOutputTokens: 100 },
    stopWhen: stepCountIs(2),
    tools: { weather: tool({ description: 'Of a city', inputSchema, execute }) },
    prepareStep: (/** @type {{stepNumber: number}} */ { stepNumber }) => ({
      toolChoice: /** @type {'required' | 'auto'} */ (stepNumber === 0 ? 'required' : 'auto'),
    }),
  };
  const answer = stream ? streamText(asked) : await generateText(asked);
  const [first, second] = await answer.steps;
  const [call] = first.toolCalls;
  return { call: [call.toolName, /** @type {any} */ (call.input)], answer: second.text };
}

/** @param {string} program @param {string[]} args @returns {Promise<Record<string, Conversation>>} its parsed output */
async function print(program, args) {
  const { code, stdout, stderr } = await run(program, args);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout.toString());
}

/** @type {Record<string, (at: Target) => Promise<Conversation>>} */
const inProcess = {
  'openai-node, chat': (at) => openaiChat(at, false),
  'openai-node, chat, streamed': (at) => openaiChat(at, true),
  'openai-node, responses': (at) => openaiResponses(at, false),
  'openai-node, responses, streamed': (at) => openaiResponses(at, true),
  'AI SDK, chat': (at) => aiSdk(at, 'chat', false),
  'AI SDK, chat, streamed': (at) => aiSdk(at, 'chat', true),
  'AI SDK, responses': (at) => aiSdk(at, 'responses', false),
  'AI SDK, responses, streamed': (at) => aiSdk(at, 'responses', true),
};

const folder = temporaryFolder();
const template = join(folder, 'template.jinja');
/** @type {Record<string, () => Promise<import('../support/example_servers.mjs').Started>>} */
const servers = {
  'wick serve': () => {
    const args = [join(dist, 'cli.js'), 'serve', modelPath, '--port', '0', '--key', key];
    return startPrinting(process.execPath, [...args, '--chat-template', template, '--no-log']);
  },
  'a component': () => {
    const env = { WICK_CHAT_TEMPLATE: toolTemplate, WICK_KEYS: key, WICK_LOG: '0' };
    const args = Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
    return startWasmtime('p3', { args });
  },
};

/** @param {Record<string, Target>} models @returns LiteLLM's proxy in front of several servers */
function startLiteLlm(models) {
  const list = Object.entries(models).map(([name, { url }]) => ({
    model_name: name,
    litellm_params: { model: 'openai/any', api_base: url, api_key: key },
  }));
  const own = { master_key: key, dangerously_permit_weak_or_unset_master_key: true };
  const config = join(folder, 'litellm.json'); // JSON is YAML
  writeFileSync(config, JSON.stringify({ model_list: list, general_settings: own }));
  const args = ['--config', config, '--host', '127.0.0.1', '--port', '0', '--telemetry', 'False'];
  const env = { LITELLM_LOCAL_MODEL_COST_MAP: 'True', HOME: folder };
  const originOf = (/** @type {string} */ line) =>
    /Uvicorn running on (http:\/\/127\.0\.0\.1:\d+)/.exec(line)?.[1];
  return startServer(python.path, [join(python.path, '../litellm'), ...args], originOf, env, true);
}

/** @type {import('../support/example_servers.mjs').Started[]} */
const started = [];
/** @type {Record<string, Target>} */
const targets = {};
/** @type {Conversation} */
let wanted;
before(async () => {
  writeFileSync(template, toolTemplate);
  for (const [name, start] of Object.entries(servers)) {
    if (name === 'a component' && locate('wasmtimeCommand').skip) continue;
    const server = await start();
    started.push(server);
    targets[name] = { url: `${server.origin}/v1`, model: name };
  }
  wanted = await converse(targets['wick serve']);
  assert.deepEqual(wanted.call[0], 'weather');
  assert.match(wanted.answer, /\w/);
});

after(async () => {
  for (const server of started) await server.close();
});

/** @param {() => Target} targetOf */
function testClients(targetOf) {
  for (const [name, converseBy] of Object.entries(inProcess)) {
    test(name, async () => assert.deepEqual(await converseBy(targetOf()), wanted));
  }

  test('LangChain for JavaScript', { skip: node24.skip }, async () => {
    const { url, model } = targetOf();
    const args = [client('langchain_tools.mjs'), join(root, '.toolchain/edge'), url, key, model];
    const found = await print(node24.path, args);
    assert.equal(Object.keys(found).length, 3);
    for (const [name, one] of Object.entries(found)) assert.deepEqual(one, wanted, name);
  });

  test('openai-python and LangChain for Python', { skip: python.skip }, async () => {
    const { url, model } = targetOf();
    const found = await print(python.path, [client('tool_clients.py'), url, key, model]);
    assert.equal(Object.keys(found).length, 7);
    for (const [name, one] of Object.entries(found)) assert.deepEqual(one, wanted, name);
  });
}

for (const name of Object.keys(servers)) {
  const skip = name === 'a component' && locate('wasmtimeCommand').skip;
  describe(name, { skip }, () => testClients(() => targets[name]));
}

describe('LiteLLM’s proxy', { skip: python.skip }, () => {
  /** @type {import('../support/example_servers.mjs').Started} */
  let proxy;
  before(async () => {
    proxy = await startLiteLlm(targets);
  });
  after(() => proxy.close());

  for (const name of Object.keys(servers)) {
    const skip = name === 'a component' && locate('wasmtimeCommand').skip;
    describe(`in front of ${name}`, { skip }, () =>
      testClients(() => ({ url: `${proxy.origin}/v1`, model: name })),
    );
  }
});
