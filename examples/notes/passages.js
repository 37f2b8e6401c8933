// examples/notes/passages.js — splits a note into passages: the pieces that an embedder reads at
// once and that a search shows. A passage stays within one section.

/** @typedef {{heading: string, text: string}} Passage */

/** The size of a passage: about 250 tokens, because small embedders read 512. */
const PASSAGE_CHARACTERS = 1000;
const TITLE_CHARACTERS_MAX = 200;

/**
 * The maximum length of a heading; longer lines are plain text.
 * @param {string} line
 * @returns {string | undefined} the text of a heading
 */
function headingOf(line) {
  const marks = /^#{1,6}(?=\s|$)/.exec(line)?.[0].length;
  if (marks === undefined) return undefined;
  const text = line.slice(marks).trim();
  let end = text.length;
  while (text[end - 1] === '#') end--;
  const isClosed = end === 0 || /\s/.test(text[end - 1]); // "C#" is not
  const heading = isClosed ? text.slice(0, end).trimEnd() : text;
  return heading.length > TITLE_CHARACTERS_MAX ? undefined : heading;
}

/**
 * @param {string} block
 * @returns {string[]} pieces of at most the size of a passage, cut between words if possible
 */
function cut(block) {
  const pieces = [];
  let rest = block;
  while (rest.length > PASSAGE_CHARACTERS) {
    const space = rest.lastIndexOf(' ', PASSAGE_CHARACTERS);
    const line = rest.lastIndexOf('\n', PASSAGE_CHARACTERS);
    let at = Math.max(space, line);
    if (at < PASSAGE_CHARACTERS / 2) {
      at = PASSAGE_CHARACTERS;
      const code = rest.charCodeAt(at - 1);
      if (code >= 0xd800 && code < 0xdc00) at--; // does not split a surrogate pair
    }
    pieces.push(rest.slice(0, at));
    rest = rest.slice(at);
  }
  return [...pieces, rest].map((piece) => piece.trim()).filter((piece) => piece !== '');
}

/**
 * @param {string} text of a note
 * @returns {Passage[]}
 */
export function passagesOf(text) {
  /** @type {Passage[]} */
  const passages = [];
  let heading = '';
  let block = '';
  let isCode = false;
  const end = () => {
    for (const piece of cut(block)) passages.push({ heading, text: piece });
    block = '';
  };
  const body = text.replace(/^---\n[\s\S]{0,20000}?\n---\n/, ''); // front matter
  for (const line of body.split('\n')) {
    if (/^\s*(```|~~~)/.test(line)) isCode = !isCode;
    const found = isCode ? undefined : headingOf(line);
    if (found !== undefined) {
      end();
      heading = found;
      continue;
    }
    const isBreak = line.trim() === '';
    if (isBreak && block.length > PASSAGE_CHARACTERS * 0.6) end();
    else if (block.length + line.length > PASSAGE_CHARACTERS && block.trim() !== '') {
      end();
      block = `${line}\n`;
    } else block += `${line}\n`;
  }
  end();
  return passages;
}

/**
 * @param {string} text
 * @param {string} path
 * @returns {string} its first heading, or the file's name if it has none
 */
export function titleOf(text, path) {
  const first = /^#\s+(.{1,200})$/m.exec(text.slice(0, 20_000))?.[1];
  return first?.trim() || (path.split('/').at(-1) ?? path).replace(/\.\w+$/, '');
}

/** Returns the text of a passage for the embedder. @param {string} title @param {Passage} passage */
export const embeddedText = (title, { heading, text }) =>
  [title, heading === title ? '' : heading, text].filter(Boolean).join('\n');
