// Requests to which the JavaScript handler and the components must respond in the same way, grouped
// by server options, and functions that extract the compared parts of responses.

import { optionNumbers } from '../../js/base/sampler_fields.js';
import { longLists, wrongBodies } from './wrong_bodies.mjs';

/**
 * Server options, for createHandler and as a component's environment.
 * @typedef {{options: import('../../js/openai.js').HandlerOptions, env: Record<string, string>}} Opening
 */
/** @typedef {{method?: string, path: string, headers?: Record<string, string>, body?: unknown}} Asked */

const CHAT = '/v1/chat/completions';
const RESPONSES = '/v1/responses';
const talk = [{ role: 'user', content: 'Tell me a story about a fox.' }];
const city = {
  type: 'object',
  properties: { city: { type: 'string', maxLength: 8 } },
  required: ['city'],
  additionalProperties: false,
};
const weather = {
  ...{ type: 'function', name: 'weather', description: null, strict: true },
  parameters: { type: 'object', properties: { city: { type: 'string', maxLength: 9 } } },
};
const short = { input: 'Tell me a story.', temperature: 0, max_output_tokens: 16 };
const called = { type: 'function_call', call_id: 'a', name: 'weather', arguments: '{}' };
const answered = { type: 'function_call_output', call_id: 'a', output: 'sunny' };
/** Items of tools that run in the client. @type {object[]} */
const otherTools = [
  { type: 'shell_call', id: 'x', call_id: 'c', status: 'completed', action: { commands: ['ls'] } },
  { type: 'shell_call_output', call_id: 'c', output: [{ stdout: 'a.c', outcome: null }] },
  { type: 'apply_patch_call', call_id: 'd', operation: { type: 'delete_file', path: 'a.c' } },
  { type: 'apply_patch_call_output', call_id: 'd', status: 'completed' },
  { type: 'local_shell_call', call_id: 'e', action: { type: 'exec', command: ['ls'] } },
  { type: 'local_shell_call_output', id: 'e', output: 'a.c' },
  { type: 'mcp_call', id: 'f', name: 'a', arguments: '{}', output: 'b' },
];
const said = { role: 'assistant', content: [{ type: 'output_text', text: 'Once.' }] };

/** Valid bodies of /v1/responses, each sent with and without streaming. */
const responses = [
  short,
  { ...short, max_output_tokens: 400, stop: ['.'], metadata: { a: 'b' }, user: 'me', store: true },
  { ...short, instructions: 'Be short. "ä"', input: [{ role: 'user', content: 'Hi \u{1f98a}' }] },
  {
    ...short,
    input: [
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Be short.' }] },
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'How is ' },
          { type: 'text', text: 'it?' },
        ],
      },
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] },
      { ...said, id: 'msg_1', status: 'completed' },
      ...[called, { ...called, call_id: 'b' }, answered],
      { ...answered, call_id: 'b', output: [{ type: 'input_text', text: 'rain' }] },
    ],
  },
  { ...short, text: { format: { type: 'json_schema', name: 'city', schema: city, strict: true } } },
  {
    ...short,
    max_output_tokens: 60,
    text: { format: { type: 'json_object' }, verbosity: 'medium' },
  },
  { ...short, max_output_tokens: 60, tools: [weather], tool_choice: 'required' },
  {
    ...{ ...short, max_output_tokens: 60, tools: [weather], parallel_tool_calls: false },
    tool_choice: { type: 'function', name: 'weather' },
  },
  { ...short, tools: [weather], tool_choice: 'none', reasoning: { effort: 'none' } },
  { ...short, reasoning: { effort: 'minimal', summary: null } },
  { ...short, truncation: 'auto', max_output_tokens: -1, stop: ['.'] },
  {
    ...{ ...short, max_output_tokens: 60, tool_choice: 'required' },
    tools: [
      { type: 'web_search' },
      { ...weather, colour: 1 },
      { type: 'custom', name: 'a', format: {} },
      { type: 'ä ä' },
    ],
  },
  { ...short, tools: [{ type: 'local_shell' }] },
  {
    ...short,
    input: [
      { role: 'user', content: 'a' },
      { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'R1' }] },
      { role: 'user', content: 'b' },
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'R2' }] },
      said,
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'R3' }] },
      called,
      answered,
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'R4' }] },
    ],
  },
  { ...short, input: [{ role: 'user', content: 'a' }, ...otherTools] },
  { ...short, include: ['message.output_text.logprobs', 'reasoning.encrypted_content'] },
  {
    ...short,
    seed: 7,
    temperature: 1,
    top_p: 0.9,
    top_k: 40,
    top_logprobs: 2,
    truncation: 'disabled',
  },
  {
    ...{ ...short, max_output_tokens: 60, tools: [weather], tool_choice: 'required' },
    top_logprobs: 1,
  },
];

