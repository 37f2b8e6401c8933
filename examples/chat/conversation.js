// examples/chat/conversation.js — the messages of one conversation: what was said, how it looks,
// and the answer that is being written.

import { note, showAnswering } from './developer.js';
import { byId } from './dom.js';
import { addCopyButtons, renderMarkdown } from './markdown.js';
import { settings } from './settings.js';
import { keepConversation, keepState, readConversation } from './visits.js';

/** @typedef {import('../../js/index.d.ts').Engine} Engine */
/** @typedef {import('../../js/index.d.ts').ChatUsage} ChatUsage */
/** @typedef {import('../../js/index.d.ts').Timings} Timings */
/** @typedef {import('./visits.js').Message} Message */

/** @type {Engine | undefined} */
let engine;
/** @type {Message[]} */
let messages = [];
/** @type {AbortController | undefined} */
let running;
/** What suits the model, where the user has not said. */
let temperature = 0.7;

const log = byId('log');

/** @param {'user' | 'assistant'} role */
function addMessage(role) {
  const article = document.createElement('article');
  article.className = `message ${role}`;
  const who = document.createElement('h3');
  who.className = 'who';
  who.textContent = role === 'user' ? 'You' : 'Model';
  const body = document.createElement('div');
  body.className = 'body';
  article.append(who, body);
  log.append(article);
  byId('welcome').hidden = true;
  return { article, body };
}

/** Follows the text down unless the reader has scrolled up. */
function keepInView() {
  if (log.scrollHeight - log.scrollTop - log.clientHeight < 160) {
    log.scrollTo({ top: log.scrollHeight, behavior: 'instant' });
  }
}

/** @param {Timings | undefined} timings @param {number} tokens @param {string | null} reason */
function describe(timings, tokens, reason) {
  if (!timings) return 'stopped';
  const facts = [`${tokens} tokens`];
  if (tokens > 1) facts.push(`${timings.decodeTokensPerSecond.toFixed(1)} tokens/s`);
  facts.push(`first after ${Math.round(timings.ttftMs)} ms`);
  if (reason === 'length') facts.push('the longest allowed answer was reached');
  return facts.join(' · ');
}

/** @param {HTMLElement} article @param {string} facts @param {string} text */
function addFooter(article, facts, text) {
  for (const old of log.querySelectorAll('.regenerate')) old.remove();
  const footer = document.createElement('footer');
  const note = document.createElement('span');
  note.textContent = facts;
  footer.append(note);
  const copy = document.createElement('button');
  copy.textContent = 'Copy';
  copy.addEventListener('click', () => navigator.clipboard.writeText(text));
  const again = document.createElement('button');
  again.textContent = 'Regenerate';
  again.className = 'regenerate';
  again.addEventListener('click', regenerate);
  footer.append(copy, again);
  article.append(footer);
}

/** @returns {{role: string, content: string}[]} what the model is given */
function prompt() {
  const system = messages.at(-1)?.system ?? settings.system;
  const said = messages.map(({ role, content }) => ({ role, content }));
  return system.trim() === '' ? said : [{ role: 'system', content: system }, ...said];
}

/** @param {Engine} asked @param {AbortSignal} signal */
function request(asked, signal) {
  const random = Math.floor(Math.random() * 2 ** 32);
  return asked.chat.completions.create({
    messages: prompt(),
    stream: true,
    stream_options: { include_usage: true },
    temperature: settings.temperature ?? temperature,
    top_k: settings.topK,
    top_p: settings.topP,
    min_p: settings.minP,
    repeat_penalty: settings.repeatPenalty,
    max_tokens: settings.maxTokens,
    seed: settings.seed ?? random,
    signal,
  });
}

/** @param {boolean} isBusy */
function setBusy(isBusy) {
  byId('send').hidden = isBusy;
  byId('stop').hidden = !isBusy;
  showAnswering(isBusy);
  log.setAttribute('aria-busy', String(isBusy));
}

