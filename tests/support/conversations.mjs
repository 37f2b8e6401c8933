// Conversations for tests of chat templates: typical ones, and random ones.

export const tools = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'It\'s the <weather> & "more", ünï',
      parameters: {
        type: 'object',
        properties: {
          city: { type: 'string', description: 'a city' },
          days: { type: 'integer', minimum: 1 },
          units: { type: 'string', enum: ['c', 'f'] },
          options: {
            type: 'object',
            properties: { list: { type: 'array', items: { type: 'number' } } },
          },
        },
        required: ['city'],
      },
    },
  },
  {
    type: 'function',
    function: {
      name: 'add',
      description: 'adds',
      parameters: {
        type: 'object',
        properties: { a: { type: 'number', default: 1.5 }, b: { type: 'number' } },
        required: ['a', 'b'],
      },
    },
  },
];

const args = {
  city: 'Zürich "<b>"',
  days: 3,
  options: { list: [1, 2.5, -0.25, 1e-7] },
  flag: true,
  nothing: null,
};

/** JSON as written by Python. */
const argsText =
  '{"city": "Zürich \\"<b>\\"", "days": 3, "options": {"list": [1, 2.5, -0.25, 1e-07]}, ' +
  '"flag": true, "nothing": null}';

/** @param {boolean} isText @param {number} index */
const call = (isText, index) => ({
  id: `call0000${index}`,
  type: 'function',
  function: { name: 'get_weather', arguments: isText ? argsText : args },
});

/** @param {boolean} isText whether arguments are strings, as in OpenAI's API @param {number} count number of calls @returns {any[]} */
export function callMessages(isText, count) {
  const indices = Array.from({ length: count }, (_, index) => index);
  return [
    { role: 'system', content: ' You are <b>kind</b>. ' },
    { role: 'user', content: 'Hello, wörld!  ' },
    { role: 'assistant', content: '', tool_calls: indices.map((index) => call(isText, index)) },
    ...indices.map((index) => ({
      role: 'tool',
      tool_call_id: `call0000${index}`,
      name: 'get_weather',
      content: '{"t": 21}',
    })),
  ];
}

/** @param {boolean} prompts add_generation_prompt @returns {Record<string, any>[]} */
function usual(prompts) {
  const user = { role: 'user', content: 'Hello, wörld!  ' };
  const system = { role: 'system', content: ' You are <b>kind</b>. ' };
  const assistant = { role: 'assistant', content: 'Hi!\n' };
  const more = { role: 'user', content: '\n\nAnd now? {{ x }} {% y %}' };
  const thought = '<think>\n2+2\n</think>\n\n4';
  const list = [
    { messages: [user] },
    { messages: [system, user] },
    { messages: [system, user, assistant, more] },
    { messages: [user, assistant, more, assistant, user] },
    { messages: [system, user], tools },
    { messages: [user], enable_thinking: true },
    { messages: [user], enable_thinking: false },
    { messages: [user], reasoning_effort: 'high' },
    { messages: [{ role: 'developer', content: 'be brief' }, user] },
    { messages: [user, { role: 'assistant', content: '4', reasoning_content: '2+2' }, more] },
    { messages: [user, { role: 'assistant', content: thought }, more, assistant] },
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'one ' }] }] },
  ];
  for (const isText of [true, false]) {
    for (const count of [1, 2]) {
      const messages = callMessages(isText, count);
      list.push({ messages, tools });
      list.push({
        messages: [...messages, { role: 'assistant', content: 'It is 21.' }, more],
        tools,
      });
    }
  }
  return list.map((variables) => ({ ...variables, add_generation_prompt: prompts }));
}

/** Plain, system, several turns, tool calls in both formats, thinking; with and without a generation prompt. */
export const usualConversations = () => [...usual(true), ...usual(false)];

const pieces = [
  ...[
    'word',
    ' ',
    '\n',
    '\n\n',
    '  ',
    'é',
    '日本',
    '😀',
    '<think>',
    '</think>',
    '<b>',
    '"',
    "'",
    '\\',
  ],
  ...[
    '{{ x }}',
    '{% if %}',
    '\t',
    '\u00a0',
    '```',
    '[1, 2]',
    '{"a": 1}',
    '<|im_end|>',
    '%s',
    '&amp;',
  ],
];

/**
 * @param {() => number} random in [0, 1)
 * @returns {Record<string, any>}
 */
export function randomConversation(random) {
  const below = (/** @type {number} */ bound) => Math.floor(random() * bound);
  const text = () => Array.from({ length: below(8) }, () => pieces[below(pieces.length)]).join('');
  const messages = [];
  if (below(2)) messages.push({ role: 'system', content: text() });
  for (let turn = below(4); turn >= 0; turn--) {
    messages.push({ role: 'user', content: text() });
    if (turn === 0 && below(3)) break;
    /** @type {Record<string, unknown>} */
    const answer = { role: 'assistant', content: text() };
    if (below(4) === 0) answer.reasoning_content = text();
    messages.push(answer);
  }
  /** @type {Record<string, unknown>} */
  const variables = { messages, add_generation_prompt: below(2) === 0 };
  if (below(4) === 0) variables.tools = tools;
  if (below(4) === 0) variables.enable_thinking = below(2) === 0;
  return variables;
}
