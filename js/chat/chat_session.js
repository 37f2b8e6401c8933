// js/chat/chat_session.js — a conversation: its messages, and a session that holds their KV cache. The messages
// are authoritative: each turn sends them all as the prompt of the session, which processes only the new part.

import { WickError } from '../index.js';
import { readChatFile, writeChatFile } from './chat_file.js';
import { copyOfMessage, settledMessages, writtenMessages } from './chat_media.js';
import { ChatReply } from './chat_reply.js';

/** @import { ChatMessage, ChatOptions, ChatTurnOptions, Engine, Session } from '../index.js' */
/** The arguments of send. @typedef {string | ChatMessage | ChatMessage[] | undefined} Said */

/** Fields of chat completions that a chat sets automatically. */
const own = ['messages', 'session', 'stream', 'stream_options', 'n'];

/** @param {string} message */
const argumentError = (message) => new WickError('ARG', message);

export class Chat {
  #engine;
  #session;
  #settings;
  #messages;
  /** @type {ChatReply | undefined} */
  #running;
  /** @type {Promise<void> | undefined} */
  #closing;

  /**
   * @param {Engine} engine
   * @param {Session} session the chat's own session
   * @param {Record<string, any>} settings of all turns
   * @param {ChatMessage[]} messages
   */
  constructor(engine, session, settings, messages) {
    this.#engine = engine;
    this.#session = session;
    this.#settings = settings;
    this.#messages = messages;
  }

