// js/handler/messages_events.js — the events of a streamed response of /v1/messages, built from the
// chunks of a chat completion. Each block is opened, written and closed before the next one.

import { blockOf, endOf, usageOf } from './messages_shape.js';

/** The deltas of each type of block. @type {Record<string, (text: string) => object>} */
const deltaOf = {
  text: (text) => ({ type: 'text_delta', text }),
  thinking: (thinking) => ({ type: 'thinking_delta', thinking }),
  tool_use: (json) => ({ type: 'input_json_delta', partial_json: json }),
};

export class MessagesEvents {
  /** The index of the open block, and its type. */
  #index = -1;
  /** @type {string | undefined} */
  #type;
  /** The index of the open call in the chat completion. */
  #call = -1;
  #end = endOf('stop', undefined);
  /** @type {object[]} */
  #events = [];

  /**
   * The function that builds the first event, once the prompt has been processed.
   * @type {(() => object) | undefined}
   */
  #begin;

  /** @param {() => object} begin */
  constructor(begin) {
    this.#begin = begin;
  }

  /** @returns {object[]} the events since the last call */
  take() {
    return this.#events.splice(0);
  }

  /** @param {any} chunk of a chat completion with one choice */
  add({ choices: [choice], usage }) {
    const { role, content, reasoning_content, tool_calls = [] } = choice?.delta ?? {};
    if (this.#begin && role === undefined) {
      this.#events.push({ type: 'message_start', message: this.#begin() });
      this.#begin = undefined;
    }
    if (reasoning_content) this.#write('thinking', reasoning_content);
    if (content) this.#write('text', content);
    for (const call of tool_calls) this.#writeCall(call);
    if (choice?.finish_reason) this.#end = endOf(choice.finish_reason, choice.stop_reason);
    if (usage) this.#finish(usage);
  }

  /** @param {string} type @param {object} [members] the members of its block */
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
  #finish(usage) {
    if (this.#index < 0) this.#open('text');
    this.#close();
    this.#events.push({ type: 'message_delta', delta: this.#end, usage: usageOf(usage) });
    this.#events.push({ type: 'message_stop' });
  }
}