const asked = { role: 'user', content: 'Hi' };
/** Conversations in formats of other servers, files and routers. @type {object[]} */
const replayed = [
  {
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'developer', content: 'Rhyme.' },
      asked,
    ],
  },
  {
    messages: [
      asked,
      { role: 'assistant', content: 'Yes' },
      { role: 'system', content: 'Go on.' },
      asked,
    ],
  },
  {
    messages: [
      asked,
      {
        ...{ role: 'assistant', content: 'Yes', tool_calls: [], reasoning: 'Hm.', name: null },
        ...{ annotations: [], audio: null, refusal: null, function_call: null },
        ...{ reasoning_details: [{}], provider_specific_fields: {}, thinking_blocks: [] },
      },
      asked,
    ],
  },
  { messages: [asked, { role: 'assistant', content: null, refusal: 'No.' }, asked] },
  { messages: [{ role: 'user', content: [...'ab'].map((text) => ({ type: 'text', text })) }] },
  { messages: [asked], reasoning_effort: 'max' },
  { messages: [asked], max_tokens: -1, stop: ['', '.'] },
  { messages: [asked], chat_template_kwargs: { reasoning_effort: 'minimal', a: [1] } },
  { messages: [asked], parseSpecial: true },
  { messages: [asked], tool_choice: 'none', tools: [] },
];
/** Constraints, for chats and completions. @type {object[]} */
const limited = [
  ...[{ regex: '[a-c]{3}' }, { choices: ['red', 'green'] }, { grammar: 'root ::= "a" | "b"' }],
  ...[{ regex: '(' }, { grammar: 'root' }, { choices: [] }, { choices: [5] }, { regex: 5 }],
  ...[
    { regex: 'a', choices: ['b'] },
    { top_p: 0, seed: 3, temperature: 1 },
  ],
  ...[{ typical_p: 0, seed: 3, temperature: 1 }, { max_tokens: 0 }, { max_tokens: -2 }],
  ...[{ repeat_penalty: 0 }, { repeat_penalty: -1 }, { stop: Array(64).fill('zzz') }],
  ...[{ stop: '' }, { stop: [''] }, { parseSpecial: 'yes' }],
  // the same constraints with the field names of other servers
  ...[{ guided_regex: '[a-c]{3}' }, { guided_choice: ['red', 'green'] }, { guided_regex: '(' }],
  ...[{ guided_grammar: 'root ::= "a"' }, { guided_json: { const: 5 } }, { json_schema: '{"' }],
  ...[{ json_schema: { type: 'boolean' } }, { json_schema: '{"type": "boolean"}' }],
  ...[{ json: city }, { regex: 'a' }, { choice: ['a'] }, { grammar: 'root ::= "a"' }, {}].map(
    (structured_outputs) => ({ structured_outputs }),
  ),
  ...[
    { structured_outputs: { json_object: true } },
    { structured_outputs: { json_object: false } },
  ],
  ...[{ structured_outputs: { regex: 'a', choice: ['b'] } }, { guided_regex: 'a', choices: ['a'] }],
  ...[{ n_predict: 3, max_tokens: null }, { n_predict: 3 }, { typ_p: 0.5, seed: 3 }],
  ...[{ repetition_penalty: 1.5 }, { repetition_penalty: 1.5, repeat_penalty: 1.5 }],
  ...[{ ignore_eos: true, max_tokens: 40 }, { n_probs: 0 }, { n_probs: 2 }],
];
/** Each numeric field at and beyond the ends of its range. @type {object[]} */
const ends = Object.values(optionNumbers).flatMap(({ field, min, max = 3e38, whole }) =>
  field === 'repeat_penalty' || field === 'thinking_budget_tokens'
    ? []
    : [min, whole && max > 2 ** 20 ? 2 ** 20 : max, min - 1, ...(max < 3e38 ? [max + 1] : [])].map(
        (value) => ({ [field]: value }),
      ),
);
const brief = { temperature: 0, max_tokens: 5 };
/** @type {[string, object][]} */
const chats = [
  ...replayed.map((body) => ({ ...brief, ...body })),
  ...limited.map((body) => ({ ...brief, messages: [asked], ...body })),
  { messages: [asked], regex: 'a', response_format: { type: 'json_object' } },
  { ...brief, messages: [{ role: 'assistant' }] },
  { ...brief, messages: [asked, { role: 'tool', tool_call_id: 'a', content: null }] },
  { messages: [{ role: 'system', content: null }] },
  ...[true, false, 'yes'].map((is) => ({ ...brief, messages: [asked], enable_thinking: is })),
  ...[{ type: 'enabled' }, { type: 'disabled' }, { type: 'x' }, true].map((thinking) => ({
    ...{ ...brief, messages: [asked] },
    thinking,
  })),
  { messages: [{ ...asked, audio: { id: 'a' } }] },
  { messages: [{ ...asked, refusal: 5 }] },
].map((body) => [CHAT, body]);
/** @type {[string, object][]} */
const completions = [
  ...[...limited, ...ends].map((body) => ({ ...brief, prompt: 'a', ...body })),
  { prompt: 'a', parseSpecial: false },
].map((body) => ['/v1/completions', body]);

