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

/** @param {string} id of a turn in the open conversation */
async function mergeTurn(id) {
  const { about, tree } = chat;
  const turn = await keeper.store.turn(id).catch(() => undefined);
  if (!turn || chat.tree !== tree) return;
  const known = find(tree, id);
  if (known && known.writer === tab && known.state === 'writing') return; // this tab is generating it
  if (known) {
    const { shown, ...said } = saidOf(turn);
    const { forgotten } = known;
    const none = {
      facts: undefined,
      writer: undefined,
      isStart: undefined,
      fold: undefined,
      media: undefined,
    };
    Object.assign(known, { ...none, forgotten: undefined }, said);
    refresh(known);
    refreshQuestion(known.parent);
    if (Boolean(forgotten) === Boolean(turn.forgotten)) return undefined;
    const isOurs = (/** @type {Message} */ one) => one.state === 'writing' && one.writer === tab;
    for (const one of known.children) if (!isOurs(one)) refresh(one);
    byId('log').dispatchEvent(new CustomEvent('memory'));
    return undefined;
  }
  const parent = turn.parent === '' ? tree : find(tree, turn.parent);
  if (!parent) return mergeAll(about.id);
  const { shown, ...said } = saidOf(turn);
  const message = insert(parent, said);
  for (const one of parent.children) if (!chat.running) refresh(one); // the versions have arrows now
  refresh(message);
  refreshQuestion(parent);
  if (turn.state === 'writing') watchWriters();
}

/** @param {string} id of the conversation that has an unknown turn */
async function mergeAll(id) {
  const whole = await keeper.store.open(id).catch(() => undefined);
  const { about, tree } = chat;
  if (!whole || about.id !== id) return;
  for (const turn of whole.turns) {
    const parent = turn.parent === '' ? tree : find(tree, turn.parent);
    if (find(tree, turn.id) || !parent) continue;
    const { shown, ...said } = saidOf(turn);
    refresh(insert(parent, said));
  }
  watchWriters();
}

listen(({ kind, conversation, id }) => {
  if (conversation === chat.about.id && kind === 'turn' && id) mergeTurn(id);
});
