// examples/chat/turn_summary.js — replaces the oldest turns with a summary that the model writes.
// Loaded when it is first requested.

import { messagesOf } from './answer_request.js';

/** @import { Message } from './tree.js' */

const SUMMARY_TOKENS = 200;
const ASKED =
  'Summarise our conversation so far in at most five sentences. Keep names, numbers and decisions. Write only the summary.';

/**
 * @param {import('wick-llm').Engine} engine
 * @param {Message[]} path the turns to fold; if they are too long for the context, only their end is used
 * @returns {Promise<string>}
 */
export async function summarise(engine, path) {
  const { contextSize } = await engine.info();
  const most = contextSize - SUMMARY_TOKENS;
  let turns = path;
  /** @returns {import('wick-llm').ChatMessage[]} */
  const messages = () => [...messagesOf(turns), { role: 'user', content: ASKED }];
  while (turns.length > 1 && (await engine.countTokens(messages())) > most) turns = turns.slice(1);
  const body = { messages: messages(), max_tokens: SUMMARY_TOKENS, temperature: 0 };
  const { choices } = await engine.chat.completions.create(body);
  return (choices[0].message.content ?? '').trim();
}
