// Bodies that the OpenAI-compatible API rejects, with the errors, for the JavaScript handler and the components.

const messages = [{ role: 'user', content: 'Tell me a story about a fox.' }];
const greedy = { messages, temperature: 0, max_tokens: 24 };
const CHAT = '/v1/chat/completions';
const COMPLETIONS = '/v1/completions';
const named = { type: 'function', function: { name: 'get' } };

/** @param {unknown} item @param {number} [count] default: the limit on list items, plus one */
const many = (item, count = 2049) => Array(count).fill(item);
const tool = { type: 'function', name: 'get' };
const TOO_LONG = 'array_above_max_length';
const nested = (/** @type {number} */ depth) => '['.repeat(depth) + ']'.repeat(depth);

/**
 * Lists with too many items, in the format of `wrongBodies`, and long lists of tokens, which count as one item.
 * @type {any[][]}
 */
export const longLists = [
  ['/v1/embeddings', { input: many('a') }, 400, 'input', TOO_LONG],
  ['/v1/embeddings', { input: many('a', 150_000) }, 400, 'input', TOO_LONG],
  ['/v1/embeddings', { input: many([5]) }, 400, 'input', TOO_LONG],
  ['/v1/embeddings', { input: many(5, 150_000) }, 400, 'input', 'context_length_exceeded'],
  ['/v1/rerank', { query: 'a', documents: many('b') }, 400, 'documents', TOO_LONG],
  ['/v1/rerank', { query: 'a', documents: many({ text: 'b' }) }, 400, 'documents', TOO_LONG],
  [COMPLETIONS, { prompt: many('a') }, 400, 'prompt', TOO_LONG],
  [COMPLETIONS, { prompt: many(300, 9000) }, 400, 'prompt', 'context_length_exceeded'],
  [COMPLETIONS, { prompt: 'a', stop: many('zzz') }, 400, 'stop', TOO_LONG],
  [COMPLETIONS, { prompt: 'a', lora: many({ id: 0 }) }, 400, 'lora', TOO_LONG],
  [COMPLETIONS, { prompt: 'a', samplers: many('top_k') }, 400, 'samplers', TOO_LONG],
  [CHAT, { ...greedy, messages: many(messages[0]) }, 400, 'messages', TOO_LONG],
  [CHAT, { ...greedy, tools: many(named) }, 400, 'tools', TOO_LONG],
  ['/v1/responses', { input: many(messages[0]) }, 400, 'input', TOO_LONG],
  ['/v1/responses', { input: 'a', tools: many(tool) }, 400, 'tools', TOO_LONG],
];

