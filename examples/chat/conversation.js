// examples/chat/conversation.js — one conversation as a tree: its messages, the branch that is shown, and
// the answers that are being written. A new branch is read only from the message where it leaves an
// older one: the engine's prefix cache has the rest.

import { note, showAnswering } from './developer.js';
import { byId, makeButton, makeCopyButtons } from './dom.js';
import { addCopyButtons, renderMarkdown } from './markdown.js';
import {
  addArticle,
  addFooter,
  editQuestion,
  keepInView,
  makeArrows,
  makeRenderer,
} from './message.js';
import { settings } from './settings.js';
import { add, fromList, newTree, saidUntil, shownAfter, toList } from './tree.js';
import { keepConversation, keepState, readConversation } from './visits.js';

/** @typedef {import('wick-llm').Engine} Engine */
/** @typedef {import('wick-llm').ChatUsage} ChatUsage */
/** @typedef {import('wick-llm').ChatCompletionChunk} ChatCompletionChunk */
/** @typedef {import('wick-llm').Timings} Timings */
/** @typedef {import('./tree.js').Message} Message */
/** @typedef {import('./tree.js').Place} Place */
/** @typedef {ReturnType<typeof makeRenderer>} Renderer */

/** The number of answers that are written side by side. */
const VARIANTS = 3;
/** The least temperature when the user asks for another answer. */
const VARIANT_TEMPERATURE = 0.8;

/** @type {Engine | undefined} */
let engine;
let tree = newTree();
/** Of the messages that are shown. @type {Map<Message, HTMLElement>} */
const articles = new Map();
/** The question whose answers stand side by side. @type {Message | undefined} */
let compared;
/** @type {AbortController | undefined} */
let running;
/** The temperature that suits the model, unless the user has set one. */
let temperature = 0.7;

const log = byId('log');

// ---- the shown branch ----

/** @param {Place} place */
function hideAfter(place) {
  const path = new Set(saidUntil(place));
  for (const [message, article] of articles) {
    if (path.has(message)) continue;
    article.remove();
    articles.delete(message);
  }
  compared = undefined;
}

/** @param {Place} place */
function showAfter(place) {
  hideAfter(place);
  for (const message of shownAfter(place)) {
    const { article, places } = addArticle(message.role);
    articles.set(message, article);
    if (message.role === 'user') {
      places[0].body.textContent = message.content;
    } else {
      renderMarkdown(places[0].body, message.content);
      addCopyButtons(places[0].body);
    }
    addControls(message, article);
  }
}

/** @param {Message} message @param {HTMLElement} article */
function addControls(message, article) {
  const arrows = makeArrows(message, (index, direction) =>
    turnTo(message.parent, index, direction),
  );
  if (message.role === 'user') {
    const ask = () => editQuestion(article, message.content, (text) => reword(message, text));
    addFooter(article, '', [...arrows, makeButton('Edit', ask, 'branching')]);
    return;
  }
  const question = /** @type {Message} */ (message.parent);
  addFooter(article, message.facts ?? '', [
    ...arrows,
    ...makeCopyButtons('', () => message.content),
    makeButton('Regenerate', () => answerAnew(question, 1), 'regenerate branching'),
    makeButton(`${VARIANTS} variants`, () => answerAnew(question, VARIANTS), 'compare branching'),
  ]);
}

/** Shows another version of a message. @param {Place} parent @param {number} index @param {string} direction */
function turnTo(parent, index, direction) {
  parent.shown = index;
  showAfter(parent);
  keepConversation(toList(tree));
  const article = articles.get(parent.children[index]);
  const arrow = article?.querySelector(`[data-direction=${direction}]`);
  /** @type {HTMLElement | null | undefined} */ (arrow)?.focus();
  byId('announcer').textContent = `Version ${index + 1} of ${parent.children.length}`;
}

/** @param {boolean} isBusy */
function setBusy(isBusy) {
  const [shown, hidden] = isBusy ? [byId('stop'), byId('send')] : [byId('send'), byId('stop')];
  const hadFocus = document.activeElement === hidden;
  shown.hidden = false;
  if (hadFocus) shown.focus(); // else the focus is lost
  hidden.hidden = true;
  showAnswering(isBusy);
  log.setAttribute('aria-busy', String(isBusy));
  for (const button of log.querySelectorAll('.branching')) {
    /** @type {HTMLButtonElement} */ (button).disabled = isBusy;
  }
}

// ---- an answer, or several ----

/** @param {Timings | undefined} timings @param {string} reason */
function describe(timings, reason) {
  if (!timings) return 'stopped';
  const tokens = 1 + Math.round((timings.decodeTokensPerSecond * timings.decodeMs) / 1000);
  const facts = [`${tokens} tokens`];
  if (tokens > 1) facts.push(`${timings.decodeTokensPerSecond.toFixed(1)} tokens/s`);
  facts.push(`first after ${Math.round(timings.ttftMs)} ms`);
  if (reason === 'length') facts.push('the longest allowed answer was reached');
  return facts.join(' · ');
}

/** @param {Message} question @returns {{role: string, content: string}[]} what the model is given */
function prompt(question) {
  const system = question.system ?? settings.system;
  const said = saidUntil(question).map(({ role, content }) => ({ role, content }));
  return system.trim() === '' ? said : [{ role: 'system', content: system }, ...said];
}