/** Bodies of /v1/responses that are rejected. */
const wrongResponses = [
  ...[{}, { input: null }, { input: [] }, { input: 5 }, { input: [5] }],
  ...[
    { input: [{ type: 'image' }] },
    { input: [{ type: 5 }] },
    { input: [{ role: 'tool', content: 'a' }] },
  ],
  { input: [{ role: 'user' }] },
  { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'a' }] }] },
  { input: [{ role: 'user', content: [{ type: 'input_text' }] }] },
  ...[{ input: [{ ...called, arguments: undefined }] }, { input: [{ ...called, arguments: {} }] }],
  ...[{ input: [{ ...answered, output: null }] }, { input: [{ ...answered, output: 5 }] }],
  { input: [{ type: 'reasoning', summary: 5 }] },
  ...[
    { n: 1 },
    { max_tokens: 4 },
    { messages: talk },
    { instructions: 5 },
    { max_output_tokens: 0 },
    { text: 'plain' },
    { text: { format: { type: 'xml' } } },
    { text: { format: { type: 'json_schema', schema: { not: 5 } } } },
    { text: { format: { type: 'text', name: 'a' } } },
    { text: { verbosity: 'high' } },
    { text: { size: 1 } },
    { tools: {} },
    { tools: [{ type: 5 }] },
    { tools: [5] },
    { tools: [{ ...weather, name: '' }] },
    { tools: [{ ...weather, strict: 1 }] },
    { tools: [{ type: 'web_search' }], tool_choice: 'required' },
    { tools: [{ ...weather, parameters: 5 }] },
    { tools: [weather, weather] },
    { tool_choice: 'required' },
    { tool_choice: { type: 'function', name: 'other' }, tools: [weather] },
    { tool_choice: 'maybe' },
    { parallel_tool_calls: 1 },
    { stream_options: { include_usage: true }, stream: true },
    { metadata: [] },
    { reasoning: { effort: 'much' } },
    { include: 'all' },
    { include: ['message.input_image.image_url'] },
    { include: [5] },
    { include: ['_call.a'] },
    { input: [{ type: 'item_reference', id: 'a' }] },
    { input: [{ type: 'web_search_call' }] },
    { input: [{ type: 'reasoning', summary: [] }] },
    { input: [{ type: 'shell_call_output', output: 'a' }] },
    { input: [{ type: 'computer_call_output', call_id: 'a', output: {} }] },
    { input: [{ type: '_call' }] },
    { input: [{ type: 'custom_tool_call', call_id: 'a', name: 'b' }] },
    { truncation: 'some' },
    { background: true },
    { top_logprobs: 21 },
    { previous_response_id: 'resp_1' },
    { conversation: 'a' },
    { prompt: {} },
    { temperature: 'hot' },
    { salt: '' },
    { input: 'a '.repeat(9000) },
  ].map((more) => ({ ...short, ...more })),
];

