// js/cli/chat_command.js — `wick chat MODEL` at a terminal, with an input history; Ctrl-C stops an answer.
// With --threads it also answers lines from a pipe.

import process from 'node:process';
import { createInterface } from 'node:readline';
import { samplerOptions } from '../base/sampler_fields.js';
import { loadAdapters } from './adapters.js';
import { EXIT_USAGE, Exit, readText } from './exit.js';
import { sourceOf } from './model_names.js';
import { print } from './print.js';
import { engineOptionsOf, onlyModel, readOptions } from './run_options.js';

/** @import { Chat } from '../index.js' */

export const CHAT_HELP =
  'At a terminal: Ctrl-C stops an answer, Ctrl-D ends the chat, /new starts a new conversation.';
const HINT = '(Ctrl-D ends the chat)';

/** Maps options of generate() to fields of chat completions. */
const fields = new Map([
  ...samplerOptions.map(([field, option]) => /** @type {const} */ ([option, field])),
  ['maxTokens', 'max_tokens'],
]);

/** @param {Record<string, unknown>} generation @returns {Record<string, unknown>} the fields of chat completions */
const chatFieldsOf = (generation) =>
  Object.fromEntries(
    Object.entries(generation).map(([name, value]) => [
      fields.get(name) ?? name,
      typeof value === 'bigint' ? Number(value) : value,
    ]),
  );

/**
 * Writes an answer; reasoning goes to standard error.
 * @param {Chat} chat
 * @param {string} question
 * @param {AbortSignal} [signal]
 */
async function answer(chat, question, signal) {
  for await (const { choices } of chat.send(question, { signal }).chunks()) {
    const { content, reasoning_content: thought } = choices[0]?.delta ?? {};
    if (thought) process.stderr.write(thought);
    if (content) await print(content);
  }
  await print('\n');
}

/** A conversation at a terminal. */
class Talk {
  #newChat;
  #lines;
  /** The controller of the running answer. @type {AbortController | undefined} */
  #running;

  /** @param {() => Promise<Chat>} newChat */
  constructor(newChat) {
    this.#newChat = newChat;
    const output = process.stdout.isTTY ? process.stdout : process.stderr;
    this.#lines = createInterface({ input: process.stdin, output, prompt: '> ' });
    this.#lines.on('SIGINT', () => this.#interrupt());
  }

  #interrupt() {
    if (this.#running) return this.#running.abort();
    if (this.#lines.line === '') {
      process.stderr.write(`\n${HINT}\n`);
      this.#lines.prompt();
    } else {
      for (const name of ['e', 'u']) this.#lines.write(null, { ctrl: true, name });
    }
  }

  /** @param {Chat} chat @param {string} line */
  async #answer(chat, line) {
    this.#running = new AbortController();
    const { signal } = this.#running;
    try {
      await answer(chat, line, signal);
    } catch (error) {
      if (error instanceof Exit) throw error;
      if (signal.aborted) await print('\n');
      else process.stderr.write(`wick: ${/** @type {Error} */ (error).message}\n`);
    } finally {
      this.#running = undefined;
    }
  }

  async run() {
    let chat = await this.#newChat();
    this.#lines.prompt();
    for await (const line of this.#lines) {
      if (line.trim() === '/new') {
        await chat.close();
        chat = await this.#newChat();
      } else if (line !== '') {
        await this.#answer(chat, line);
      }
      this.#lines.prompt();
    }
    await print('\n');
  }
}

/** @param {Chat} chat */
async function answerLines(chat) {
  for await (const line of createInterface({ input: process.stdin })) {
    if (line !== '') await answer(chat, line);
  }
}

/**
 * @param {import('./exit.js').Argument[]} found options that the WASI build has checked
 * @param {URL} home the folder of the package
 * @returns {Promise<undefined>}
 */
export async function chatWith(found, home) {
  const { last, generation, lora, positionals } = readOptions(found);
  const model = onlyModel(positionals, 'wick chat MODEL [-p TEXT] [options]');
  const question = last.get('-p');
  if (model === '-' && question === undefined) {
    throw new Exit(EXIT_USAGE, 'standard input is the model already: give the question with -p');
  }
  const template = last.get('--template');
  const chatTemplate = template === undefined ? '' : readText(template);
  /** @type {typeof import('../index.js')} */
  const { createEngine } = await import(new URL('index.js', home).href);
  const { source, ready } = sourceOf(model);
  const options = { ...source, ...engineOptionsOf(last), ...(chatTemplate && { chatTemplate }) };
  const engine = await createEngine(/** @type {any} */ (options)).finally(ready);
  try {
    const system = last.get('--system');
    const settings = {
      ...chatFieldsOf(/** @type {Record<string, unknown>} */ (generation)),
      ...(await loadAdapters(engine, lora)),
      ...(system !== undefined && { system }),
      ...(last.has('--parse-special') && { parseSpecial: true }),
    };
    const newChat = () => engine.createChat(settings);
    if (question !== undefined) await answer(await newChat(), question);
    else if (process.stdin.isTTY) await new Talk(newChat).run();
    else await answerLines(await newChat());
  } finally {
    await engine.close();
  }
}
