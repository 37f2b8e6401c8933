// examples/chat/words.js — the words of an answer: for each, the page shows the model's alternatives
// with their probabilities. Choosing one continues from there in a separate version. This file is
// loaded when it is first needed.

import { messagesOf } from './answer_request.js';
import { forkBook } from './book.js';
import { formatNumber, make, makeButton, moveByKeys } from './dom.js';
import { saidUntil } from './tree.js';

/** @import { Engine } from 'wick-llm' */
/** @import { Message } from './tree.js' */
/**
 * `at` is where its text begins, including the space before it.
 * @typedef {{at: number, text: string}} Word
 */
/** @typedef {{text: string, probability: number, isEnd: boolean, canStand: boolean}} Alternative */
/** @typedef {(message: Message, at: number, piece: string, isEnd: boolean) => unknown} Branch */

/** The maximum number of words, because a page with a hundred thousand elements is slow. */
const WORDS_MAX = 4000;
const ALTERNATIVES = 8;

/** @param {string} text @returns {Iterable<string>} */
function partsOf(text) {
  if (!Intl.Segmenter) return text.match(/\s+|[^\s]+/g) ?? [];
  const parts = new Intl.Segmenter(undefined, { granularity: 'word' }).segment(text);
  return Array.from(parts, ({ segment }) => segment);
}

/**
 * @param {string} text
 * @returns {Word[]} the words, each with the white space before it, because models generate them in
 * this form
 */
export function wordsOf(text) {
  /** @type {Word[]} */
  const words = [];
  let space = '';
  let at = 0;
  for (const part of partsOf(text)) {
    if (part.trim() === '') {
      space += part;
      continue;
    }
    words.push({ at, text: space + part });
    at += space.length + part.length;
    space = '';
    if (words.length === WORDS_MAX) break;
  }
  return words;
}

/**
 * @param {number[]} bytes
 * @returns {string | undefined} undefined if they end within a character
 */
function textOf(bytes) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
      Uint8Array.from(bytes),
    );
  } catch {
    return undefined;
  }
}

/** @param {Engine} engine @returns {Promise<{ids: number[], texts: Set<string>}>} the tokens that end an answer */
async function endsOf(engine) {
  const { tokenizer } = await engine.info();
  const ids = tokenizer?.ends ?? [];
  const texts = ids.map((id) => engine.detokenize([id], { special: true }));
  return { ids, texts: new Set(await Promise.all(texts)) };
}

/**
 * Returns whether a token is one of the model's control tokens, which text never contains.
 * @param {Engine} engine
 * @param {string} text
 */
async function isMark(engine, text) {
  if (!/^[<[].*[>\]]$/s.test(text)) return false;
  const [asMark, asText] = await Promise.all([
    engine.tokenize(text, { parseSpecial: true }),
    engine.tokenize(text, { parseSpecial: false }),
  ]);
  return asMark.join() !== asText.join();
}

/**
 * @param {Engine} engine
 * @param {Message} message an answer
 * @param {number} at the length of the part that is kept
 * @returns {Promise<Alternative[]>} possible next words, the most probable first
 */
async function alternativesAt(engine, message, at) {
  const path = saidUntil(message);
  const begun = { ...message, content: message.content.slice(0, at) };
  const messages = messagesOf([...path.slice(0, -1), begun], begun);
  const last = messages.at(-1);
  if (last?.role === 'assistant' && last.content === '') messages.pop();
  const ends = await endsOf(engine);
  const session = await forkBook(engine, path);
  const asking = engine.chat.completions.create({
    ...{ messages, session, max_tokens: 1, temperature: 0 },
    ...{ logprobs: true, top_logprobs: ALTERNATIVES },
    // prevents the answer from ending immediately, because then no token would be reported; the
    // bias does not change the reported probabilities
    logit_bias: Object.fromEntries(ends.ids.map((id) => [id, -100])),
  });
  const { choices } = await asking.finally(() => session?.close());
  const [first] = choices[0].logprobs?.content ?? [];
  const alternatives = (first?.top_logprobs ?? []).map(async ({ token, bytes, logprob }) => {
    const text = textOf(bytes);
    const isEnd = ends.texts.has(token);
    const canStand = text !== undefined && (isEnd || !(await isMark(engine, text)));
    return { text: text ?? token, probability: Math.exp(logprob), isEnd, canStand };
  });
  return Promise.all(alternatives);
}

/** @param {number} share @returns {string} */
const inPercent = (share) => (share < 0.001 ? 'under 0.1 %' : `${(share * 100).toFixed(1)} %`);