/**
 * Renders at most once a frame, however many tokens come.
 * @param {HTMLElement} body
 */
function makeRenderer(body) {
  let text = '';
  let isScheduled = false;
  const render = () => {
    isScheduled = false;
    renderMarkdown(body, text);
    keepInView();
  };
  return {
    /** @param {string} piece */
    add(piece) {
      text += piece;
      if (!isScheduled) requestAnimationFrame(render);
      isScheduled = true;
    },
    finish() {
      render();
      addCopyButtons(body);
      return text;
    },
  };
}

/** @param {ChatUsage} usage */
function noteUsage({ prompt_tokens, prompt_tokens_details }) {
  const kept = prompt_tokens_details.cached_tokens;
  note('Last prompt', `${prompt_tokens} tokens, ${kept} of them read before`);
}

/** @param {Engine} asked */
async function answer(asked) {
  running = new AbortController();
  const asking = messages;
  const { article, body } = addMessage('assistant');
  const renderer = makeRenderer(body);
  body.classList.add('waiting');
  for (const name of ['Last prompt', 'Next visit']) note(name, '');
  setBusy(true);
  keepInView();
  /** @type {Timings | undefined} */
  let timings;
  /** @type {ChatUsage | undefined} */
  let usage;
  /** @type {string | null} */
  let reason = null;
  /** @type {unknown} */
  let problem;
  try {
    for await (const chunk of await request(asked, running.signal)) {
      const choice = chunk.choices[0];
      if (choice?.delta.content) renderer.add(choice.delta.content);
      reason = choice?.finish_reason ?? reason;
      timings = chunk.timings ?? timings;
      usage = chunk.usage ?? usage;
    }
  } catch (error) {
    if (/** @type {Error} */ (error).name !== 'AbortError') problem = error;
  }
  running = undefined;
  body.classList.remove('waiting');
  const text = renderer.finish();
  setBusy(false);
  if (asking !== messages) return; // a new conversation has begun
  if (problem) {
    article.remove();
    throw problem;
  }
  messages.push({ role: 'assistant', content: text });
  addFooter(article, describe(timings, usage?.completion_tokens ?? 0, reason), text);
  if (usage) noteUsage(usage);
  keepConversation(messages);
  keepState(asked);
  byId('announcer').textContent = `The model answered: ${text}`;
  keepInView();
}

/** @param {string} text */
function addQuestion(text) {
  addMessage('user').body.textContent = text;
}

/** Shows what was said at the last visit. */
export function restore() {
  messages = readConversation();
  for (const { role, content } of messages) {
    if (role === 'user') {
      addQuestion(content);
      continue;
    }
    const { article, body } = addMessage('assistant');
    renderMarkdown(body, content);
    addCopyButtons(body);
    addFooter(article, 'from the last visit', content);
  }
  log.scrollTo({ top: log.scrollHeight, behavior: 'instant' });
}

/** @param {string} text @param {string} [system] for this message alone */
export async function say(text, system) {
  if (running || !engine) return;
  messages.push({ role: 'user', content: text, ...(system && { system }) });
  addQuestion(text);
  log.scrollTo({ top: log.scrollHeight, behavior: 'instant' });
  await answer(engine);
}

async function regenerate() {
  if (running || !engine || messages.at(-1)?.role !== 'assistant') return;
  messages.pop();
  log.querySelector('.message:last-of-type')?.remove();
  await answer(engine).catch((error) =>
    log.dispatchEvent(new CustomEvent('problem', { detail: error })),
  );
}

/** @param {Engine | undefined} answering @param {number} [suits] the temperature that suits its model */
export function setEngine(answering, suits = 0.7) {
  engine = answering;
  temperature = suits;
}

/** @returns {boolean} whether there was something to stop */
export function stop() {
  running?.abort();
  return running !== undefined;
}

export function clear() {
  stop();
  messages = [];
  keepConversation(messages);
  for (const article of log.querySelectorAll('.message')) article.remove();
  byId('welcome').hidden = false;
}