/** @type {[string, unknown][]} */
const embeddings = [
  ['/v1/embeddings', { input: 'a fox' }],
  ['/v1/embeddings', { input: ['a fox and a hen', 'b'], user: 'me', model: 'any', dimensions: 8 }],
  ['/v1/embeddings', { input: [[5, 6, 7], 'two'], encoding_format: 'base64' }],
  ['/v1/embeddings', { input: [5, 6], encoding_format: 'float' }],
  ['/v1/embeddings', { input: '' }],
  ['/v1/embeddings', { input: [5, 'a'] }],
  ['/v1/embeddings', { input: {} }],
  ['/v1/embeddings', { input: ['a', [5, 6], [5, 'a hen', 6], { prompt_string: 'b' }] }],
  ['/v1/embeddings', { input: { content: [...'ab'].map((text) => ({ type: 'text', text })) } }],
  ['/v1/embeddings', { input: { content: 'a' } }],
  ['/v1/embeddings', { input: { content: [{ type: 'input_audio', input_audio: {} }] } }],
  ['/v1/embeddings', { input: [] }],
  ['/v1/embeddings', { input: [[]] }],
  ['/embedding', { content: 'a fox', embd_normalize: 2 }],
  ['/embedding', { input: ['a fox', [5, 'a']], embd_normalize: -1 }],
  ['/embedding', { input: 'a', content: 'a' }],
  ['/embedding', { input: 'a', embd_normalize: 1 }],
  ['/embedding', {}],
  ['/v1/embeddings', { input: 'a', dimensions: 100_000 }],
  ['/v1/embeddings', { input: [99_999_999] }],
  ['/v1/embeddings', { input: 'a', truncate: true }],
  ['/v1/rerank', { query: 'a fox', documents: ['a hen', 'the fox', { text: 'b' }] }],
  ['/v1/rerank', { query: 'a', documents: ['b', 'c', 'd'], top_n: 2, return_documents: true }],
  ['/v1/rerank', { query: 'a fox', documents: ['a hen', 'the fox'], raw_scores: true }],
  ['/v1/rerank', { query: 'a', documents: ['b'], raw_scores: 1 }],
  ['/v1/rerank', { query: 'a fox', texts: ['a hen', 'the fox', 'b'], documents: null }],
  ['/v1/rerank', { query: 'a', texts: ['b', 'c'], return_text: true, raw_scores: true, top_n: 1 }],
  ['/v1/rerank', { query: 'a', texts: ['b'], documents: ['b'] }],
  ['/v1/rerank', { query: 'a', texts: [] }],
  ['/v1/rerank', { query: 'a', texts: ['b'], return_text: 1 }],
  ['/v1/rerank', { query: 'a', documents: [] }],
  ['/v1/rerank', { query: 'a', documents: 'b' }],
  ['/v1/rerank', { query: 5, documents: ['b'] }],
  ['/v1/rerank', { documents: ['b'] }],
  ['/v1/rerank', { query: 'a', documents: ['b'], top_n: 0 }],
  ['/v1/rerank', { query: 'a', documents: ['b '.repeat(9000)] }],
];

/** @type {[string, unknown][]} */
const adapters = [
  [CHAT, { messages: talk, temperature: 0, max_tokens: 3, lora: [] }],
  [CHAT, { messages: talk, lora: [{ id: 0 }] }],
  [CHAT, { messages: talk, lora: [{ id: 0.5 }] }],
  [CHAT, { messages: talk, lora: [{ id: 0, name: 'a' }] }],
  ['/v1/completions', { prompt: 'a', lora: {} }],
  ['/v1/completions', { prompt: 'a', lora: [{ id: 3, scale: 2 }] }],
];

/** @param {[string, unknown][]} bodies @returns {Asked[]} */
const posts = (bodies) => bodies.map(([path, body]) => ({ method: 'POST', path, body }));

/** @type {[string, object][]} */
const texts = [
  [CHAT, { messages: talk, temperature: 0, max_tokens: 30 }],
  [CHAT, { messages: talk, seed: 5, max_tokens: 9, n: 2, logprobs: true, top_logprobs: 2 }],
  [CHAT, { messages: talk, seed: 4, max_tokens: 20, response_format: { type: 'json_object' } }],
  ['/v1/completions', { prompt: ['Once', 'The'], seed: 2, max_tokens: 20, n: 2 }],
  ['/v1/completions', { prompt: [[300, 301], [302]], temperature: 0 }],
];

/**
 * Returns whether a body has only one mistake. Given two, the servers may report different ones.
 * @param {unknown} body
 */
const isClear = (body) => typeof body !== 'string' || !body.includes('"messages": [], ');

