// examples/chat/tab_sync.js — shows changes that other tabs make to the open conversation, and
// allows continuing answers of closed tabs.

import { byId } from './dom.js';
import { chat } from './open_chat.js';
import { articles, refresh } from './shown_branch.js';
import { listen, tab, untilGone } from './tabs.js';
import { allAfter, find, insert, saidOf } from './tree.js';
import { keeper } from './write_queue.js';

/** @import { Message, Place } from './tree.js' */

/** Watches other tabs, whose answers can be continued here once they are closed. */
export function watchWriters() {
  const { tree } = chat;
  for (const message of allAfter(tree)) {
    const { writer, state } = message;
    if (state !== 'writing' || !writer || writer === tab) continue;
    untilGone(writer).then(() => {
      if (message.writer !== writer || message.state !== 'writing') return;
      Object.assign(message, { state: 'stopped', writer: undefined });
      if (chat.tree === tree && articles.has(message)) refresh(message);
    });
  }
}

/** Refreshes a question, whose actions depend on its answers. @param {Place} place */
function refreshQuestion(place) {
  if ('role' in place && place.role === 'user') refresh(/** @type {Message} */ (place));
}

/** The parts of a turn that another tab may have removed. */
const NONE = Object.fromEntries(
  ['facts', 'writer', 'isStart', 'fold', 'media', 'forgotten'].map((name) => [name, undefined]),
);

/** @param {string} id of a turn in the open conversation */
async function mergeTurn(id) {
  const { tree } = chat;
  const known = find(tree, id);
  if (!known) return mergeNew();
  const turn = await keeper.store.turn(id).catch(() => undefined);
  if (!turn || chat.tree !== tree) return;
  if (known.writer === tab && known.state === 'writing') return; // this tab is generating it
  const { shown, ...said } = saidOf(turn);
  const { forgotten } = known;
  Object.assign(known, NONE, said);
  refresh(known);
  refreshQuestion(known.parent);
  if (Boolean(forgotten) === Boolean(turn.forgotten)) return;
  const isOurs = (/** @type {Message} */ one) => one.state === 'writing' && one.writer === tab;
  for (const one of known.children) if (!isOurs(one)) refresh(one);
  byId('log').dispatchEvent(new CustomEvent('memory'));
}

/** Adds the turns that other tabs have stored. */
async function mergeNew() {
  const { about, tree } = chat;
  const whole = await keeper.store.open(about.id).catch(() => undefined);
  if (!whole || chat.tree !== tree) return;
  const known = new Map(allAfter(tree).map((one) => [one.id, one]));
  for (const turn of whole.turns) {
    const parent = turn.parent === '' ? tree : known.get(turn.parent);
    if (known.has(turn.id) || !parent) continue;
    const { shown, ...said } = saidOf(turn);
    const message = insert(parent, said);
    known.set(turn.id, message);
    for (const one of parent.children) if (!chat.running) refresh(one); // the versions have arrows now
    refresh(message);
    refreshQuestion(parent);
  }
  watchWriters();
}

listen(({ kind, conversation, id }) => {
  if (conversation === chat.about.id && kind === 'turn' && id) mergeTurn(id);
});
