// js/handler/messages_events.js — the events of a streamed answer of /v1/messages, made of the chunks of a chat
// completion. Each block is opened, written and closed before the next one.

import { blockOf, stopReasonOf, usageOf } from './messages_shape.js';

/** The deltas of each type of a block. @type {Record<string, (text: string) => object>} */
const deltaOf = {
  text: (text) => ({ type: 'text_delta', text }),
  thinking: (thinking) => ({ type: 'thinking_delta', thinking }),
  tool_use: (json) => ({ type: 'input_json_delta', partial_json: json }),
};

export class MessagesEvents {
  /** The number of the open block, and its type. */
  #index = -1;
  /** @type {string | undefined} */
  #type;
  /** The number of the open call in the chat completion. */
  #call = -1;
  #finish = 'stop';
  /** @type {object[]} */
  #events = [];

  /** @param {object} message that begins */
  constructor(message) {
    this.#events.push({ type: 'message_start', message });
  }

  /** @returns {object[]} those since the last call */
  take() {
    return this.#events.splice(0);
  }

  /** @param {any} chunk of a chat completion with one choice */
  add({ choices: [choice], usage }) {
    const { content, reasoning_content, tool_calls = [] } = choice?.delta ?? {};
    if (reasoning_content) this.#write('thinking', reasoning_content);
    if (content) this.#write('text', content);
    for (const call of tool_calls) this.#writeCall(call);
    this.#finish = choice?.finish_reason ?? this.#finish;
    if (usage) this.#end(usage);
  }

  /** @param {string} type @param {object} [members] of its block */
  #open(type, members) {
    this.#close();
    this.#index++;
    this.#type = type;
    this.#events.push({
      ...{ type: 'content_block_start', index: this.#index },
      content_block: blockOf(type, members),
    });
  }

  /** @param {object} delta */
  #tell(delta) {
    this.#events.push({ type: 'content_block_delta', index: this.#index, delta });
  }

  /** @param {string} type @param {string} text */
  #write(type, text) {
    if (this.#type !== type) this.#open(type);
    this.#tell(deltaOf[type](text));
  }

  /** @param {{index: number, id?: string, function: {name?: string, arguments?: string}}} piece of a call */
  #writeCall({ index, id = '', function: { name = '', arguments: args = '' } }) {
    if (this.#type !== 'tool_use' || index !== this.#call) {
      this.#open('tool_use', { id, name });
      this.#call = index;
    }
    if (args !== '') this.#tell(deltaOf.tool_use(args));
  }

  #close() {
    if (this.#type === undefined) return;
    if (this.#type === 'thinking') this.#tell({ type: 'signature_delta', signature: '' });
    this.#events.push({ type: 'content_block_stop', index: this.#index });
    this.#type = undefined;
  }

  /** @param {any} usage of the chat completion */
  #end(usage) {
    if (this.#index < 0) this.#open('text');
    this.#close();
    const delta = { stop_reason: stopReasonOf(this.#finish), stop_sequence: null };
    this.#events.push({ type: 'message_delta', delta, usage: usageOf(usage) });
    this.#events.push({ type: 'message_stop' });
  }
}