const echoed = { echo: true, temperature: 0, prompt: 'The fox ran over the hill.' };
/** Requests with echo, like those of lm-evaluation-harness. @type {Asked[]} */
export const echoRequests = posts(
  [
    { ...echoed, max_tokens: 1, logprobs: 1, seed: 1234, prompt: [[5, 60, 70, 80]] },
    {
      ...echoed,
      max_tokens: 1,
      logprobs: 1,
      prompt: [
        [5, 60, 70],
        [5, 6],
      ],
    },
    { ...echoed, max_tokens: 0, logprobs: 5 },
    { ...echoed, max_tokens: 4, logprobs: 0, n: 2 },
    { ...echoed, max_tokens: 3, prompt: ['a fox', [5], 'a hen'], logprobs: 2 },
    { ...echoed, max_tokens: 0, prompt: ['a fox', [5, 6]] },
    { ...echoed, max_tokens: 0, prompt: [5], logprobs: 1 },
    { ...echoed, max_tokens: 5 },
    { ...echoed, max_tokens: null, logprobs: 1, stop: ['fox'] },
    { ...echoed, prompt: [[99_999_999]], logprobs: 1 },
    { ...echoed, stream: true },
    { ...echoed, echo: 'yes' },
    { prompt: 'a', max_tokens: 0 },
    { prompt: 'a', max_tokens: 0, echo: false },
  ].map((body) => ['/v1/completions', body]),
);

/** Requests from tests/interfaces/reports.test.mjs. @type {[string, object][]} */
const reported = [
  ...['/v1//chat/completions', '//v1/chat/completions', '/v1/chat/completions/'].map(
    (path) =>
      /** @type {[string, object]} */ ([path, { messages: talk, temperature: 0, max_tokens: 1 }]),
  ),
  [
    RESPONSES,
    {
      input: 'hi',
      temperature: 0,
      max_output_tokens: 16,
      client_metadata: { installation_id: 'a' },
    },
  ],
  [CHAT, { messages: talk, temperature: 0, max_tokens: 2, top_k: -1 }],
  ...[{ reasoning_content: 'Done.' }, { reasoning: 'Done.' }].map(
    (thought) =>
      /** @type {[string, object]} */ ([
        CHAT,
        {
          messages: [...talk, { role: 'assistant', ...thought }, ...talk],
          temperature: 0,
          max_tokens: 2,
        },
      ]),
  ),
  ['/v1/completions', { prompt: 'a', max_tokens: 3, logit_bias: { 1: 100 }, stop: '<|im_start|>' }],
];

/** Requests to servers without options. @type {Asked[]} */
export const plainRequests = [
  ...echoRequests,
  ...posts([...texts, ...chats, ...completions]),
  ...posts(
    responses.flatMap((body) => [
      [RESPONSES, body],
      [RESPONSES, { ...body, stream: true }],
    ]),
  ),
  ...posts(wrongResponses.map((body) => [RESPONSES, body])),
  ...posts(wrongBodies.filter(([, body]) => isClear(body)).map(([path, body]) => [path, body])),
  ...posts([...embeddings, ...adapters]),
  ...posts(reported),
  ...['/health', '/v1/models?x=1', '/v1/models/other', '/nothing', '/v1/chat', CHAT].map(
    (path) => ({
      path,
    }),
  ),
  ...['/v1/health', '/models'].map((path) => ({ path })),
  ...['/chat/completions', '/completions', '/responses', '/embeddings'].map((path) => ({
    ...{ method: 'POST', path, body: {} },
  })),
  ...['/rerank', '/reranking', '/v1/reranking', '/v2/rerank'].map((path) => ({
    ...{ method: 'POST', path, body: {} },
  })),
  ...['/health', '/v1/models'].map((path) => ({ method: 'HEAD', path })),
  ...['/health', CHAT, RESPONSES, '/v1/embeddings', '/nothing'].map((path) => ({
    ...{ method: 'OPTIONS', path },
  })),
  ...['PUT', 'DELETE'].map((method) => ({ method, path: '/v1/models' })),
  ...['text/plain', 'application/jsonl', 'text/json', ''].map((type) => ({
    ...{ method: 'POST', path: CHAT, body: { messages: talk } },
    headers: { 'content-type': type },
  })),
  ...['application/vnd.x+json', 'Application/JSON; charset=utf-8'].map((type) => ({
    ...{ method: 'POST', path: CHAT, body: { messages: talk, temperature: 0, max_tokens: 2 } },
    headers: { 'content-type': type },
  })),
  {
    ...{ method: 'POST', path: CHAT, body: { messages: talk } },
    headers: { 'content-encoding': 'gzip' },
  },
  { method: 'POST', path: CHAT, body: `{"messages":"${' '.repeat(1 << 20)}"}` },
];

