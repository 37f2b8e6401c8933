// Requests in the formats that public clients send, each with a reference to the client's source. The
// second turn of a conversation has a tool call and its result. The JavaScript handler and the components
// respond to each with status 200.

/** @typedef {{client: string, source: string, path: string, body: Record<string, any>}} ClientRequest */

/**
 * Hermes' tool call format, for a model with ChatML. Other members of tools and calls do not change
 * the prompt.
 */
export const toolTemplate =
  '{% if tools %}<|im_start|>system\n{% for t in tools %}{{ t.function.name }} {% endfor %}are called by ' +
  '<tool_call>{"name": ..., "arguments": ...}</tool_call><|im_end|>\n{% endif %}' +
  '{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls %}<tool_call>' +
  '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}' +
  '<|im_end|>\n{% endfor %}<|im_start|>assistant\n';

const CHAT = '/v1/chat/completions';
const RESPONSES = '/v1/responses';
const question = 'Is it cold in Oslo?';
const result = '-3 degrees';
const id = 'call_PTLP8xhu3uwZk4l3nlnrrJha';
const system = 'You are a coding agent.';

const parameters = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties: { city: { type: 'string', description: 'Its name', maxLength: 9 } },
  required: ['city'],
  additionalProperties: false,
};
const tool = {
  type: 'function',
  function: { name: 'weather', description: 'Of a city', parameters },
};
const strictTool = { ...tool, function: { ...tool.function, strict: false } };
const call = { id, type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } };
const text = (/** @type {string} */ content, type = 'text') => [{ type, text: content }];
const asked = { role: 'user', content: question };
const answered = { role: 'tool', tool_call_id: id, content: result };
const streamed = { stream: true, stream_options: { include_usage: true } };

const command = {
  type: 'function',
  name: 'exec_command',
  description: 'Runs a command',
  strict: false,
  parameters: { type: 'object', properties: { cmd: { type: 'string' } }, required: ['cmd'] },
};
const patch = {
  ...{ type: 'custom', name: 'apply_patch', description: 'Edits files' },
  format: { type: 'grammar', syntax: 'lark', definition: 'start: "a"' },
};
const codex = {
  model: 'any',
  instructions: system,
  tools: [command, patch, { type: 'web_search', external_web_access: false }],
  ...{ tool_choice: 'auto', parallel_tool_calls: false, store: false, stream: true },
  reasoning: { effort: 'medium', summary: 'auto' },
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: '0197',
  client_metadata: { 'x-codex-installation-id': 'a' },
};
const codexInput = [
  { type: 'message', role: 'developer', content: text('Permissions: read only.', 'input_text') },
  { type: 'message', role: 'user', content: text('The folder is /a.', 'input_text') },
  { type: 'message', role: 'user', content: text(question, 'input_text') },
];

/** @param {string} client @param {string} source @param {string} path @param {Record<string, any>} body */
const shape = (client, source, path, body) => ({ client, source, path, body });

