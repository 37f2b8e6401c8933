// examples/chat/list.js — the list of conversations: next to the conversation if there is room for
// both, otherwise in a drawer. Deleted conversations can be restored.

import { makeIconButton } from './actions.js';
import { loadMedia, untilHeld } from './attachments.js';
import { openConversation, openNew, tell } from './conversation.js';
import { byId, isEnter, make, makeButton, makeSureButton, showRows } from './dom.js';
import { keepValue, readValue } from './local_storage.js';
import { hideNotice, showNotice } from './notice.js';
import { chat } from './open_chat.js';
import { titleOf } from './records.js';
import { listenToAll } from './tabs.js';
import { keeper } from './write_queue.js';

/** @import { Conversation } from './records.js' */

const SETTLE_MS = 60;
const KEY = 'wick-chat-list';

const panel = /** @type {HTMLDialogElement} */ (byId('conversations'));
const list = byId('conversation-list');
const searchField = /** @type {HTMLInputElement} */ (byId('search'));
const importField = /** @type {HTMLInputElement} */ (byId('import-file'));
const isWide = matchMedia('(min-width: 68rem)');

/** All stored conversations, including deleted ones. @type {Conversation[]} */
let all = [];
/** Drafts by conversation. @type {Map<string, string>} */
let drafts = new Map();
/** The id of the conversation whose actions are shown. */
let unfolded = '';
/** The number of the latest drawing. */
let round = 0;

// ---- opening and closing ----

const wasClosed = () => readValue(KEY) === 'closed';

/** Moves the notice that undoes a deletion into the drawer if it is open, because it covers the page. */
function placeNotice() {
  if (panel.open && !isWide.matches) panel.append(byId('notice'));
  else byId('room').before(byId('notice'));
}

/** @param {boolean} isOpen */
function showPanel(isOpen) {
  delete document.documentElement.dataset.list; // first_paint.js
  panel.close();
  if (isOpen && isWide.matches)
    panel.open = true; // next to the page; the focus stays
  else if (isOpen) panel.showModal();
  placeNotice();
  const toggle = byId('open-list');
  toggle.setAttribute('aria-expanded', String(isOpen));
  document.body.classList.toggle('with-list', isOpen && isWide.matches);
  if (isOpen) refreshSoon();
}

function toggleList() {
  const isOpen = !panel.open;
  if (isWide.matches) keepValue(KEY, isOpen ? 'open' : 'closed');
  showPanel(isOpen);
}

/** Closes the drawer, which would cover the chosen conversation. */
function closeDrawer() {
  if (!isWide.matches) showPanel(false);
}

// ---- actions on a conversation ----

/** @param {Conversation} conversation */
const titled = ({ id, title }) => title || titleOf(drafts.get(id) ?? '') || 'New chat';

/** @param {string} id @param {Partial<Conversation>} change */
const change = (id, change) => keeper.add((store) => store.changeConversation(id, change));

/** @param {Conversation[]} some */
async function remove(some) {
  const { id: open } = chat.about;
  const isOpen = some.some(({ id }) => id === open);
  await Promise.all(some.map(({ id }) => change(id, { deleted: Date.now() })));
  if (isOpen) openNew({}, true);
  const what = some.length === 1 ? `“${titled(some[0])}” was` : `${some.length} conversations were`;
  showNotice(`${what} deleted.`, async () => {
    await Promise.all(some.map(({ id }) => change(id, { deleted: 0 })));
    if (isOpen) await openConversation(open);
  });
}

/** @param {Conversation} conversation @param {HTMLElement} item */
function rename(conversation, item) {
  const field = make('input', { value: titled(conversation), maxLength: 200, ariaLabel: 'Title' });
  let isDone = false;
  const end = (/** @type {boolean} */ isMeant) => {
    if (isDone) return;
    isDone = true;
    const title = field.value.trim();
    if (isMeant && title !== '') change(conversation.id, { title });
    unfolded = '';
    field.replaceWith(linkOf(conversation));
    item.querySelector('a')?.focus();
    refreshSoon();
  };
  field.addEventListener('keydown', (event) => {
    if (isEnter(event)) end(true);
    if (event.key !== 'Escape') return;
    event.preventDefault(); // keeps the drawer open
    event.stopPropagation();
    end(false);
  });
  field.addEventListener('blur', () => end(true));
  item.querySelector('a')?.replaceWith(field);
  field.select();
}

/** Loads the code for files, which is needed only for the first file. */
const transfer = () => import('./transfer.js');
const fileSaver = () => import('./file_saver.js');

