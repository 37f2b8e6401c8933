// js/handler/response_events.js — the events of a streamed response of /v1/responses, built from
// the chunks of a chat completion. Each item of the output is opened, written and closed before the
// next one.

import {
  callItem,
  messageItem,
  reasoningItem,
  reasoningPart,
  responseOf,
  textPart,
} from './response_shape.js';

/** @typedef {import('./response_shape.js').Item} Item */
/** @typedef {{type: string, sequence_number: number} & Record<string, unknown>} ResponseEvent */

/**
 * The differences between items whose content is text.
 * @type {Record<'message' | 'reasoning', {item: typeof messageItem, part: (text: string, logprobs: object[]) => object,
 *   name: string, more: (logprobs: object[]) => object}>}
 */
const kinds = {
  message: {
    ...{ item: messageItem, part: textPart, name: 'response.output_text' },
    more: (logprobs) => ({ logprobs }),
  },
  reasoning: {
    ...{ item: reasoningItem, part: reasoningPart, name: 'response.reasoning_text' },
    more: () => ({}),
  },
};

export class ResponseEvents {
  #head;
  #sequence = 0;
  /** @type {Item[]} */
  #output = [];
  /** The text or the arguments of the open item, which is the last one of the output. */
  #text = '';
  /** The logprobs of the open item's tokens. @type {object[]} */
  #logprobs = [];
  /** The logprobs of tokens whose text has not arrived yet. @type {object[]} */
  #pending = [];
  #isOpen = false;
  /** The index of the open call in the chat completion. */
  #call = -1;
  #finish = 'stop';
  /** @type {ResponseEvent[]} */
  #events = [];

  /** @param {object} head */
  constructor(head) {
    this.#head = head;
  }

  /** @returns {ResponseEvent[]} the events since the last call */
  take() {
    return this.#events.splice(0);
  }

  /** @param {string} type @param {object} fields */
  #tell(type, fields) {
    this.#events.push({ type, ...fields, sequence_number: this.#sequence++ });
  }

  begin() {
    const response = responseOf(this.#head, 'in_progress', []);
    this.#tell('response.created', { response });
    this.#tell('response.in_progress', { response });
  }

  /** @param {any} chunk of a chat completion with one choice */
  add({ choices: [choice], usage }) {
    const { content, reasoning_content, tool_calls = [] } = choice?.delta ?? {};
    this.#pending.push(...(choice?.logprobs?.content ?? []));
    if (reasoning_content) this.#write('reasoning', reasoning_content);
    if (content) this.#write('message', content, this.#pending);
    for (const call of tool_calls) this.#writeCall(call);
    const isTold = reasoning_content || content || tool_calls.length > 0;
    // reasoning and calls are followed by their tags, which do not belong to any text
    const last = this.#output.at(-1)?.type ?? 'message';
    if (isTold || last !== 'message') this.#pending = [];
    this.#finish = choice?.finish_reason ?? this.#finish;
    if (usage) this.#end(usage);
  }

  /** The index of the open item. */
  get #place() {
    const index = this.#output.length - 1;
    return { item_id: this.#output[index].id, output_index: index };
  }

  /** @param {Item} item */
  #open(item) {
    this.#close('completed');
    this.#output.push(item);
    this.#isOpen = true;
    this.#text = '';
    this.#logprobs = [];
    this.#tell('response.output_item.added', {
      output_index: this.#output.length - 1,
      item: { ...item },
    });
  }

  /**
   * @param {'message' | 'reasoning'} type
   * @param {string} text
   * @param {object[]} [logprobs] the logprobs of its tokens
   */
  #write(type, text, logprobs = []) {
    const { item, part, name, more } = kinds[type];
    if (!this.#isOpen || this.#output.at(-1)?.type !== type) {
      this.#open(item([], 'in_progress'));
      const place = { ...this.#place, content_index: 0 };
      this.#tell('response.content_part.added', { ...place, part: part('', []) });
    }
    if (text === '') return;
    this.#text += text;
    this.#logprobs.push(...logprobs);
    const place = { ...this.#place, content_index: 0 };
    this.#tell(`${name}.delta`, { ...place, delta: text, ...more(logprobs) });
  }

  /** @param {{index: number, id?: string, function: {name?: string, arguments?: string}}} piece of a call */
  #writeCall({ index, id = '', function: { name = '', arguments: args = '' } }) {
    if (!this.#isOpen || index !== this.#call) {
      this.#open(callItem(id, name, '', 'in_progress'));
      this.#call = index;
    }
    if (args === '') return;
    this.#text += args;
    this.#tell('response.function_call_arguments.delta', { ...this.#place, delta: args });
  }

  /** @param {'completed' | 'incomplete'} status of the open item, if there is one */
  #close(status) {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#call = -1;
    const place = this.#place;
    const item = this.#output[place.output_index];
    const text = this.#text;
    item.status = status;
    if (item.type === 'function_call') {
      item.arguments = text;
      const { name } = item;
      this.#tell('response.function_call_arguments.done', { ...place, name, arguments: text });
    } else {
      const { part, name, more } = kinds[/** @type {keyof typeof kinds} */ (item.type)];
      const whole = part(text, this.#logprobs);
      item.content = [whole];
      this.#tell(`${name}.done`, { ...place, content_index: 0, text, ...more(this.#logprobs) });
      this.#tell('response.content_part.done', { ...place, content_index: 0, part: whole });
    }
    this.#tell('response.output_item.done', { output_index: place.output_index, item });
  }

  /** @param {any} usage of the chat completion */
  #end(usage) {
    if (this.#output.length === 0) this.#write('message', '');
    const last = this.#output.at(-1)?.type;
    const isBroken = last === 'function_call' && this.#finish !== 'tool_calls';
    const status = this.#finish === 'length' ? 'incomplete' : 'completed';
    this.#close(isBroken ? 'incomplete' : status);
    const response = responseOf(this.#head, status, this.#output, { usage });
    this.#tell(`response.${status}`, { response });
  }

  /** @param {string} message @returns {ResponseEvent} the last event of a response that fails */
  failure(message) {
    const response = responseOf(this.#head, 'failed', this.#output, { message });
    return { type: 'response.failed', response, sequence_number: this.#sequence++ };
  }
}