const shapes = [
  shape('Codex', 'openai/codex codex-api/src/common.rs', RESPONSES, {
    ...codex,
    input: codexInput,
  }),
  shape('Codex, after tools', 'openai/codex protocol/src/models.rs', RESPONSES, {
    ...codex,
    input: [
      ...codexInput,
      {
        ...{ type: 'reasoning', summary: [], encrypted_content: null },
        content: text('Look.', 'reasoning_text'),
      },
      {
        type: 'message',
        role: 'assistant',
        content: text('I look.', 'output_text'),
        phase: null,
      },
      { type: 'function_call', name: 'exec_command', arguments: '{"cmd":"ls"}', call_id: id },
      { type: 'function_call_output', call_id: id, output: text('a.c', 'input_text') },
      {
        ...{ type: 'custom_tool_call', status: 'completed', call_id: 'call_2' },
        ...{ name: 'apply_patch', input: '*** Begin Patch' },
      },
      { type: 'custom_tool_call_output', call_id: 'call_2', output: 'Done' },
      { type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'a' } },
      {
        ...{ type: 'local_shell_call', call_id: 'call_3', status: 'completed' },
        action: { type: 'exec', command: ['ls'], timeout_ms: null, env: null },
      },
      { type: 'function_call_output', call_id: 'call_3', output: 'a.c' },
      { type: 'message', role: 'user', content: text('And now?', 'input_text') },
    ],
  }),
  shape('OpenAI Agents SDK', 'openai/openai-agents-python models/openai_responses.py', RESPONSES, {
    ...{ model: 'any', instructions: system, include: ['web_search_call.action.sources'] },
    ...{ tools: [{ ...command, strict: true }], parallel_tool_calls: null, metadata: null },
    ...{ store: null, truncation: null, reasoning: { effort: 'low', summary: 'detailed' } },
    input: [
      { content: question, role: 'user' },
      {
        ...{ arguments: '{"cmd":"ls"}', call_id: id, name: 'exec_command' },
        ...{ type: 'function_call', id: 'fc_1', status: 'completed', created_by: null },
      },
      { call_id: id, output: 'a.c', type: 'function_call_output' },
      {
        ...{ id: 'msg_1', role: 'assistant', status: 'completed', type: 'message' },
        content: [{ annotations: [], text: 'Yes', type: 'output_text', logprobs: [] }],
        agent: { name: 'a' },
      },
      { content: 'And now?', role: 'user' },
    ],
  }),
  shape('opencode', 'vercel/ai packages/openai-compatible', CHAT, {
    ...{ model: 'any', max_tokens: 64, temperature: 0.55, top_p: 1, tool_choice: 'auto' },
    ...{ tools: [tool], ...streamed, reasoning_effort: 'medium' },
    messages: [
      { role: 'system', content: system },
      { role: 'system', content: 'Today is Monday.' },
      asked,
      {
        ...{ role: 'assistant', content: '', reasoning_content: 'Look.' },
        tool_calls: [{ ...call, extra_content: { google: { thought_signature: 'a' } } }],
      },
      answered,
    ],
  }),
  shape('Vercel AI SDK with a cache mark', 'vercel/ai packages/openai-compatible', CHAT, {
    model: 'any',
    messages: [
      { role: 'system', content: system, cache_control: { type: 'ephemeral' } },
      { role: 'user', content: [...text(question), { ...text('Now')[0], cache_control: {} }] },
    ],
    response_format: {
      type: 'json_schema',
      json_schema: { schema: parameters, strict: true, name: 'response' },
    },
  }),
  shape('Open WebUI', 'open-webui/open-webui routers/openai.py', CHAT, {
    ...{ stream: true, model: 'any', temperature: 0.8, max_tokens: 64, top_k: 40 },
    messages: [
      { role: 'system', content: system },
      asked,
      {
        role: 'assistant',
        content: '<details type="reasoning">\n> Look.\n</details>\n',
        tool_calls: [{ ...call, index: 0 }],
      },
      { ...answered, content: text(result) },
    ],
    tools: [tool],
  }),
  shape('Open WebUI, a title', 'open-webui/open-webui routers/tasks.py', CHAT, {
    ...{ model: 'any', messages: [asked], stream: false, max_completion_tokens: 1000 },
    metadata: { task: 'title_generation' },
  }),
  shape('Zed', 'zed-industries/zed crates/open_ai/src/open_ai.rs', CHAT, {
    ...{ model: 'any', ...streamed, max_completion_tokens: 64, temperature: 1, tools: [tool] },
    ...{ parallel_tool_calls: false, prompt_cache_key: 'a', tool_choice: 'auto' },
    messages: [
      { role: 'system', content: system },
      { role: 'user', content: [...text(question), ...text('Look.')] },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', content: text(result), tool_call_id: id },
      { role: 'assistant', content: [] },
      { role: 'user', content: 'And now?' },
    ],
  }),
  shape('Cline', 'cline/cline src/core/api/providers/openai.ts', CHAT, {
    ...{ model: 'any', temperature: 0, ...streamed, tools: [tool], tool_choice: 'auto' },
    ...{ parallel_tool_calls: false, max_tokens: -1 },
    messages: [
      { role: 'system', content: system },
      { role: 'user', content: [...text(question), ...text('<environment_details>')] },
      { role: 'assistant', content: undefined, tool_calls: [call], reasoning_details: [] },
      { role: 'tool', tool_call_id: id, content: '' },
    ],
  }),
  shape('Continue', 'continuedev/continue packages/openai-adapters', CHAT, {
    ...{ model: 'any', max_tokens: 64, temperature: 0.5, stream: true, stop: ['<|im_end|>'] },
    ...{ tools: [{ ...tool, wouldLikeTo: 'look', readonly: true }], prediction: undefined },
    messages: [
      asked,
      {
        role: 'assistant',
        content: ' ',
        tool_calls: [{ ...call, function: { name: 'weather', arguments: '' } }],
      },
      answered,
    ],
  }),
  shape('LibreChat', 'danny-avila/LibreChat packages/api/src/endpoints', CHAT, {
    ...{ model: 'any', user: '6650', ...streamed, n: 1, top_p: 1, presence_penalty: 0 },
    ...{
      frequency_penalty: 0,
      tools: [tool],
      messages: [asked, { role: 'assistant', content: text('Yes'), tool_calls: [] }, asked],
    },
  }),
  shape('LangChain', 'langchain-ai/langchain libs/partners/openai', CHAT, {
    ...{ model: 'any', ...streamed, temperature: null, n: null, tools: [strictTool] },
    messages: [
      asked,
      { role: 'assistant', content: null, tool_calls: [call], name: null },
      { ...answered, name: 'weather' },
    ],
    tool_choice: 'auto',
  }),
  shape('n8n', 'n8n-io/n8n packages/@n8n/nodes-langchain', CHAT, {
    ...{ model: 'any', temperature: 0.7, top_p: 1, frequency_penalty: 0, max_tokens: -1 },
    ...{ presence_penalty: 0, n: 1, stream: false, response_format: { type: 'text' } },
    messages: [{ role: 'system', content: system }, asked],
  }),
  shape('Jan', 'janhq/jan extensions/llamacpp-extension', CHAT, {
    ...{ model: 'any', stream: true, stop: [], top_k: 40, min_p: 0.05, repeat_last_n: 64 },
    ...{ repeat_penalty: 1, cache_prompt: true, timings_per_token: true, return_progress: true },
    ...{ id_slot: -1, return_tokens: false, ignore_eos: false, n_keep: 0, tools: [tool] },
    messages: [asked],
  }),
  shape('llama.cpp web UI', 'ggml-org/llama.cpp tools/server/webui', CHAT, {
    ...{ stream: true, timings_per_token: true, return_progress: true, reasoning_format: 'auto' },
    ...{ temperature: 0.8, max_tokens: -1, dynatemp_range: 0, dynatemp_exponent: 1, top_k: 40 },
    ...{ top_p: 0.95, min_p: 0.05, xtc_probability: 0, xtc_threshold: 0.1, typ_p: 1 },
    ...{ repeat_last_n: 64, repeat_penalty: 1, presence_penalty: 0, frequency_penalty: 0 },
    ...{ dry_multiplier: 0, dry_base: 1.75, dry_allowed_length: 2, dry_penalty_last_n: -1 },
    ...{ samplers: ['top_k', 'typ_p', 'top_p', 'min_p', 'temperature'] },
    messages: [asked],
  }),
  shape('Spring AI', 'spring-projects/spring-ai models/spring-ai-openai', CHAT, {
    ...{ model: 'any', stream: false, temperature: 0.7, extra_body: {} },
    tools: [{ ...tool, function: { ...tool.function, strict: null } }],
    messages: [
      { content: question, role: 'user' },
      { content: '', role: 'assistant', tool_calls: [call] },
      { content: `"${result}"`, role: 'tool', name: 'weather', tool_call_id: id },
    ],
  }),
  shape('Semantic Kernel', 'microsoft/semantic-kernel dotnet/src/Connectors', CHAT, {
    ...{ model: 'any', tool_choice: 'auto', tools: [strictTool], stream: false },
    messages: [
      { role: 'developer', content: system, name: 'kernel' },
      { role: 'user', content: text(question) },
      { role: 'assistant', tool_calls: [call] },
      answered,
    ],
  }),
  shape('AnythingLLM', 'Mintplex-Labs/anything-llm server/utils/AiProviders', CHAT, {
    ...{ model: 'any', stream: true, temperature: 0.7, max_tokens: 64 },
    messages: [
      { role: 'system', content: system },
      { role: 'user', content: text(question) },
    ],
  }),
  shape('aider', 'Aider-AI/aider aider/models.py', CHAT, {
    ...{ model: 'any', stream: true, temperature: 0 },
    messages: [
      { role: 'system', content: system },
      asked,
      { role: 'assistant', content: 'Ok.' },
      { role: 'system', content: 'Edit blocks only.' },
      asked,
    ],
  }),
  shape('CodeCompanion', 'olimorris/codecompanion.nvim lua/codecompanion/adapters', CHAT, {
    ...{ model: 'any', stream: true, temperature: 1, top_p: 1, stop: null, user: null },
    messages: [{ ...asked, id: 1947269257, opts: { visible: false }, cycle: 1 }],
  }),
  shape('Mistral Vibe', 'mistralai/mistral-vibe vibe/core/llm/backend/generic.py', CHAT, {
    ...{ model: 'any', temperature: 0.2, ...streamed, tools: [tool], tool_choice: 'auto' },
    messages: [
      { role: 'system', content: system, injected: false },
      { ...asked, message_id: 'a', injected: false },
      { role: 'assistant', content: null, reasoning_content: 'Hm.', reasoning_signature: null },
      asked,
    ],
  }),
  shape('Ollama', 'ollama/ollama docs/api.md', CHAT, {
    model: 'any',
    keep_alive: '5m',
    messages: [
      asked,
      {
        ...{ role: 'assistant', content: '' },
        tool_calls: [{ function: { name: 'weather', arguments: { city: 'Oslo' } } }],
      },
      { role: 'tool', tool_name: 'weather', content: result },
    ],
  }),
  shape('LM Studio clients', 'lmstudio-ai/docs openai-compatibility', CHAT, {
    model: 'any',
    messages: [asked],
    ttl: 300,
    top_k: -1,
  }),
];

/**
 * The requests with settings for short, deterministic answers, so that they can be compared.
 * @type {ClientRequest[]}
 */
export const clientRequests = shapes.map(({ body, ...named }) => {
  const limit = named.path === RESPONSES ? 'max_output_tokens' : 'max_tokens';
  const field = body.max_completion_tokens ? 'max_completion_tokens' : limit;
  const end = body[field] === -1 ? { stop: ['.'] } : { [field]: 6 };
  return { ...named, body: { ...body, temperature: 0, ...end } };
});
