// examples/chat/shown_branch.js — the visible branch of a conversation: the elements of its messages,
// and the later turns of other branches, which stay visible.

import { showMedia } from './attachments.js';
import { holdButtons } from './conversation.js';
import { byId, make } from './dom.js';
import { renderMarkdown } from './markdown.js';
import { addArticle, addElsewhere } from './message.js';
import { addControls, turnTo } from './message_controls.js';
import { showReasoning } from './reasoning.js';
import { showCalls } from './tool_calls.js';
import { isForgotten, saidUntil, shownAfter } from './tree.js';

/** @import { Message, Place } from './tree.js' */

const log = byId('log');

/** The elements of the shown messages. @type {Map<Message, HTMLElement>} */
export const articles = new Map();

/** @param {HTMLElement} article @param {string} fold the summary of the turns before it */
function showFold(article, fold) {
  article.querySelector(':scope > .fold')?.remove();
  if (fold === '') return;
  const words = `Summary of the earlier messages: ${fold}`;
  article.prepend(make('p', { className: 'fold', dir: 'auto' }, words));
}

/** @param {Message} message */
function fill(message) {
  const article = /** @type {HTMLElement} */ (articles.get(message));
  const body = /** @type {HTMLElement | null} */ (article.querySelector('.body'));
  if (!body) return; // the message is being edited
  const isGone = isForgotten(message);
  const isAnswer = message.role === 'assistant';
  article.classList.toggle('forgotten', isGone);
  article.hidden = isGone && isAnswer;
  article.querySelector('.words')?.remove();
  body.hidden = false;
  if (isAnswer) {
    showReasoning(body, isGone ? '' : (message.reasoning ?? ''), message.reasoningMs ?? 0);
    showCalls(body, isGone ? [] : message.rounds, message.state === 'writing');
  }
  showMedia(body, isGone ? [] : message.media);
  if (isGone) body.textContent = isAnswer ? '' : 'A question and its answer were forgotten.';
  else if (isAnswer) renderMarkdown(body, message.content);
  else body.textContent = message.content;
  article.querySelector('footer')?.remove();
  article.classList.toggle('start', message.isStart === true);
  showFold(article, (message.isStart && message.fold) || '');
  addControls(message, article);
  holdButtons(article); // another tab may have changed the message
}

/** Removes follow-up questions, which belong to the text that was shown before. */
const removeFollowUps = () => log.querySelector('.follow-ups')?.remove();

/** @param {Message} message */
function append(message) {
  const { article } = addArticle(message.role);
  articles.set(message, article);
  fill(message);
}

/** @param {Place} place */
export function hideAfter(place) {
  removeFollowUps();
  const path = new Set(saidUntil(place));
  for (const [message, article] of articles) {
    if (path.has(message)) continue;
    article.remove();
    articles.delete(message);
  }
  log.querySelector('.elsewhere')?.remove();
}

/** Shows the continuation of another branch at the end of this one. @param {Place} place */
export function showElsewhere(place) {
  log.querySelector('.elsewhere')?.remove();
  const last = /** @type {Message | undefined} */ (shownAfter(place).at(-1) ?? place);
  if (!last?.parent || last.children.length > 0) return;
  const { parent } = last;
  const other = parent.children.findLast((one) => one !== last && one.children.length > 0);
  if (!other) return;
  const version = parent.children.indexOf(other) + 1;
  const later = shownAfter(other).filter((one) => !isForgotten(one));
  addElsewhere(version, later, () => turnTo(parent, other.id));
}

/** @param {Place} place */
export function showAfter(place) {
  hideAfter(place);
  for (const message of shownAfter(place)) append(message);
  showElsewhere(place);
}

/** Redraws a message if it is on the branch that is shown. @param {Message} message */
export function refresh(message) {
  if (articles.has(message)) return fill(message);
  const end = shownAfter(message.parent)[0] === message;
  const isLast = !('id' in message.parent) || articles.has(/** @type {Message} */ (message.parent));
  const hasOther = message.parent.children.some((one) => articles.has(one));
  if (!end || !isLast || hasOther) return;
  log.querySelector('.elsewhere')?.remove();
  removeFollowUps();
  append(message);
}

export function hideAll() {
  for (const article of log.querySelectorAll('.message, .elsewhere')) article.remove();
  articles.clear();
  byId('welcome').hidden = false;
}
