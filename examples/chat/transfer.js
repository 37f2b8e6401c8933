// examples/chat/transfer.js — conversations as files: JSON has all of a conversation, Markdown the branch that is
// shown. Both can be read in again. What is read in never replaces what is there.

import { erased, wholeFrom } from './records.js';
import { allAfter, fromTurns, isForgotten, shownAfter } from './tree.js';

/** @typedef {import('./records.js').Whole} Whole */

const FORMAT = 'wick-chat';
const FORMAT_VERSION = 1;
const names = { user: '## You', assistant: '## Model' };
/** A line of a message that looks like one of ours gets a backslash, which Markdown does not show. */
const heading = /^(\\*)(## (?:You|Model)|# .*)$/;

/** @param {Whole[]} wholes @returns {string} */
export const toJson = (wholes) =>
  JSON.stringify(
    { format: FORMAT, version: FORMAT_VERSION, conversations: wholes.map(withoutForgotten) },
    null,
    1,
  );

/** The places of what was forgotten stay, so that the rest keeps its own. @param {Whole} whole @returns {Whole} */
function withoutForgotten({ conversation, turns }) {
  const gone = new Set(
    allAfter(fromTurns(turns))
      .filter(isForgotten)
      .map(({ id }) => id),
  );
  return { conversation, turns: turns.map((one) => (gone.has(one.id) ? erased(one) : one)) };
}

/** @param {Whole} whole @returns {string} */
export function toMarkdown({ conversation, turns }) {
  const path = shownAfter(fromTurns(turns, conversation.shown));
  const said = path
    .filter((one) => !isForgotten(one))
    .flatMap(({ role, content }) => {
      const lines = content.split('\n').map((line) => line.replace(heading, '\\$&'));
      return [names[role], '', ...lines, ''];
    });
  return [`# ${conversation.title}`, '', ...said].join('\n');
}

/** @param {string} text @returns {Whole | undefined} */
function fromMarkdown(text) {
  let title = '';
  /** @type {{role: string, lines: string[]}[]} */
  const said = [];
  for (const line of text.replaceAll('\r\n', '\n').split('\n')) {
    const role = line === names.user ? 'user' : line === names.assistant ? 'assistant' : undefined;
    if (role) said.push({ role, lines: [] });
    else if (said.length > 0) said.at(-1)?.lines.push(line.replace(heading, unescaped));
    else if (title === '' && line.startsWith('# ')) title = line.slice(2);
  }
  const now = Date.now();
  const turns = said.map(({ role, lines }, index) => ({
    ...{ id: String(index), parent: index === 0 ? '' : String(index - 1), created: now + index },
    ...{ role, content: lines.join('\n').replace(/^\n|\n$/g, '') },
  }));
  return wholeFrom({ conversation: { title: title || undefined }, turns });
}

/** @param {string} _ @param {string} slashes @param {string} rest */
const unescaped = (_, slashes, rest) => `${slashes.slice(1)}${rest}`;

/**
 * @param {string} text of a file
 * @param {string} name of it
 * @returns {Whole[]} with ids of their own
 * @throws {Error} where the file has no conversations, or those of a newer page
 */
export function readConversations(text, name) {
  /** @type {any} */
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    const whole = fromMarkdown(text);
    if (whole) return [whole];
    throw new Error(`${name} is neither JSON nor Markdown of this page`);
  }
  if (found?.format !== FORMAT || !Array.isArray(found.conversations)) {
    throw new Error(`${name} has no conversations of this page`);
  }
  if (!(found.version <= FORMAT_VERSION)) {
    throw new Error(`${name} was written by a newer page (version ${found.version})`);
  }
  return found.conversations.map((/** @type {unknown} */ one, /** @type {number} */ index) => {
    const whole = wholeFrom(one);
    if (!whole) throw new Error(`${name}: conversation ${index + 1} is damaged`);
    return whole;
  });
}

/** @param {string} title @returns {string} that file systems take */
const fileNameOf = (title) =>
  title
    .replace(/[^\p{L}\p{N} ._-]+/gu, '')
    .trim()
    .slice(0, 60) || 'conversation';

/** @param {string} title @param {'json' | 'md'} kind @param {string} text */
export function download(title, kind, text) {
  const type = kind === 'json' ? 'application/json' : 'text/markdown';
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = `${fileNameOf(title)}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
