// examples/chat/page_menu.js — the header's icons, and the menu of less common actions, each with a
// description.

import { createElement, Ellipsis, Menu, Plus, Settings, SquarePen } from 'lucide';
import { byId } from './dom.js';

const icons = {
  'open-list': Menu,
  'new-chat': SquarePen,
  'open-settings': Settings,
  'open-more': Ellipsis,
  attach: Plus,
};

const around = byId('page-menu');
const opener = byId('open-more');
const menu = byId('more');
const panel = /** @type {HTMLDetailsElement} */ (byId('developer'));

/** @param {boolean} isOpen */
function show(isOpen) {
  menu.hidden = !isOpen;
  opener.setAttribute('aria-expanded', String(isOpen));
}

function openDeveloper() {
  panel.hidden = false;
  panel.open = true;
  panel.scrollIntoView({ block: 'nearest' });
  panel.querySelector('summary')?.focus();
}

/** Closes the menu after a choice, on Escape, and when something else is pressed or focused. */
export function startPageMenu() {
  for (const [id, icon] of Object.entries(icons)) {
    byId(id).prepend(createElement(icon, { 'aria-hidden': 'true' }));
  }
  opener.addEventListener('click', () => show(menu.hidden !== false));
  menu.addEventListener('click', () => show(false));
  around.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || menu.hidden !== false) return;
    event.stopPropagation();
    show(false);
    opener.focus();
  });
  const leave = (/** @type {EventTarget | null} */ place) => {
    if (place instanceof Node && !around.contains(place)) show(false);
  };
  addEventListener('pointerdown', ({ target }) => leave(target));
  around.addEventListener('focusout', ({ relatedTarget }) => leave(relatedTarget));
  byId('open-developer').addEventListener('click', openDeveloper);
  panel.addEventListener('toggle', () => {
    panel.hidden = !panel.open;
  });
}
