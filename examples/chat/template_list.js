// examples/chat/template_list.js — chat templates for models whose file has none, by model family.

/** `source` is Jinja; `stops` end an answer if the model does not know the template's own tags.
 * @typedef {{id: string, name: string, source: string, stops: string[]}} Template */

const GENERATION = (/** @type {string} */ text) =>
  `{% if add_generation_prompt %}${text}{% endif %}`;

/** Puts the system message before the first question. */
const WITH_SYSTEM = `{%- set ns = namespace(before='') -%}{%- for message in messages -%}
{%- if message.role == 'system' -%}{%- set ns.before = message.content ~ '\\n\\n' -%}`;

/** Renders only the text. A space separates the user's text from the text before it. */
const PLAIN = `{%- for message in messages -%}
{%- if message.role == 'system' -%}{{ message.content ~ '\\n\\n' }}
{%- else -%}
{%- if message.role == 'user' and not loop.first and messages[loop.index0 - 1].role == 'assistant'
  and messages[loop.index0 - 1].content[-1:] not in ' \\n' and message.content[:1] not in ' \\n' -%}{{ ' ' }}{%- endif -%}
{{ message.content }}
{%- endif -%}
{%- endfor -%}`;

/** @type {Template[]} */
export const templates = [
  { id: 'plain', name: 'None: the model continues your text', source: PLAIN, stops: [] },
  { id: 'chatml', name: 'ChatML', source: 'chatml', stops: ['<|im_end|>'] },
  {
    ...{ id: 'llama3', name: 'Llama 3', stops: ['<|eot_id|>'] },
    source: `{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' ~ message.role ~ '<|end_header_id|>\\n\\n' ~ message.content | trim ~ '<|eot_id|>' }}{% endfor %}${GENERATION("{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}")}`,
  },
  {
    ...{ id: 'mistral', name: 'Mistral', stops: ['[INST]'] },
    source: `{{ bos_token }}${WITH_SYSTEM}
{%- elif message.role == 'user' -%}{{ '[INST] ' ~ ns.before ~ message.content ~ ' [/INST]' }}{%- set ns.before = '' -%}
{%- else -%}{{ ' ' ~ message.content ~ eos_token }}{%- endif -%}{%- endfor -%}`,
  },
  {
    ...{ id: 'gemma', name: 'Gemma', stops: ['<end_of_turn>'] },
    source: `{{ bos_token }}${WITH_SYSTEM}
{%- else -%}{{ '<start_of_turn>' ~ ('model' if message.role == 'assistant' else 'user') ~ '\\n' ~ ns.before ~ message.content | trim ~ '<end_of_turn>\\n' }}{%- set ns.before = '' -%}{%- endif -%}{%- endfor -%}${GENERATION("{{ '<start_of_turn>model\\n' }}")}`,
  },
  {
    ...{ id: 'phi', name: 'Phi', stops: ['<|end|>'] },
    source: `{% for message in messages %}{{ '<|' ~ message.role ~ '|>\\n' ~ message.content ~ '<|end|>\\n' }}{% endfor %}${GENERATION("{{ '<|assistant|>\\n' }}")}`,
  },
  {
    ...{ id: 'zephyr', name: 'Zephyr', stops: ['<|user|>'] },
    source: `{% for message in messages %}{{ '<|' ~ message.role ~ '|>\\n' ~ message.content ~ eos_token ~ '\\n' }}{% endfor %}${GENERATION("{{ '<|assistant|>\\n' }}")}`,
  },
  {
    ...{ id: 'vicuna', name: 'Vicuna', stops: ['USER:'] },
    source: `${WITH_SYSTEM}
{%- elif message.role == 'user' -%}{{ ns.before ~ 'USER: ' ~ message.content ~ '\\n' }}{%- set ns.before = '' -%}
{%- else -%}{{ 'ASSISTANT: ' ~ message.content ~ eos_token ~ '\\n' }}{%- endif -%}{%- endfor -%}${GENERATION("{{ 'ASSISTANT:' }}")}`,
  },
  {
    ...{ id: 'alpaca', name: 'Alpaca', stops: ['### Instruction:'] },
    source: `${WITH_SYSTEM}
{%- elif message.role == 'user' -%}{{ ns.before ~ '### Instruction:\\n' ~ message.content ~ '\\n\\n' }}{%- set ns.before = '' -%}
{%- else -%}{{ '### Response:\\n' ~ message.content ~ '\\n\\n' }}{%- endif -%}{%- endfor -%}${GENERATION("{{ '### Response:\\n' }}")}`,
  },
];
