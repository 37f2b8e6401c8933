// examples/chat/transfer.js — exports and imports conversations: JSON contains the whole conversation,
// Markdown the visible branch. Both can be imported again. Imported conversations never replace
// existing ones.

import { asText } from './attachments.js';
import { fenceFor } from './blocks.js';
import { erase, wholeFrom } from './records.js';
import { allAfter, fromTurns, isForgotten, shownAfter } from './tree.js';

/** @import { Whole } from './records.js' */

const FORMAT = 'wick-chat';
const FORMAT_VERSION = 1;
const names = { user: '## You', assistant: '## Model' };
/** Matches lines of a message that look like our headings: they get a backslash, which Markdown does not show. */
const heading = /^(\\*)(## (?:You|Model)|## Call: .*|# .*)$/;
const CALL = '## Call: ';

/** @param {Whole[]} wholes @returns {string} */
export const toJson = (wholes) =>
  JSON.stringify(
    { format: FORMAT, version: FORMAT_VERSION, conversations: wholes.map(withoutForgotten) },
    null,
    1,
  );

/**
 * Empties forgotten turns but keeps them, so that the other turns keep their positions.
 * @param {Whole} whole
 * @returns {Whole}
 */
function withoutForgotten({ conversation, turns }) {
  const gone = new Set(
    allAfter(fromTurns(turns))
      .filter(isForgotten)
      .map(({ id }) => id),
  );
  return { conversation, turns: turns.map((one) => (gone.has(one.id) ? erase({ ...one }) : one)) };
}

/** @param {string} text @param {string} kind @returns {string[]} lines of a block that the text cannot close */
function blockLines(text, kind) {
  const fence = fenceFor(text);
  return [fence + kind, ...text.split('\n'), fence, ''];
}

/** @param {string} title @param {string[]} lines @returns {string[]} */
const section = (title, lines) => [
  title,
  '',
  ...lines.map((line) => line.replace(heading, '\\$&')),
  '',
];

/** @param {import('./tool_calls.js').Round} round @returns {string[]} */
const roundLines = ({ content, calls }) => [
  ...section(names.assistant, content.split('\n')),
  ...calls.flatMap(({ name, arguments: json, result }) =>
    section(CALL + name.replaceAll(/[\r\n]/g, ' '), [
      ...blockLines(json, 'json'),
      ...(result === undefined ? [] : blockLines(result, '')),
    ]),
  ),
];

/**
 * @param {Whole} whole whose attachments are loaded
 * @returns {string} with the text of files; the bytes of images and recordings are only in JSON
 */
export function toMarkdown({ conversation, turns }) {
  const path = shownAfter(fromTurns(turns, conversation.shown));
  const said = path
    .filter((one) => !isForgotten(one))
    .flatMap(({ role, content, rounds = [], media = [] }) => [
      ...rounds.flatMap(roundLines),
      ...section(
        names[role],
        [...media.map(asText), content].flatMap((text) => text.split('\n')),
      ),
    ]);
  return [`# ${conversation.title}`, '', ...said].join('\n');
}

/** @typedef {{role: string, lines: string[]}} Section `role`: user, assistant, or the heading of a call */

/**
 * @param {string[]} lines
 * @param {number} from
 * @param {string} kind
 * @returns {{text: string, next: number} | undefined} undefined if no block begins there
 */
function blockAt(lines, from, kind) {
  const start = lines.findIndex((line, index) => index >= from && line !== '');
  const ticks = /^`{3,}/.exec(lines[start] ?? '')?.[0];
  if (!ticks || lines[start] !== ticks + kind) return undefined;
  const end = lines.indexOf(ticks, start + 1);
  return end < 0 ? undefined : { text: lines.slice(start + 1, end).join('\n'), next: end + 1 };
}

/**
 * @param {Section} call
 * @param {number} index
 * @returns {import('./tool_calls.js').Call | undefined} undefined if it is text
 */
function callOf({ role, lines }, index) {
  const json = blockAt(lines, 0, 'json');
  if (!json) return undefined;
  const result = blockAt(lines, json.next, '');
  const call = { id: `call-${index}`, name: role.slice(CALL.length), arguments: json.text };
  return { ...call, ...(result && { result: result.text }) };
}

/** @param {string[]} lines */
const contentOf = (lines) => lines.join('\n').replace(/^\n|\n$/g, '');

/** @typedef {{role: string, content: string, rounds: import('./tool_calls.js').Round[]}} Said */

/** @param {Section[]} sections @returns {Said[]} the answers with their calls */
function saidIn(sections) {
  /** @type {Said[]} */
  const said = [];
  let isCalling = false;
  for (const [index, one] of sections.entries()) {
    const last = said.at(-1);
    const call = one.role.startsWith(CALL) ? callOf(one, index) : undefined;
    if (call && last?.role === 'assistant') {
      if (!isCalling) last.rounds.push({ content: last.content, calls: [] });
      last.rounds.at(-1)?.calls.push(call);
      last.content = '';
      isCalling = true;
    } else if (one.role.startsWith(CALL) && last) {
      // a section of a file that has no calls
      last.content += `\n\n${one.role}\n${one.lines.join('\n')}`.replace(/\n$/, '');
    } else if (isCalling && last && one.role === 'assistant') {
      last.content = contentOf(one.lines);
      isCalling = false;
    } else {
      said.push({ role: one.role, content: contentOf(one.lines), rounds: [] });
      isCalling = false;
    }
  }
  return said;
}

/**
 * @param {string} line
 * @param {boolean} isFirst
 * @returns {string | undefined} the role of the section that begins here, or undefined
 */
function roleOf(line, isFirst) {
  if (line === names.user) return 'user';
  if (line === names.assistant) return 'assistant';
  return !isFirst && line.startsWith(CALL) ? line : undefined;
}

/** @param {string} text @returns {Whole | undefined} */
function fromMarkdown(text) {
  let title = '';
  /** @type {Section[]} */
  const sections = [];
  for (const line of text.replaceAll('\r\n', '\n').split('\n')) {
    const role = roleOf(line, sections.length === 0);
    if (role) sections.push({ role, lines: [] });
    else if (sections.length > 0) sections.at(-1)?.lines.push(line.replace(heading, unescaped));
    else if (title === '' && line.startsWith('# ')) title = line.slice(2);
  }
  const now = Date.now();
  const turns = saidIn(sections).map((said, index) => ({
    ...{ id: String(index), parent: index === 0 ? '' : String(index - 1), created: now + index },
    ...said,
  }));
  return wholeFrom({ conversation: { title }, turns });
}

/** @param {string} _ @param {string} slashes @param {string} rest */
const unescaped = (_, slashes, rest) => `${slashes.slice(1)}${rest}`;

/**
 * @param {string} text the content of a file
 * @param {string} name its name
 * @returns {Whole[]} conversations with new ids
 * @throws {Error} if the file has no conversations, or was written by a newer page
 */
export function readConversations(text, name) {
  /** @type {any} */
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    const whole = fromMarkdown(text);
    if (whole) return [whole];
    throw new Error(`${name} is not a file that this page exported`);
  }
  if (found?.format !== FORMAT || !Array.isArray(found.conversations)) {
    throw new Error(`${name} has no conversations from this page`);
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