/** Path, body, status, param, code. @type {any[][]} */
export const wrongBodies = [
  [CHAT, '{"messages": [', 400, null, 'invalid_json'],
  [CHAT, '', 400, null, 'invalid_json'],
  [CHAT, '[1]', 400, null, 'invalid_json'],
  [CHAT, 'null', 400, null, 'invalid_json'],
  [CHAT, '"\\ud800', 400, null, 'invalid_json'],
  [CHAT, `${'['.repeat(100_000)}`, 400, null, 'invalid_json'],
  [CHAT, `{"messages": ${nested(600)}}`, 400, null, 'invalid_json'],
  [CHAT, `{"messages": [], "metadata": ${nested(50_000)}}`, 400, null, 'invalid_json'],
  [CHAT, { ...greedy, metadata: many({}, 50_000) }, 400, null, 'too_many_values'],
  [CHAT, { ...greedy, metadata: many([], 50_000) }, 400, null, 'too_many_values'],
  [CHAT, {}, 400, 'messages', 'missing_required_parameter'],
  [CHAT, { messages: [] }, 400, 'messages', 'invalid_value'],
  [CHAT, { messages: 'hello' }, 400, 'messages', 'invalid_value'],
  [CHAT, { messages: [null] }, 400, 'messages[0]', 'invalid_value'],
  [CHAT, { messages: [{ role: 'user' }] }, 400, 'messages[0].content', 'invalid_value'],
  [CHAT, { messages: [{ content: 'a' }] }, 400, 'messages[0].role', 'invalid_value'],
  [
    CHAT,
    { messages: [{ role: 'user', content: [{ type: 'file', file: {} }] }] },
    ...[400, 'messages[0].content[0]', 'unsupported_value'],
  ],
  [
    CHAT,
    { messages: [{ role: 'function', content: '1' }] },
    ...[400, 'messages[0].role', 'unsupported_parameter'],
  ],
  [CHAT, { messages: [{ role: 'user' }] }, 400, 'messages[0].content', 'invalid_value'],
  [
    CHAT,
    { messages: [{ role: 'assistant', content: '', tool_calls: [{ function: {} }] }] },
    ...[400, 'messages[0].tool_calls[0]', 'invalid_value'],
  ],
  [CHAT, { ...greedy, tools: {} }, 400, 'tools', 'invalid_value'],
  [CHAT, { ...greedy, tools: [{}] }, 400, 'tools[0]', 'invalid_value'],
  [CHAT, { ...greedy, tools: [named, named] }, 400, 'tools', 'invalid_value'],
  [CHAT, { ...greedy, tool_choice: 'required' }, 400, 'tool_choice', 'invalid_value'],
  [CHAT, { ...greedy, tool_choice: { type: 'function' } }, 400, 'tool_choice', 'invalid_value'],
  [
    CHAT,
    { ...greedy, tool_choice: { type: 'function', function: { name: 'get' } } },
    ...[400, 'tool_choice', 'invalid_value'],
  ],
  [CHAT, { ...greedy, parallel_tool_calls: 'no' }, 400, 'parallel_tool_calls', 'invalid_value'],
  [
    CHAT,
    { ...greedy, response_format: { type: 'xml' } },
    ...[400, 'response_format', 'unsupported_value'],
  ],
  [
    CHAT,
    { ...greedy, response_format: { type: 'json_schema', json_schema: { schema: { not: 5 } } } },
    ...[400, 'response_format', 'invalid_value'],
  ],
  [CHAT, { ...greedy, reasoning_effort: 'much' }, 400, 'reasoning_effort', 'invalid_value'],
  [CHAT, { ...greedy, response_format: {} }, 400, 'response_format', 'unsupported_value'],
  [
    CHAT,
    { ...greedy, response_format: { type: 'json_object', schema: 5 } },
    ...[400, 'response_format.schema', 'invalid_value'],
  ],
  [
    CHAT,
    { ...greedy, response_format: { type: 'text', schema: {} } },
    ...[400, 'response_format.schema', 'unknown_parameter'],
  ],
  [
    CHAT,
    { ...greedy, response_format: { type: 'json_schema', json_schema: { schema: {}, name: 5 } } },
    ...[400, 'response_format.json_schema.name', 'invalid_value'],
  ],
  [
    CHAT,
    { ...greedy, tools: [{ type: 'function', function: { name: 'a', parameters: 5 } }] },
    ...[400, 'tools[0].function.parameters', 'invalid_value'],
  ],
  [
    CHAT,
    { ...greedy, tools: [{ type: 'function', function: { name: 'a', description: 5 } }] },
    ...[400, 'tools[0].function.description', 'invalid_value'],
  ],
  [CHAT, { ...greedy, max_token: 3 }, 400, 'max_token', 'unknown_parameter'],
  [CHAT, { ...greedy, priority: 100 }, 400, 'priority', 'unknown_parameter'],
  [CHAT, `{"messages": [], "__proto__": {}}`, 400, 'messages', 'invalid_value'],
  [CHAT, `{"__proto__": {}}`, 400, '__proto__', 'unknown_parameter'],
  [CHAT, { ...greedy, temperature: '1' }, 400, 'temperature', 'invalid_value'],
  [CHAT, { ...greedy, typical_p: 2 }, 400, 'typical_p', 'invalid_value'],
  [CHAT, { ...greedy, mirostat: 1.5 }, 400, 'mirostat', 'invalid_value'],
  [CHAT, { ...greedy, samplers: ['top_k', 'infill'] }, 400, 'samplers', 'invalid_value'],
  [CHAT, { ...greedy, dry_sequence_breakers: [''] }, 400, 'dry_sequence_breakers', 'invalid_value'],
  [CHAT, { ...greedy, post_sampling_probs: 1 }, 400, 'post_sampling_probs', 'invalid_value'],
  [CHAT, { ...greedy, max_tokens: 0 }, 400, 'max_tokens', 'invalid_value'],
  [CHAT, { ...greedy, max_tokens: 1e300 }, 400, 'max_tokens', 'invalid_value'],
  [CHAT, { ...greedy, n: 17 }, 400, 'n', 'invalid_value'],
  [CHAT, { ...greedy, n_probs: 21 }, 400, 'n_probs', 'invalid_value'],
  [CHAT, { ...greedy, cache_prompt: 1 }, 400, 'cache_prompt', 'invalid_value'],
  [CHAT, { ...greedy, timings_per_token: 'no' }, 400, 'timings_per_token', 'invalid_value'],
  [CHAT, { ...greedy, ignore_eos: 'yes' }, 400, 'ignore_eos', 'invalid_value'],
  [CHAT, { ...greedy, json_schema: [] }, 400, 'json_schema', 'invalid_value'],
  [CHAT, { ...greedy, repetition_penalty: 0 }, 400, 'repetition_penalty', 'invalid_value'],
  [CHAT, { ...greedy, guided_json: 5 }, 400, 'guided_json', 'invalid_value'],
  [CHAT, { ...greedy, guided_regex: 5 }, 400, 'guided_regex', 'invalid_value'],
  [CHAT, { ...greedy, guided_choice: [] }, 400, 'guided_choice', 'invalid_value'],
  [CHAT, { ...greedy, guided_grammar: {} }, 400, 'guided_grammar', 'invalid_value'],
  [CHAT, { ...greedy, structured_outputs: 'a' }, 400, 'structured_outputs', 'invalid_value'],
  [
    CHAT,
    { ...greedy, structured_outputs: { choice: 'a' } },
    ...[400, 'structured_outputs.choice', 'invalid_value'],
  ],
  [
    CHAT,
    { ...greedy, structured_outputs: { xml: 'a' } },
    ...[400, 'structured_outputs.xml', 'unknown_parameter'],
  ],
  [COMPLETIONS, { prompt: 'a', n_predict: '1' }, 400, 'n_predict', 'invalid_value'],
  [
    COMPLETIONS,
    { prompt: 'a', n_predict: 1, max_tokens: 1 },
    ...[400, 'n_predict', 'invalid_value'],
  ],
  [CHAT, { ...greedy, stop: ['x'.repeat(5000)] }, 400, 'stop', 'invalid_value'],
  [CHAT, { ...greedy, stop: [1] }, 400, 'stop', 'invalid_value'],
  [CHAT, { ...greedy, top_logprobs: 2 }, 400, 'top_logprobs', 'invalid_value'],
  [CHAT, { ...greedy, stream: 'yes' }, 400, 'stream', 'invalid_value'],
  [CHAT, { ...greedy, salt: '' }, 400, 'salt', 'invalid_value'],
  [CHAT, { ...greedy, logit_bias: { x: 1 } }, 400, 'logit_bias', 'invalid_value'],
  [
    CHAT,
    { ...greedy, stream_options: { include_usage: true } },
    ...[400, 'stream_options', 'invalid_value'],
  ],
  [
    CHAT,
    { ...greedy, stream: true, stream_options: { usage: true } },
    ...[400, 'stream_options.usage', 'unknown_parameter'],
  ],
  [COMPLETIONS, {}, 400, 'prompt', 'missing_required_parameter'],
  [COMPLETIONS, { prompt: [] }, 400, 'prompt', 'invalid_value'],
  [COMPLETIONS, { prompt: [1.5] }, 400, 'prompt', 'invalid_value'],
  [COMPLETIONS, { prompt: ['a', ['b']] }, 400, 'prompt', 'invalid_value'],
  [COMPLETIONS, { prompt: Array(17).fill('a') }, 400, 'prompt', 'invalid_value'],
  [COMPLETIONS, { prompt: 'a', echo: true, stream: true }, 400, 'echo', 'invalid_value'],
  [COMPLETIONS, { prompt: 'a', echo: 'yes' }, 400, 'echo', 'invalid_value'],
  [COMPLETIONS, { prompt: 'a', max_tokens: 0 }, 400, 'max_tokens', 'invalid_value'],
  [COMPLETIONS, { prompt: 'a', suffix: 'b' }, 400, 'suffix', 'unsupported_parameter'],
  [COMPLETIONS, { prompt: 'a', best_of: 3 }, 400, 'best_of', 'unsupported_parameter'],
  [COMPLETIONS, { prompt: [-5] }, 400, 'prompt', 'invalid_value'],
  [COMPLETIONS, { prompt: '', echo: true, logprobs: 1 }, 400, 'prompt', 'invalid_value'],
  [COMPLETIONS, { prompt: 'a '.repeat(9000) }, 400, 'prompt', 'context_length_exceeded'],
  ['/v1/embeddings', {}, 400, 'input', 'missing_required_parameter'],
  ['/v1/embeddings', { input: [] }, 400, 'input', 'invalid_value'],
  ['/v1/embeddings', { input: 'a', dimensions: 0 }, 400, 'dimensions', 'invalid_value'],
  [
    '/v1/embeddings',
    { input: 'a', encoding_format: 'hex' },
    400,
    'encoding_format',
    'invalid_value',
  ],
  ['/v1/embeddings', { input: 'a '.repeat(9000) }, 400, 'input', 'context_length_exceeded'],
  ['/v1/rerank', { query: 'a' }, 400, 'documents', 'missing_required_parameter'],
  ['/v1/rerank', { query: 'a', documents: [1] }, 400, 'documents', 'invalid_value'],
  ['/v1/rerank', { query: 'a', documents: ['b'] }, 400, null, 'unsupported_value'],
  ...longLists,
  ['/v1/chat', {}, 404, null, 'not_found'],
  ['/v1/models', {}, 405, null, 'method_not_allowed'],
];
