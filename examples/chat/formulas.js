// examples/chat/formulas.js — finds formulas in Markdown: between $ and $, $$ and $$, \( and \), \[ and \].

/**
 * Matches a formula on separate lines. A formula has at most 2,000 characters, which limits how far
 * the pattern searches.
 */
const BLOCK = /^ {0,3}(?:\$\$([^$]{1,2000}?)\$\$|\\\[([\s\S]{1,2000}?)\\\]) *(?:\n|$)/;
const DISPLAYED = /^(?:\$\$([^$]{1,2000}?)\$\$|\\\[([\s\S]{1,2000}?)\\\])/;
/** Between single dollars, a formula must not begin or end with a space, and no digit may follow it: "$5 and $6" are two prices. */
const INLINE =
  /^(?:\$(?![\s$])((?:\\[^\n]|[^$\\\n]){0,1999}?(?:\\\S|[^$\\\s]))\$(?![\w$])|\\\(([\s\S]{1,2000}?)\\\))/;

/**
 * @param {string} name
 * @param {'block' | 'inline'} level
 * @param {RegExp} start
 * @param {RegExp} pattern with a group for each of the two notations
 */
const formula = (name, level, start, pattern) => ({
  name,
  level,
  start: (/** @type {string} */ source) => start.exec(source)?.index,
  tokenizer: (/** @type {string} */ source) => {
    const found = pattern.exec(source);
    const text = (found?.[1] ?? found?.[2] ?? '').trim();
    if (!found || text === '') return undefined;
    return { type: name, raw: found[0], text, isBlock: pattern !== INLINE };
  },
});

/** Extensions for marked, without a renderer. */
export const formulas = [
  formula('formulaBlock', 'block', /^ {0,3}(?:\$\$|\\\[)/m, BLOCK),
  formula('formulaDisplayed', 'inline', /\$\$|\\\[/, DISPLAYED),
  formula('formula', 'inline', /\$|\\\(/, INLINE),
];
