// examples/chat/message.js — the elements of a message: its text, several answers side by side, the buttons
// below it, and the field in which a question is edited.

import { makeIconButton } from './actions.js';
import { byId, isSending, make, makeButton } from './dom.js';

/** @import { Message } from './tree.js' */

const log = byId('log');

/**
 * Creates a message with space for several answers that are generated at the same time.
 * @param {'user' | 'assistant'} role
 * @param {number} [count]
 * @returns {{article: HTMLElement, places: {holder: HTMLElement, body: HTMLElement}[]}}
 */
export function addArticle(role, count = 1) {
  const who = make('h3', { className: 'who' }, role === 'user' ? 'You' : 'Model');
  const article = make('article', { className: `message ${role}` }, who);
  const columns = count > 1 ? make('div', { className: 'columns' }) : article;
  if (count > 1) article.append(columns);
  const places = Array.from({ length: count }, (_, index) => {
    const body = make('div', { className: 'body', dir: 'auto' });
    const ariaLabel = `Variant ${index + 1} of ${count}`;
    const holder = count > 1 ? make('section', { className: 'variant', ariaLabel }) : article;
    if (count > 1) columns.append(holder);
    holder.append(body);
    return { holder, body };
  });
  log.append(article);
  byId('welcome').hidden = true;
  return { article, places };
}

/**
 * Keeps the end of the text in view unless the reader has scrolled up.
 * @param {() => void} [change] a change that may cover the end
 */
export function keepInView(change) {
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 160;
  change?.();
  if (isAtEnd && byId('welcome').hidden)
    log.scrollTo({ top: log.scrollHeight, behavior: 'instant' });
}

/** @param {HTMLElement} holder @param {string} facts @param {HTMLElement[]} controls */
export function addFooter(holder, facts, controls) {
  holder.append(make('footer', {}, make('span', {}, facts), ...controls));
}

/**
 * Makes the arrows of a message that has several versions.
 * @param {Message} message
 * @param {(id: string, direction: string) => void} choose called with the chosen version
 * @returns {HTMLElement[]} one element, or none
 */
export function makeArrows(message, choose) {
  const { children } = message.parent;
  if (children.length < 2) return [];
  const index = children.indexOf(message);
  const where = make('span', {}, `${index + 1} / ${children.length}`);
  /** @param {'previous' | 'next'} direction @param {string} name @param {number} step */
  const arrowTo = (direction, name, step) => {
    const { id } = children[(index + step + children.length) % children.length];
    const arrow = makeIconButton(direction, name, () => choose(id, direction), 'branching');
    arrow.dataset.direction = direction;
    return arrow;
  };
  const back = arrowTo('previous', 'Previous version', -1);
  const on = arrowTo('next', 'Next version', 1);
  const known = { className: 'versions', ariaLabel: 'Versions of this message' };
  return [make('nav', known, back, where, on)];
}

/**
 * Replaces a question with a field in which it is edited.
 * @param {HTMLElement} article
 * @param {string} text
 * @param {{draft?: string, onInput: (text: string) => void, onClose: () => void, send: (text:
 * string) => void}} use `onInput` receives the text after every letter, and the earlier text when
 * the field is closed
 */
export function editQuestion(article, text, { draft = text, onInput, onClose, send }) {
  const rest = [...article.querySelectorAll('.body, footer')];
  const form = make('form', { className: 'edit' });
  const known = { rows: 1, value: draft, dir: 'auto', ariaLabel: 'Your edited message' };
  const field = make('textarea', known);
  const submit = makeButton('Send', () => {}, 'primary');
  submit.type = 'submit';
  const close = () => {
    onInput(text);
    form.replaceWith(...rest);
    onClose();
    /** @type {HTMLElement | null} */ (article.querySelector('.open-edit'))?.focus();
  };
  form.append(field, makeButton('Cancel', close), submit);
  field.addEventListener('input', () => onInput(field.value));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const wording = field.value.trim();
    if (wording === '' || wording === text) close();
    else send(wording);
  });
  form.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      event.stopPropagation(); // an answer that is streaming continues
      close();
    }
    if (event.target !== field || !isSending(event)) return;
    event.preventDefault();
    form.requestSubmit();
  });
  for (const [index, element] of rest.entries()) {
    if (index === 0) element.replaceWith(form);
    else element.remove();
  }
  field.style.height = `${field.scrollHeight}px`;
  if (draft === text) field.focus();
}

/**
 * Offers the continuation of the conversation after another version of the last message.
 * @param {number} version
 * @param {Message[]} later
 * @param {() => void} go opens that version
 */
export function addElsewhere(version, later, go) {
  const count = later.length === 1 ? 'One message follows' : `${later.length} messages follow`;
  const ariaLabel = `${count} version ${version}`;
  const items = later.map(({ role, content }) =>
    make('li', { dir: 'auto' }, `${role === 'user' ? 'You' : 'Model'}: ${content}`),
  );
  log.append(
    make(
      'section',
      { className: 'elsewhere', ariaLabel },
      make('h3', { className: 'who' }, ariaLabel),
      make('ul', {}, ...items),
      makeButton('Show it', go, 'branching'),
    ),
  );
}