const begun = { prompt: 'Once upon a time, there was a fox', n_predict: 8, temperature: 0 };
const infilled = { input_prefix: 'a fox ', prompt: 'and ', input_suffix: ' hen<|im_end|>' };
const talkTool = { type: 'function', function: { name: 'get', parameters: {} } };
/** Bodies of /completion, each sent with and without streaming. @type {object[]} */
const completed = [
  begun,
  { ...begun, return_tokens: true, seed: 7, temperature: 1, top_k: 20, samplers: ['top_k'] },
  { ...begun, n_predict: 40, stop: ['zzz', ' the', 'a'], return_tokens: true },
  { ...begun, prompt: ['a fox', [5, 60], [5, 'a hen', 60], { prompt_string: 'a' }] },
  { ...begun, prompt: [5, 'a hen', 60, ' ran'] },
  { ...begun, n_probs: 3 },
  { ...begun, n_probs: 2, post_sampling_probs: true, temperature: 1, seed: 3 },
  { ...begun, response_fields: ['content', 'generation_settings/n_predict', 'none', 'content/a'] },
  { ...begun, response_fields: [], n_predict: null, max_tokens: 3 },
  {
    ...begun,
    logit_bias: [
      ['a', false],
      [17, 2.5],
      [' the', -3],
      [17, 1],
    ],
  },
  { ...begun, logit_bias: { ' fox': false, 300: -100 }, ignore_eos: true },
  { ...begun, grammar: 'root ::= "a\\nb"' },
  { ...begun, json_schema: { type: 'boolean' }, thinking_budget_tokens: 3 },
];
const pieces = { content: 'A fox \u5abd \u{1f917}<|im_end|>' };
/** @type {[string, unknown][]} */
const tokenized = [
  ...[pieces, { ...pieces, with_pieces: true }, { ...pieces, parse_special: false }],
  ...[{ ...pieces, add_special: true }, { content: '' }, { prompt: 'A fox', model: 'small' }],
  ...[
    { prompt: 'a', add_special_tokens: false },
    { messages: talk, tools: [talkTool] },
  ],
  { messages: talk, chat_template_kwargs: { add_generation_prompt: false } },
  ...[{}, { content: 5 }, { content: 'a', add_special: 1 }, { messages: [] }, { text: 'a' }],
].map((body) => ['/tokenize', body]);
/** @type {[string, unknown][]} */
const wrongNative = [
  ...[{ prompt: null }, { prompt: 5 }, { prompt: [] }, { prompt: [{}] }],
  { prompt: Array(17).fill('a') },
  ...[{ prompt: [['a']] }, { prompt: [5, {}] }, { prompt: [99_999_999] }, { prompt: '' }],
  { prompt: { prompt_string: 'a', multimodal_data: ['aGk='] } },
  ...[{ n_predict: 'many' }, { n_probs: -1 }, { n_probs: 21 }, { return_tokens: 1 }],
  ...[{ response_fields: 'content' }, { n_indent: 2 }, { colour: 'red' }, { grammar: 'root' }],
  ...[{ n: 2 }, { stream_options: {}, stream: true }, { lora: [{ id: 0 }] }, { seed: 0.5 }],
  ...[
    5,
    [5],
    [[5]],
    [[5, true]],
    [[-1, 1]],
    [[0.5, 1]],
    { a: 'b' },
    Array(1025).fill(['a', 1]),
  ].map((logit_bias) => ({ logit_bias })),
].map((body) => ['/completion', { ...begun, ...body }]);

/** Requests to the routes of llama.cpp's server. @type {Asked[]} */
export const nativeRequests = [
  ...posts(
    completed.flatMap((body) => [
      ['/completion', body],
      ['/completion', { ...body, stream: true }],
    ]),
  ),
  ...posts([...wrongNative, ...tokenized]),
  ...posts([
    ['/v1/tokenize', pieces],
    ['/detokenize', { tokens: [5, 60, 300] }],
    ['/v1/detokenize', { tokens: [] }],
    ...[{}, { tokens: 'a' }, { tokens: [-1] }, { tokens: [1, 2 ** 40] }, { tokens: [1, 0.5] }].map(
      (body) => /** @type {[string, unknown]} */ (['/detokenize', body]),
    ),
    ['/apply-template', { messages: talk }],
    ['/apply-template', { messages: talk, tools: [talkTool], add_generation_prompt: false }],
    ['/apply-template', {}],
    ['/apply-template', { messages: [{ role: 'user' }] }],
    ['/apply-template', { messages: talk, tools: [5] }],
    ['/infill', infilled],
  ]),
  { path: '/props' },
  { path: '/completion' },
];

