// examples/playground/editor.js — a field for a rule, in which the position of an error is marked
// below the text.

import { byId } from '../chat/dom.js';
import { placeOf } from './rules.js';

const field = /** @type {HTMLTextAreaElement} */ (byId('rule'));
const marks = byId('rule-marks');

/** Returns the range to mark: the word or character at a position. @param {string} text @param {number} at */
function rangeAt(text, at) {
  const start = Math.min(at, Math.max(0, text.length - 1));
  const word = /^("(?:[^"\\\n]|\\.){0,200}"?|\w{1,200})/.exec(text.slice(start, start + 204));
  return { start, end: Math.min(text.length, start + (word ? word[0].length : 1)) };
}

/** @type {{start: number, end: number} | undefined} */
let marked;

function follow() {
  marks.scrollTop = field.scrollTop;
}

/** @param {import('./rules.js').Fault | undefined} fault */
export function showFault(fault) {
  const text = field.value;
  marked = fault?.at === undefined ? undefined : rangeAt(text, fault.at);
  byId('rule-problem').hidden = fault === undefined;
  byId('rule-go').hidden = marked === undefined;
  field.setAttribute('aria-invalid', String(fault !== undefined));
  marks.replaceChildren();
  if (!fault) return;
  const place = fault.at === undefined ? undefined : placeOf(text, fault.at);
  const where = place ? `Line ${place.line}, column ${place.column}: ` : '';
  byId('rule-problem-text').textContent = where + fault.message;
  if (!marked) return;
  const mark = document.createElement('mark');
  mark.textContent = text.slice(marked.start, marked.end);
  // the last line feed of a <pre> is not a separate line
  marks.append(text.slice(0, marked.start), mark, `${text.slice(marked.end)}\n`);
  follow();
}

field.addEventListener('scroll', follow);
new ResizeObserver(follow).observe(field);
byId('rule-go').addEventListener('click', () => {
  if (!marked) return;
  field.focus();
  field.setSelectionRange(marked.start, marked.end);
  const { line } = placeOf(field.value, marked.start);
  const lineHeight = Number.parseFloat(getComputedStyle(field).lineHeight) || 20;
  field.scrollTop = Math.max(0, (line - 4) * lineHeight);
});
