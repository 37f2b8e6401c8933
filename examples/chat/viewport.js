// examples/chat/viewport.js — adapts the page to an on-screen keyboard. On iOS, the keyboard covers a page instead of resizing
// it, so the page is made as high as its visible part. When a keyboard opens, the end of the visible
// part of the conversation stays visible.

import { byId, hasTouchScreen } from './dom.js';

function fit() {
  const view = window.visualViewport;
  if (!view) return;
  const { style, dataset } = document.documentElement;
  const isCovered = view.scale <= 1.01 && view.height < innerHeight - 1; // not zoomed in
  if (!isCovered) {
    delete dataset.keyboard;
    return void style.removeProperty('--view-height');
  }
  dataset.keyboard = 'open';
  style.setProperty('--view-height', `${view.height}px`);
  scrollTo(0, 0); // the browser has scrolled the field into view
}

/** Keeps the end in view, because browsers keep the start of a box's visible content when its height changes. */
function keepEnd() {
  const log = byId('log');
  let height = log.clientHeight;
  new ResizeObserver(() => {
    const lost = height - log.clientHeight;
    height = log.clientHeight;
    // a box that grows while it is scrolled to the end stays there automatically
    const isAtEnd = lost < 0 && log.scrollHeight - log.scrollTop - log.clientHeight < 2;
    if (byId('welcome').hidden && !isAtEnd) log.scrollBy({ top: lost, behavior: 'instant' });
  }).observe(log);
}

export function startViewport() {
  window.visualViewport?.addEventListener('resize', fit);
  byId('log').tabIndex = 0; // so that keys can scroll it in every browser
  if (hasTouchScreen()) keepEnd();
}
