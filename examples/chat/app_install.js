// examples/chat/app_install.js — the page as an installed application: the install button, and the data that the system
// passes to the page (shared text, opened files, its shortcut).

import { byId } from './dom.js';

/**
 * The event that lets the page offer its installation, in browsers that support it.
 * @typedef {Event & {prompt: () => Promise<unknown>}} InstallEvent
 */

const TEXT_MAX = 100_000;

const button = byId('install');

/** @type {InstallEvent | undefined} */
let offered;

/** @param {InstallEvent | undefined} event */
function offerInstalling(event) {
  offered = event;
  button.hidden = event === undefined;
}

addEventListener('beforeinstallprompt', (event) => {
  event.preventDefault(); // the browser must not prompt before the user clicks the button
  offerInstalling(/** @type {InstallEvent} */ (event));
});
addEventListener('appinstalled', () => offerInstalling(undefined));
button.addEventListener('click', () => {
  const event = offered;
  offerInstalling(undefined); // the event can be used only once
  event?.prompt().catch(() => {});
});

/** @param {URLSearchParams} query @returns {string} text shared by another application */
function sharedText(query) {
  const parts = ['title', 'text', 'link'].map((name) => (query.get(name) ?? '').trim());
  return [...new Set(parts)].filter(Boolean).join('\n').slice(0, TEXT_MAX);
}

/**
 * Puts the text from the URL into the message field of a new conversation, where the user sees
 * it. It is not sent, because any page can link here.
 * @param {() => void} openNew
 * @param {(text: string) => void} write
 */
export function takeShared(openNew, write) {
  const address = new URL(location.href);
  const query = address.searchParams;
  const text = sharedText(query);
  if (text !== '' || query.has('new')) openNew();
  if (text !== '') write(text);
  for (const name of ['title', 'text', 'link', 'new']) query.delete(name);
  address.hash = location.hash; // the hash of the new conversation
  if (address.href !== location.href) history.replaceState(null, '', address); // so that a reload does not repeat it
}

/** @param {(files: File[]) => Promise<void>} take receives the files that are opened with the application */
export function takeOpened(take) {
  const { launchQueue } = /** @type {any} */ (globalThis);
  launchQueue?.setConsumer(async (/** @type {{files?: readonly any[]}} */ { files = [] }) => {
    const opened = await Promise.all(files.map((one) => one.getFile()));
    if (opened.length > 0) await take(opened);
  });
}