/** @param {Engine} asked @param {Message} question @param {number} count @param {AbortSignal} signal */
function request(asked, question, count, signal) {
  const random = Math.floor(Math.random() * 2 ** 32);
  const wanted = settings.temperature ?? temperature;
  const others = question.children.length;
  const isFirst = others === 0 && count === 1;
  return asked.chat.completions.create({
    messages: prompt(question),
    n: count,
    stream: true,
    stream_options: { include_usage: true },
    temperature: isFirst ? wanted : Math.max(wanted, VARIANT_TEMPERATURE),
    top_k: settings.topK,
    top_p: settings.topP,
    min_p: settings.minP,
    repeat_penalty: settings.repeatPenalty,
    max_tokens: settings.maxTokens,
    seed: settings.seed === undefined ? random : settings.seed + others,
    signal,
  });
}

/** @param {ChatUsage} usage */
function noteUsage({ prompt_tokens, prompt_tokens_details }) {
  const kept = prompt_tokens_details.cached_tokens;
  note('Last prompt', `${prompt_tokens} tokens, ${kept} of them read before`);
}

/**
 * @param {AsyncIterable<ChatCompletionChunk>} chunks
 * @param {Renderer[]} renderers one for each choice
 * @param {string[]} facts of each choice that has ended: filled in
 */
async function write(chunks, renderers, facts) {
  for await (const { choices, usage, timings } of chunks) {
    for (const { index, delta, finish_reason } of choices) {
      if (delta.content) renderers[index].add(delta.content);
      if (!finish_reason) continue;
      facts[index] = describe(timings, finish_reason);
      renderers[index].finish();
    }
    if (usage) noteUsage(usage);
  }
}

/**
 * Has the model answer the last message that is shown, a question.
 * @param {Engine} asked
 * @param {Message} question
 * @param {number} [count] answers side by side
 */
async function answer(asked, question, count = 1) {
  running = new AbortController();
  const asking = tree;
  const { article, places } = addArticle('assistant', count);
  const renderers = places.map(({ body }) => makeRenderer(body));
  /** @type {string[]} */
  const facts = [];
  /** @type {unknown} */
  let problem;
  for (const name of ['Last prompt', 'Next visit']) note(name, '');
  setBusy(true);
  keepInView();
  try {
    await write(await request(asked, question, count, running.signal), renderers, facts);
  } catch (error) {
    if (/** @type {Error} */ (error).name !== 'AbortError') problem = error;
  }
  running = undefined;
  const texts = renderers.map((renderer) => renderer.finish());
  setBusy(false);
  if (asking !== tree) return; // a new conversation has begun
  if (problem) {
    article.remove();
    offerAgain(question);
    throw problem;
  }
  const answers = texts.map((content, index) =>
    add(question, { role: 'assistant', content, facts: facts[index] ?? 'stopped' }),
  );
  question.shown -= count - 1;
  articles.set(answers[0], article);
  if (count === 1) addControls(answers[0], article);
  else compare(question, answers, places);
  keepConversation(toList(tree));
  keepState(asked);
  byId('announcer').textContent =
    count === 1 ? `The model answered: ${texts[0]}` : `The model wrote ${count} answers`;
  keepInView();
}

/** Another try for a question whose answer failed. @param {Message} question */
function offerAgain(question) {
  showAfter(question.parent);
  if (question.children.length > 0) return; // it has other answers
  const again = () => {
    button.remove();
    answerAnew(question, 1);
  };
  const button = makeButton('Answer again', again, 'branching');
  articles.get(question)?.querySelector('footer')?.append(button);
}

/** Lets the user choose. @param {Message} question @param {Message[]} answers @param {{holder: HTMLElement}[]} places */
function compare(question, answers, places) {
  compared = question;
  for (const [index, one] of answers.entries()) {
    const choose = () => turnTo(question, question.children.indexOf(one), 'next');
    const button = makeButton('Go on with this one', choose, 'choose branching');
    addFooter(places[index].holder, one.facts ?? '', [button]);
  }
}

/** @param {Message} question @param {number} count */
async function answerAnew(question, count) {
  if (running || !engine) return;
  hideAfter(question);
  log.focus({ preventScroll: true });
  await answer(engine, question, count).catch(tell);
}

/** @param {Message} message @param {string} text */
async function reword(message, text) {
  if (running || !engine) return;
  const { role, system, parent } = message;
  const question = add(parent, { role, content: text, ...(system && { system }) });
  showAfter(parent);
  log.focus({ preventScroll: true });
  await answer(engine, question).catch(tell);
}

/** @param {unknown} error */
const tell = (error) => log.dispatchEvent(new CustomEvent('problem', { detail: error }));

// ---- calls of the page ----

/** Shows the conversation of the last visit. */
export function restore() {
  tree = fromList(readConversation());
  showAfter(tree);
  log.scrollTo({ top: log.scrollHeight, behavior: 'instant' });
}

/** @param {string} text @param {string} [system] for this message alone */
export async function say(text, system) {
  if (running || !engine) return;
  if (compared) showAfter(compared); // the first answer, unless the user has chosen one
  const last = shownAfter(tree).at(-1) ?? tree;
  const question = add(last, { role: 'user', content: text, ...(system && { system }) });
  showAfter(last);
  log.scrollTo({ top: log.scrollHeight, behavior: 'instant' });
  await answer(engine, question);
}

/** @param {Engine | undefined} answering @param {number} [suits] the temperature that suits its model */
export function setEngine(answering, suits = 0.7) {
  engine = answering;
  temperature = suits;
}

export const isAnswering = () => running !== undefined;

export function stop() {
  running?.abort();
}

export function clear() {
  stop();
  tree = newTree();
  keepConversation([]);
  for (const article of log.querySelectorAll('.message')) article.remove();
  articles.clear();
  compared = undefined;
  byId('welcome').hidden = false;
}
