// examples/chat/actions.js — the actions of a message: icon buttons for frequent actions, and a menu
// of the others, each with a description.

import {
  ChevronLeft,
  ChevronRight,
  Copy,
  createElement,
  Ellipsis,
  Pencil,
  RefreshCw,
} from 'lucide';
import { make, makeButton, makeCopyButtons } from './dom.js';

const icons = {
  ...{ copy: Copy, edit: Pencil, more: Ellipsis, regenerate: RefreshCw },
  ...{ previous: ChevronLeft, next: ChevronRight },
};

/**
 * A row of the menu.
 * @typedef {{name: string, hint: string, action: () => void, className: string}} Item
 */

/**
 * Gives a button an icon. Its text becomes the accessible name.
 * @param {HTMLButtonElement} button
 * @param {keyof typeof icons} icon
 */
function addIcon(button, icon) {
  const name = make('span', { className: 'visually-hidden' }, ...button.childNodes);
  button.title = name.textContent ?? '';
  button.classList.add('icon');
  button.append(createElement(icons[icon], { 'aria-hidden': 'true' }), name);
  return button;
}

/** @param {keyof typeof icons} icon @param {string} name @param {() => void} action @param {string} [className] */
export const makeIconButton = (icon, name, action, className) =>
  addIcon(makeButton(name, action, className), icon);

/**
 * @param {() => string} textOf the text to copy
 * @returns {HTMLElement[]} one button, or none if the page may not copy
 */
export const makeCopyIcons = (textOf) =>
  makeCopyButtons('', textOf).map((button) => addIcon(button, 'copy'));

/** @param {Item} item */
function rowOf({ name, hint, action, className }) {
  const button = makeButton('', action, `${className} branching`);
  button.append(make('span', {}, name), ' ', make('small', {}, hint));
  return button;
}

/**
 * Makes a button and the menu that it opens below the other buttons. A choice or Escape closes it.
 * @param {Item[]} items
 * @param {string} [details] figures, which are shown below the items
 * @returns {HTMLElement[]}
 */
export function makeMenu(items, details = '') {
  const menu = make('div', { className: 'menu', hidden: true }, ...items.map(rowOf));
  if (details)
    menu.append(make('p', { className: 'details' }, make('b', {}, 'Details'), ' ', details));
  const open = makeIconButton('more', 'More', () => show(menu.hidden !== false), 'open-menu');
  const show = (/** @type {boolean} */ isOpen) => {
    menu.hidden = !isOpen;
    open.setAttribute('aria-expanded', String(isOpen));
    if (isOpen) menu.scrollIntoView({ block: 'nearest' });
  };
  show(false);
  menu.addEventListener('click', ({ target }) => {
    if (!(target instanceof Element) || !target.closest('button')) return;
    open.focus(); // a hidden row cannot keep the focus
    show(false);
  });
  const closeByKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Escape' || menu.hidden !== false) return;
    event.stopPropagation();
    show(false);
    open.focus();
  };
  open.addEventListener('keydown', closeByKey);
  menu.addEventListener('keydown', closeByKey);
  return [open, menu];
}
