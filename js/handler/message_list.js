// js/handler/message_list.js — joins the items of a request's input into messages: the reasoning, text and calls of one
// turn become one message.

/** @typedef {{type: 'text', text: string} | {type: 'image_url', image_url: {url: string}}} Part */

/**
 * A message of engine.chat.completions.create.
 * @typedef {{role: string, content: string | Part[], reasoning_content?: string, tool_call_id?: string,
 *   tool_calls?: {id: string, type: 'function', function: {name: string, arguments: string}}[]}} Message
 */

/** Combines several items of the same turn into one message. */
export class MessageList {
  /** @type {Message[]} */
  #messages = [];
  /** The reasoning of the current turn, until its message or call follows. */
  #reasoning = '';

  get messages() {
    this.#endTurn();
    return this.#messages;
  }

  get #last() {
    return this.#messages.at(-1);
  }

  /** @param {string} role @param {string | Part[]} content */
  say(role, content) {
    if (role !== 'assistant') this.#endTurn();
    const message = { role, content };
    this.#messages.push(message);
    if (role === 'assistant') this.#reasonTo(message);
  }

  /** @param {string} text */
  think(text) {
    this.#reasoning += text;
  }

  /** @param {string} id @param {string} name @param {string} args */
  call(id, name, args) {
    if (this.#last?.role !== 'assistant') this.say('assistant', '');
    const message = /** @type {Message} */ (this.#last);
    this.#reasonTo(message);
    message.tool_calls ??= [];
    message.tool_calls.push({ id, type: 'function', function: { name, arguments: args } });
  }

  /** @param {string} id of a call @param {Message['content']} content */
  answer(id, content) {
    this.#endTurn();
    this.#messages.push({ role: 'tool', tool_call_id: id, content });
  }

  /** Adds reasoning to its own turn, even if that turn was cut off before any text. */
  #endTurn() {
    if (this.#reasoning === '') return;
    if (this.#last?.tool_calls) this.#reasonTo(this.#last);
    else this.say('assistant', '');
  }

  /** @param {Message} message */
  #reasonTo(message) {
    if (this.#reasoning === '') return;
    const before = message.reasoning_content ? `${message.reasoning_content}\n\n` : '';
    message.reasoning_content = before + this.#reasoning;
    this.#reasoning = '';
  }
}
