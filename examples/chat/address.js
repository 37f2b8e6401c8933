// examples/chat/address.js — keeps the open conversation in the URL, so that a reload, a restored tab and the next start
// return to it, and the browser's Back and Forward buttons switch between conversations.

import { showNotice } from './notice.js';
import { titleOf } from './records.js';
import { keeper } from './write_queue.js';

/** @import { Conversation } from './records.js' */

/** @param {Conversation} about @param {boolean} isEmpty @param {boolean} [isNext] whether the browser's Back returns to the previous conversation */
export function showAddress({ id, book }, isEmpty, isNext = false) {
  if (location.hash === `#${id}`) return;
  const how = isNext ? 'pushState' : 'replaceState';
  try {
    history[how]({ isEmpty, ...(book && { book }) }, '', `#${id}`);
  } catch {
    // browsers reject more than a few hundred entries in half a minute
  }
}

/**
 * Explains why a URL does not lead to a conversation.
 * @param {string} id
 * @param {Conversation | undefined} kept the conversation, if it was deleted
 * @param {(id: string) => unknown} openAgain
 */
export function tellGone(id, kept, openAgain) {
  if (kept)
    showNotice(
      `“${titleOf(kept.title) || 'New chat'}” is deleted.`,
      async () => {
        await keeper.add((store) => store.changeConversation(id, { deleted: 0 }));
        await openAgain(id);
      },
      'Restore',
    );
  else if (id !== '' && !document.getElementById(id))
    showNotice('The conversation in that link is not in this browser.');
}