/** Requests to a model with infill tokens. @type {Asked[]} */
export const infillRequests = posts(
  [
    infilled,
    { ...infilled, input_extra: [{ filename: 'a.c', text: 'int a;' }, { text: 'b' }] },
    { ...infilled, input_extra: [], stream: true, n_probs: 1 },
    { input_prefix: 'a' },
    {},
    ...[[{}], [{ filename: 'a' }], [{ filename: 5, text: 'a' }], 5].map((input_extra) => ({
      ...infilled,
      input_extra,
    })),
  ].map((body) => ['/infill', { n_predict: 6, temperature: 0, ...body }]),
);

/** Requests to an embedding model and to a reranking model. */
export const embeddingRequests = [
  ...posts(embeddings),
  ...posts([['/v1/embeddings', { input: Array(2048).fill('a'), dimensions: 2 }]]),
  ...posts(longLists.slice(0, 6).map(([path, body]) => [path, body])),
];

/** @type {Opening} */
export const guarded = {
  options: {
    ...{ keys: ['one', 'two~2'], metricsKey: 'op', model: 'mine', bodyBytesMax: 300 },
    itemsMax: 3,
    cors: ['https://a.test', 'http://b.test:81'],
  },
  env: {
    ...{ WICK_KEYS: 'one,two~2', WICK_METRICS_KEY: 'op', WICK_MODEL_NAME: 'mine' },
    ...{
      WICK_ITEMS_MAX: '3',
      WICK_BODY_BYTES_MAX: '300',
      WICK_CORS: 'https://a.test,http://b.test:81',
    },
  },
};
const tiny = { messages: talk, temperature: 0, max_tokens: 2 };
/** @param {string} authorization @param {Record<string, string>} [more] */
const withKey = (authorization, more) => ({ headers: { authorization, ...more } });
const preflight = {
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization,content-type,x-stainless-os',
};

/** Requests to servers with keys and origins. @type {Asked[]} */
export const guardedRequests = [
  ...[
    '',
    'Bearer',
    'Bearer ',
    'Bearer on',
    'Bearer onee',
    'Bearer ONE',
    'Basic one',
    'Bearer op',
  ].flatMap((value) => [
    { method: 'POST', path: CHAT, body: tiny, ...withKey(value) },
    { path: '/v1/models', ...withKey(value) },
  ]),
  { method: 'POST', path: CHAT, body: tiny, ...withKey(`Bearer ${'one'.repeat(2000)}`) },
  { method: 'POST', path: CHAT, body: 'no JSON', ...withKey('Bearer wrong') },
  { method: 'POST', path: CHAT, body: tiny, ...withKey('Bearer one two~2') },
  ...['Bearer one', 'bearer   two~2  ', 'BEARER one'].map((value) => ({
    ...{ method: 'POST', path: CHAT, body: { ...tiny, salt: 'own' }, ...withKey(value) },
  })),
  ...['one', 'on', ''].map((key) => ({ path: '/v1/models', headers: { 'x-api-key': key } })),
  ...['Bearer no', 'Basic b25lOnR3bw==', 'Bearer', 'bearer  one'].map((value) => ({
    ...{ path: '/v1/models', ...withKey(value, { 'x-api-key': 'one' }) },
  })),
  ...['/v1/models', '/v1/models/mine', '/v1/models/other'].map((path) => ({
    ...{ path, ...withKey('Bearer one') },
  })),
  ...['', 'Bearer one', 'Bearer op '].map((value) => ({ path: '/metrics', ...withKey(value) })),
  ...[3, 4].map((count) => ({
    ...{ method: 'POST', path: '/v1/completions', ...withKey('Bearer one') },
    body: { prompt: 'a', max_tokens: 1, stop: Array(count).fill('zzz') },
  })),
  { path: '/health' },
  { path: '/nothing' },
  ...[289, 290, 600].map((spaces) => ({
    ...{ method: 'POST', path: CHAT, ...withKey('Bearer one') },
    body: JSON.stringify(tiny).padEnd(spaces + 11),
  })),
  ...['https://a.test', 'http://b.test:81', 'https://a.test:1', 'null', 'https://a.tes'].flatMap(
    (origin) => [
      { path: '/health', headers: { origin } },
      { path: '/nothing', headers: { origin } },
      { method: 'OPTIONS', path: CHAT, headers: { origin, ...preflight } },
      { method: 'POST', path: CHAT, body: tiny, ...withKey('Bearer one', { origin }) },
    ],
  ),
];

