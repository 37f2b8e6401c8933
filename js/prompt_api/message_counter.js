// js/prompt_api/message_counter.js — counts the tokens of messages, including messages that a
// template rejects in their original form.

import { joinedContent } from './prompt_media.js';

/** @import { ChatMessage, Engine } from '../index.js' */

export class MessageCounter {
  #engine;
  #tools;
  /** Whether the template rejects consecutive messages with the same role. */
  isJoined = false;

  /** @param {Engine} engine @param {import('../index.js').ChatTool[]} [tools] */
  constructor(engine, tools = []) {
    this.#engine = engine;
    this.#tools = tools.length === 0 ? {} : { tools };
  }

  /** @param {ChatMessage[]} messages @param {AbortSignal} [signal] @returns {Promise<number>} */
  async count(messages, signal) {
    if (messages.length === 0) return 0;
    const tokens = await this.#tokensOf(messages, signal);
    if (tokens !== undefined) return tokens;
    const together = await this.#tokensOf(joined(messages), signal);
    this.isJoined ||= together !== undefined;
    if (together !== undefined) return together;
    // a conversation that is not complete yet, such as only a system prompt
    const all = messages.map(({ content }) => content);
    const text = all.reduce((before, content) => joinedContent(before, '\n', content));
    return this.#engine.countTokens(/** @type {string} */ (text), {
      parseSpecial: false,
      signal: signal ?? null,
    });
  }

  /**
   * @param {ChatMessage[]} messages
   * @param {AbortSignal} [signal]
   * @returns {Promise<number | undefined>} undefined if the template rejects them
   */
  async #tokensOf(messages, signal) {
    try {
      return await this.#engine.countTokens(messages, { ...this.#tools, signal: signal ?? null });
    } catch (error) {
      if (/** @type {any} */ (error)?.code !== 'TEMPLATE') throw error;
      return undefined;
    }
  }

  /**
   * @param {ChatMessage[]} messages
   * @returns {ChatMessage[]} the messages in the form that the template accepts
   */
  asTaken(messages) {
    return this.isJoined ? joined(messages) : messages;
  }
}

/**
 * @param {ChatMessage[]} messages
 * @returns {ChatMessage[]} the messages, with consecutive messages of the same role joined
 */
function joined(messages) {
  /** @type {ChatMessage[]} */
  const list = [];
  for (const message of messages) {
    const last = list.at(-1);
    const isMore = last?.role === message.role && message.role !== 'tool' && !message.prefix;
    if (isMore && !last.tool_calls && !message.tool_calls) {
      const content = joinedContent(last.content, '\n\n', message.content);
      list[list.length - 1] = { ...last, content };
    } else list.push(message);
  }
  return list;
}