  /** @returns {ChatMessage[]} */
  get history() {
    return structuredClone(this.#messages);
  }

  /** @param {Said} [content] @param {ChatTurnOptions} [options] @returns {ChatReply} */
  send(content, options = {}) {
    const said = messagesOf(content);
    const { signal, timeout, ...fields } = checkFields('send', options, [...own, 'salt']);
    if (said.length === 0 && this.#messages.length === 0) {
      throw argumentError('send needs a message: the conversation is empty');
    }
    const settled = settledMessages(this.#engine, said);
    /** @type {ChatMessage[]} */
    let messages = [];
    const begin = async () => {
      this.#checkIdle();
      this.#running = reply;
      messages = [...this.#messages, ...(await settled)];
      const body = { ...this.#settings, ...fields, messages, session: this.#session };
      return this.#engine.chat.completions.create(
        /** @type {any} */ ({ ...body, stream: true, stream_options: { include_usage: true } }),
        { signal, timeout },
      );
    };
    const reply = new ChatReply(begin, (message) => {
      if (this.#running !== reply) return; // the reply was rejected
      this.#running = undefined;
      if (message) this.#messages = withAnswer(messages, message);
    });
    return reply;
  }

  /** @param {number} index @param {string} [content] */
  edit(index, content) {
    this.#checkIdle();
    const message = this.#messages[index];
    if (!Number.isInteger(index) || !message) {
      const count = this.#messages.length;
      throw argumentError(
        `edit: message ${String(index)} does not exist (the conversation has ${count})`,
      );
    }
    if (content !== undefined && typeof content !== 'string') {
      throw argumentError('edit: content must be a string');
    }
    const { reasoning_content, ...kept } = message;
    const edited = content === undefined ? [] : [{ ...kept, content }];
    this.#messages = [...this.#messages.slice(0, index), ...edited];
  }

  /** @returns {Promise<Chat>} */
  async fork() {
    this.#checkIdle();
    const messages = this.history;
    return new Chat(this.#engine, await this.#session.fork(), this.#settings, messages);
  }

  /** @param {Said} [content] @returns {Promise<number>} */
  async countTokens(content) {
    const { tools, tool_choice, reasoning_effort, parseSpecial } = this.#settings;
    const { chat_template_kwargs: variables } = this.#settings;
    const options = { tools, tool_choice, reasoning_effort, variables, parseSpecial };
    const given = Object.entries(options).filter(([, value]) => (value ?? undefined) !== undefined);
    const said = await settledMessages(this.#engine, messagesOf(content));
    const messages = [...this.#messages, ...said];
    return this.#engine.countTokens(messages, Object.fromEntries(given));
  }

  /** @returns {Promise<Uint8Array<ArrayBuffer>>} */
  async save() {
    this.#checkIdle();
    const messages = await writtenMessages(this.#engine, this.#messages);
    this.#checkIdle();
    return writeChatFile(messages, await this.#session.save());
  }

  #checkIdle() {
    if (this.#closing) throw new WickError('SEQ', 'chat: closed');
    if (this.#running)
      throw new WickError('BUSY', 'chat: a turn is running. Wait for its end or abort it');
  }

  close() {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close() {
    await this.#running?.leave();
    await this.#session.close();
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }
}

/**
 * @template {object} T
 * @param {string} where
 * @param {T} options
 * @param {string[]} names that are not allowed there
 * @returns {T}
 */
function checkFields(where, options, names) {
  if (typeof options !== 'object' || options === null) {
    throw argumentError(`${where} needs an options object`);
  }
  const found = names.find((name) => /** @type {any} */ (options)[name] !== undefined);
  if (found) throw argumentError(`${found} is not an option of ${where}`);
  return options;
}

/**
 * @param {ChatMessage[]} messages
 * @param {ChatMessage} answer
 * @returns {ChatMessage[]} the messages with the answer, which begins with the prefix if there is
 * one
 */
function withAnswer(messages, answer) {
  const last = messages.at(-1);
  if (last?.prefix !== true) return [...messages, answer];
  return [...messages.slice(0, -1), { ...answer, content: textOf(last) + textOf(answer) }];
}

/** @param {ChatMessage} message @returns {string} */
const textOf = ({ content }) =>
  Array.isArray(content)
    ? content.map((part) => ('text' in part ? part.text : '')).join('')
    : (content ?? '');

/** @param {ChatMessage[]} messages @returns {ChatMessage[]} */
function copyOf(messages) {
  try {
    return messages.map(copyOfMessage);
  } catch (error) {
    throw argumentError(`A message cannot be copied: ${error}`);
  }
}

/** @param {Said} content @returns {ChatMessage[]} copies */
function messagesOf(content) {
  if (content === undefined) return [];
  if (typeof content === 'string') return [{ role: 'user', content }];
  const messages = copyOf([content].flat());
  const index = messages.findIndex((message) => typeof message?.role !== 'string');
  if (index < 0) return messages;
  throw argumentError(
    `A turn must be a string, a message or several messages: message ${index} has no role`,
  );
}

/** @param {ChatOptions} options @returns {ChatMessage[]} the first messages of the conversation */
function beginningOf({ system, messages }) {
  if (system === undefined) return messagesOf(messages ?? []);
  if (typeof system !== 'string') throw argumentError('system must be a string');
  if (messages === undefined) return [{ role: 'system', content: system }];
  throw argumentError('system and messages: cannot be used together');
}

/**
 * @param {Engine} engine
 * @param {ChatOptions} [options]
 * @returns {Promise<Chat>}
 */
export async function createChat(engine, options = {}) {
  checkFields('createChat', options, [...own.slice(1), 'signal', 'timeout', 'onPrefill']);
  const { system, messages, salt, ...settings } = options;
  const beginning = await settledMessages(engine, beginningOf(options));
  return new Chat(engine, await engine.createSession({ salt: salt ?? null }), settings, beginning);
}

/**
 * @param {Engine} engine
 * @param {Blob | ArrayBuffer | Uint8Array} bytes
 * @param {ChatOptions} [options]
 * @returns {Promise<Chat>}
 */
export async function loadChat(engine, bytes, options = {}) {
  checkFields('loadChat', options, [...own, 'system', 'signal', 'timeout', 'onPrefill']);
  const { salt, ...settings } = options;
  const { messages, state } = await readChatFile(bytes);
  const session =
    (await sessionOf(engine, state)) ?? (await engine.createSession({ salt: salt ?? null }));
  return new Chat(engine, session, settings, messages);
}

/**
 * @param {Engine} engine
 * @param {Uint8Array} state
 * @returns {Promise<Session | undefined>} undefined if it belongs to a different model
 */
async function sessionOf(engine, state) {
  try {
    return (await engine.loadState(state)).session;
  } catch (error) {
    if (/** @type {any} */ (error).code === 'MISMATCH') return undefined;
    throw error;
  }
}