/** @type {Opening} */
export const closedMetrics = {
  options: { keys: 'one', cors: '*' },
  env: { WICK_KEYS: 'one', WICK_CORS: '*' },
};
/** Requests to servers with keys, but none for metrics, and any origin. @type {Asked[]} */
export const closedMetricsRequests = [
  ...['Bearer one', ''].map((value) => ({ path: '/metrics', ...withKey(value) })),
  { path: '/health', headers: { origin: 'https://a.test' } },
  { path: '/health' },
  { method: 'OPTIONS', path: '/v1/models', headers: { origin: 'https://a.test' } },
  { method: 'OPTIONS', path: '/nothing', headers: { origin: 'https://a.test', ...preflight } },
];

// ---- responses ----

const headerNames = [
  ...['allow', 'cache-control', 'content-type', 'retry-after', 'vary', 'www-authenticate'],
  ...[
    'x-wick-ignored',
    'x-accel-buffering',
    'access-control-allow-origin',
    'access-control-expose-headers',
  ],
  ...['access-control-allow-headers', 'access-control-allow-methods', 'access-control-max-age'],
];

/** Members that differ each time, and error messages. */
const changing = [
  ...['id', 'item_id', 'call_id', 'created', 'created_at', 'message'],
  ...['cached_tokens', 'tokens_cached', 'cache_n', 'prompt_n'],
];

/**
 * @param {string} text JSON
 * @returns {any} the value without the parts that change, and with rounded numbers, because floats
 * and doubles have different digits
 */
const constantOf = (text) =>
  JSON.parse(text, (key, value) => {
    if (/(Ms|PerSecond|_ms|_per_second)$/.test(key)) return 'a time';
    if (changing.includes(key) && typeof value !== 'object') return undefined;
    return typeof value === 'number' ? Math.fround(value) : value;
  });

/** Joins text, which may arrive in one or several events. @param {any[]} events */
function joined(events) {
  /** @type {any[]} */
  const merged = [];
  for (const { sequence_number, ...event } of events) {
    const last = merged.at(-1);
    if (event.type?.endsWith('.delta') && last?.type === event.type) {
      last.delta += event.delta;
      last.logprobs?.push(...event.logprobs);
    } else {
      merged.push(event);
    }
  }
  return merged;
}

/** Joins the events of each choice, which have no names. @param {any[]} events */
function joinedChoices(events) {
  /** @type {any[]} */
  const merged = [];
  for (const { index, content, tokens, completion_probabilities: some = [], ...event } of events) {
    merged[index] ??= { content: '', tokens: [], details: [] };
    merged[index].content += content;
    merged[index].tokens.push(...(tokens ?? []));
    merged[index].details.push(...some);
    if (event.stop !== false) merged[index].end = event;
  }
  return merged;
}

/** @param {string} text @returns {any[]} */
function eventsOf(text) {
  const parts = text
    .split('\n\n')
    .slice(0, -1)
    .filter((part) => part !== ': waiting');
  return parts.map((part, index) => {
    const [, name, data] = /^(?:event: (.*)\n)?data: (.*)$/.exec(part) ?? [];
    const event = constantOf(data);
    if (name === undefined) return event;
    if (event.type !== name || event.sequence_number !== index) throw new Error(`event ${part}`);
    return event;
  });
}

/**
 * Returns only the names of metrics, because their values differ. Components also count model loads.
 * @param {string} page
 */
const metricsOf = (page) =>
  page
    .split('\n')
    .filter((line) => line.startsWith('# TYPE ') && !/_seconds|_model_loads/.test(line));

/**
 * @param {Response} response
 * @returns {Promise<{status: number, headers: object, body: any}>} the part that must be the same
 * for both servers
 */
export async function comparableOf(response) {
  const text = await response.text();
  const type = response.headers.get('content-type') ?? '';
  const headers = headerNames.map((name) => [name, response.headers.get(name)]);
  /** @type {unknown} */
  let body = text;
  if (type.startsWith('application/json') && text) body = constantOf(text);
  if (type.startsWith('text/event-stream')) {
    const events = eventsOf(text);
    body = events[0]?.type === undefined ? joinedChoices(events) : joined(events);
  }
  if (type.startsWith('text/plain')) body = metricsOf(text);
  return { status: response.status, headers: Object.fromEntries(headers), body };
}