/** @param {Conversation} conversation @param {'json' | 'md'} kind */
async function exportOne(conversation, kind) {
  const [{ toJson, toMarkdown }, { save }] = await Promise.all([transfer(), fileSaver()]);
  const whole = await keeper.store.open(conversation.id);
  if (!whole) return;
  const { turns } = whole;
  if (turns.length === 0) return showNotice('Nothing to save: no message was sent yet.');
  const own = { conversation: whole.conversation, turns };
  await untilHeld(turns);
  const text = kind === 'md' ? toMarkdown(own) : toJson(await (await loadMedia()).dataOf([own]));
  await save(titled(conversation), kind, text);
}

async function exportAll() {
  const [{ toJson }, { save }] = await Promise.all([transfer(), fileSaver()]);
  const { conversations, turns } = await keeper.store.everything();
  const wholes = conversations
    .filter(({ deleted }) => deleted === 0)
    .map((conversation) => ({
      conversation,
      turns: turns.filter((turn) => turn.conversation === conversation.id),
    }));
  const said = wholes.filter((whole) => whole.turns.length > 0);
  await save('conversations', 'json', toJson(await (await loadMedia()).dataOf(said)));
}

async function importFiles() {
  const { readConversations } = await transfer();
  const wholes = [];
  const files = [...(importField.files ?? [])];
  importField.value = ''; // the same file can be chosen again
  for (const file of files) {
    wholes.push(...readConversations(await file.text(), file.name));
  }
  const isKept = await (await loadMedia()).takeOut(wholes);
  for (const whole of wholes) await keeper.add((store) => store.takeIn(whole));
  if (wholes.length === 0) return;
  await openConversation(wholes[0].conversation.id);
  const what =
    wholes.length === 1
      ? 'The conversation was imported.'
      : `${wholes.length} conversations were imported.`;
  showNotice(isKept ? what : `${what} Its files could not be saved: they are lost after a reload.`);
}

// ---- drawing ----

/** @param {Conversation} conversation @returns {HTMLAnchorElement} */
function linkOf(conversation) {
  const title = titled(conversation);
  const link = make('a', { href: `#${conversation.id}`, dir: 'auto', title }, title);
  if (conversation.id === chat.about.id) link.setAttribute('aria-current', 'page');
  return link;
}

/** @param {Conversation} conversation @param {HTMLElement} item @returns {HTMLElement} */
function actionsOf(conversation, item) {
  const { id, isPinned } = conversation;
  return make(
    'div',
    { className: 'actions' },
    makeButton(isPinned ? 'Unpin' : 'Pin', () => change(id, { isPinned: !isPinned })),
    makeButton('Rename', () => rename(conversation, item)),
    makeButton('Save as Markdown', () => exportOne(conversation, 'md').catch(tell)),
    makeButton('Save as JSON', () => exportOne(conversation, 'json').catch(tell)),
    makeButton('Delete', () => remove([conversation]), 'delete'),
  );
}

/** @param {Conversation} conversation @param {string} [around] the search result in it @param {string[]} [words] */
function itemOf(conversation, around = '', words = []) {
  const item = make('li');
  item.dataset.id = conversation.id;
  const isOpen = unfolded === conversation.id;
  const toggle = () => {
    unfolded = isOpen ? '' : conversation.id;
    refresh();
  };
  const more = makeIconButton('more', `Actions for ${titled(conversation)}`, toggle, 'more');
  more.setAttribute('aria-expanded', String(isOpen));
  item.append(linkOf(conversation), more);
  const draft = drafts.get(conversation.id);
  // without a question, the draft is the title
  const isBegun = draft && conversation.title;
  const [kind, text] = around ? ['found', around] : ['draft', isBegun && `Draft: ${draft}`];
  if (text) item.append(markWords(text, words, kind));
  if (conversation.isPinned) item.classList.add('pinned');
  if (isOpen) item.append(actionsOf(conversation, item));
  return item;
}

/** @param {string} text @param {string[]} words @param {string} kind */
function markWords(text, words, kind) {
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const pieces = words.length > 0 ? text.split(new RegExp(`(${escaped.join('|')})`, 'iu')) : [text];
  const marked = pieces.map((piece, index) => (index % 2 === 0 ? piece : make('mark', {}, piece)));
  return make('small', { className: kind, dir: 'auto' }, ...marked);
}

/** @param {Conversation} a @param {Conversation} b */
const byRank = (a, b) => Number(b.isPinned) - Number(a.isPinned) || b.changed - a.changed;