/** Makes white space visible. @param {string} text */
const visible = (text) => text.replaceAll('\n', '⏎').replaceAll('\t', '⇥').replace(/^ $/, '␣');

/**
 * @param {Alternative} alternative
 * @param {boolean} isOwn whether it is the word in the answer
 * @param {() => void} choose
 * @returns {HTMLLIElement}
 */
function itemOf({ text, probability, isEnd, canStand }, isOwn, choose) {
  const button = makeButton('', choose);
  const name = make('bdi', {}, isEnd ? 'end here' : visible(text));
  const bar = make('meter', { value: probability, ariaHidden: 'true' });
  button.append(name, bar, ` ${inPercent(probability)}${isOwn ? ', chosen' : ''}`);
  button.disabled = isOwn || !canStand;
  return make('li', {}, button);
}

/** @param {Word[]} words @param {(word: Word, element: HTMLElement) => void} choose @returns {HTMLElement} */
function fieldOf(words, choose) {
  const ariaLabel = 'Words of this answer; use the arrow keys to move';
  const field = make('div', { className: 'words-text', dir: 'auto', role: 'group', ariaLabel });
  for (const [index, word] of words.entries()) {
    const known = { role: 'button', ariaPressed: 'false', tabIndex: index === 0 ? 0 : -1 };
    const text = word.text.trimStart();
    const element = make('span', known, text);
    element.addEventListener('click', () => choose(word, element));
    field.append(word.text.slice(0, -text.length), element);
  }
  moveByKeys(field, ['ArrowLeft', 'ArrowRight']);
  return field;
}

/** @param {Word[]} words @param {string} text @returns {HTMLElement[]} the text after the words, if there is more */
function restOf(words, text) {
  const last = words.at(-1);
  const rest = last ? text.slice(last.at + last.text.length) : '';
  if (rest.trim() === '') return [];
  const hint = `Only the first ${formatNumber(WORDS_MAX)} words can be chosen.`;
  return [
    make('div', { className: 'words-rest', dir: 'auto' }, rest),
    make('p', { className: 'hint' }, hint),
  ];
}

/**
 * Shows an answer as words that can be chosen, or as normal text again.
 * @param {Engine} engine @param {Message} message @param {HTMLElement} article @param {Branch}
 * branch continues from a different word
 */
export async function toggleWords(engine, message, article, branch) {
  const body = /** @type {HTMLElement} */ (article.querySelector('.body'));
  const before = article.querySelector('.words');
  before?.remove();
  body.hidden = !before;
  if (before) return;
  const panel = make('div', { className: 'words' });
  const list = make('ul');
  const close = () => {
    panel.remove();
    body.hidden = false;
    /** @type {HTMLElement | null} */ (article.querySelector('.open-menu'))?.focus();
  };
  const hint = 'Choose a word to see what else the model could have written there.';
  const says = make('p', { role: 'status' }, hint);
  let turn = 0;
  const choose = async (/** @type {Word} */ word, /** @type {HTMLElement} */ element) => {
    const own = ++turn;
    for (const one of element.parentElement?.children ?? [])
      one.setAttribute('aria-pressed', String(one === element));
    list.replaceChildren();
    says.textContent = 'Asking the model …';
    const found = await alternativesAt(engine, message, word.at).catch((error) => String(error));
    if (own !== turn) return;
    if (typeof found === 'string') {
      says.textContent = `The alternatives are not available: ${found}`;
      return;
    }
    const isOwn = (/** @type {Alternative} */ one) => !one.isEnd && word.text.startsWith(one.text);
    const has = found.findIndex(isOwn);
    const odds = has < 0 ? 'not among the most likely' : inPercent(found[has].probability);
    says.textContent = `“${word.text.trim()}”: ${odds}. Alternatives:`;
    const items = found.map((one, index) =>
      itemOf(one, index === has, () =>
        branch(message, word.at, one.isEnd ? '' : one.text, one.isEnd),
      ),
    );
    list.replaceChildren(...items);
    /** @type {HTMLElement | null} */ (list.querySelector('button:enabled'))?.focus();
  };
  const words = wordsOf(message.content);
  panel.append(
    fieldOf(words, choose),
    ...restOf(words, message.content),
    says,
    list,
    makeButton('Done', close),
  );
  panel.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    const at = /** @type {HTMLElement | null} */ (panel.querySelector('[aria-pressed=true]'));
    if (list.contains(document.activeElement)) at?.focus();
    else close();
    event.stopPropagation();
  });
  body.after(panel);
}