function drawDeleted() {
  const deleted = all.filter((one) => one.deleted > 0).sort((a, b) => b.deleted - a.deleted);
  byId('deleted').hidden = deleted.length === 0;
  const items = deleted.map((conversation) => {
    const really = makeSureButton('Delete permanently', () =>
      keeper.add((store) => store.remove([conversation.id])),
    );
    const restore = makeButton('Restore', () => change(conversation.id, { deleted: 0 }));
    return make('li', {}, make('span', {}, titled(conversation)), restore, really);
  });
  byId('deleted-list').replaceChildren(...items);
}

/** Searches the conversations. The index and its library are loaded with the first search. @param {string} query */
const find = (query) =>
  import('./search.js').then(
    ({ search }) => search(query),
    (error) => void tell(error),
  );

async function refresh() {
  const own = ++round;
  const { conversations, drafts: kept } = await keeper.store.overview();
  const query = searchField.value.trim();
  const found = query === '' ? undefined : await find(query);
  if (own !== round) return; // a newer drawing has begun
  all = conversations;
  drafts = new Map(
    kept
      .filter(({ field }) => field === '')
      .map(({ conversation, text, media }) => [conversation, text || (media?.[0].name ?? '')]),
  );
  const there = all.filter(({ deleted }) => deleted === 0);
  const items = found
    ? found.flatMap(({ conversation, around, words }) => {
        const known = there.find(({ id }) => id === conversation);
        return known ? [itemOf(known, around, words)] : [];
      })
    : there.sort(byRank).map((one) => itemOf(one));
  if (list.querySelector('input')) return; // a title is being typed
  const hadFocus = list.contains(document.activeElement);
  showRows(list, items);
  if (hadFocus && items.length === 0) byId('close-list').focus();
  for (const id of ['export-all', 'delete-all']) byId(id).hidden = there.length === 0;
  byId('list-note').textContent = noteFor(there.length, found?.length);
  drawDeleted();
}

/** @param {number} count @param {number} [found] */
function noteFor(count, found) {
  if (found !== undefined) return found === 0 ? 'No conversations found.' : `${found} found`;
  if (count === 0) return 'Conversations are listed here as soon as you type.';
  return keeper.store.kind === 'memory' ? 'Conversations are lost when you close the page.' : '';
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

function refreshSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (panel.open) refresh().catch(() => {});
  }, SETTLE_MS);
}

// ---- the keyboard ----

/** @param {KeyboardEvent} event */
function moveFocus(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !(event.target instanceof HTMLAnchorElement || event.target === searchField)) return;
  const links = /** @type {HTMLElement[]} */ ([searchField, ...list.querySelectorAll('a')]);
  const next = links[links.indexOf(/** @type {any} */ (event.target)) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

/** @param {KeyboardEvent} event */
function shortcuts(event) {
  if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
  const key = event.key.toLowerCase();
  if (key === 'k' && !event.shiftKey) {
    event.preventDefault();
    if (!panel.open) toggleList();
    searchField.focus();
    searchField.select();
  } else if (key === 'o' && event.shiftKey) {
    event.preventDefault();
    byId('new-chat').click();
  }
}

/** @param {Promise<unknown>} storing settles when the store is open */
export function startList(storing) {
  showPanel(isWide.matches && !wasClosed());
  isWide.addEventListener('change', () => showPanel(isWide.matches && !wasClosed()));
  byId('open-list').addEventListener('click', toggleList);
  byId('close-list').addEventListener('click', toggleList);
  panel.addEventListener('close', () => {
    byId('open-list').setAttribute('aria-expanded', String(panel.open));
    placeNotice();
  });
  panel.addEventListener('click', (event) => {
    if (event.target === panel && !isWide.matches) showPanel(false); // a click outside the drawer
    if (event.target instanceof HTMLAnchorElement) closeDrawer();
  });
  panel.addEventListener('keydown', moveFocus);
  addEventListener('keydown', shortcuts);
  searchField.addEventListener('input', refreshSoon);
  importField.addEventListener('change', () => importFiles().catch(tell));
  searchField.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') event.stopPropagation(); // it clears the search; an answer that is streaming continues
  });
  byId('import').addEventListener('click', () => importField.click());
  byId('export-all').addEventListener('click', () => exportAll().catch(tell));
  byId('delete-all').addEventListener('click', () => {
    const there = all.filter(({ deleted }) => deleted === 0);
    if (there.length > 0) remove(there);
  });
  byId('new-chat').addEventListener('click', hideNotice);
  byId('log').addEventListener('conversation', refreshSoon);
  listenToAll(refreshSoon);
  storing.then(refreshSoon);
}
