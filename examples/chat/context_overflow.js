// examples/chat/context_overflow.js — handles a conversation that outgrows the model's context:
// after asking the user, it leaves out the oldest turns.

import {
  forgetSession,
  hideContextNote,
  leaveOut,
  measure,
  showContextNote,
  showGauge,
  wordsFor,
} from './context.js';
import { byId } from './dom.js';
import { giveBack } from './draft_answers.js';
import { showNotice } from './notice.js';
import { chat } from './open_chat.js';
import { refresh } from './shown_branch.js';
import { find, isForgotten, shownAfter } from './tree.js';
import { keeper } from './write_queue.js';

/** @import { Message } from './tree.js' */

const GAUGE_MS = 250;

/** Whether the page is measuring if a question fits. Until then, the gauge makes no offer. */
let isMeasuring = false;

const promptField = /** @type {HTMLTextAreaElement} */ (byId('prompt'));

/**
 * Marks the message at which the model starts to read. Early answers occupy pages with the
 * whole conversation, and the shortened one needs these pages.
 * @param {Message} start
 * @param {Message[]} path
 * @param {string} [fold] a summary of the dropped turns
 */
async function startAt(start, path, fold) {
  const { engine } = chat;
  await giveBack();
  if (fold)
    await forgetSession(); // the summary comes first, so the kept turns are recomputed
  else if (engine) await leaveOut(engine, path, start);
  start.isStart = true;
  start.fold = fold;
  keeper.add((store) => store.changeTurn(start.id, { isStart: true, fold }));
  refresh(start);
  updateGauge();
}

/**
 * Returns whether there is room for the answer. If not, reports it and offers to make room.
 * @param {Message[]} path its last message is the question, or the answer to continue
 * @param {(isAlone: boolean, fold?: string) => unknown} again sends the question again. `isAlone`:
 * only the last question is read
 */
export async function hasRoom(path, again) {
  const { engine } = chat;
  isMeasuring = true;
  const fit = engine && (await measure(engine, path).catch(() => undefined)); // the engine reports the reason
  isMeasuring = false;
  hideContextNote();
  if (!fit || fit.fits) return true;
  const { offer } = fit;
  showContextNote(wordsFor(fit), offer, async (isFolding) => {
    const fold = isFolding && offer ? await foldOf(path, offer.start) : undefined;
    if (fold === '') return;
    const isKnown = offer && find(chat.tree, offer.start.id);
    const read = path.filter((one) => find(chat.tree, one.id) && one.content !== '');
    if (isKnown)
      await startAt(offer.start, read.at(-1)?.role === 'user' ? read.slice(0, -1) : read, fold);
    await again(!isKnown, fold);
  });
  return false;
}

/**
 * @param {Message[]} path
 * @param {Message} start
 * @returns {Promise<string>} a summary of the turns before it; empty if there is none, or if
 * something else was opened in the meantime
 */
async function foldOf(path, start) {
  const { engine, tree } = chat;
  showContextNote('The oldest turns are being summarised …');
  try {
    const { summarise } = await import('./turn_summary.js');
    const text = engine ? await summarise(engine, path.slice(0, path.indexOf(start))) : '';
    const isStill = tree === chat.tree && engine === chat.engine && !chat.running;
    if (isStill && text !== '') return text;
    if (isStill) showNotice('The model did not write a summary.');
  } catch (error) {
    showNotice(`The summary failed: ${/** @type {Error} */ (error).message}`);
  } finally {
    hideContextNote();
  }
  return '';
}

/**
 * Makes the model read the whole conversation again.
 * @param {Message} start the message from which it currently reads
 */
export function readAll(start) {
  start.isStart = false;
  delete start.fold;
  forgetSession();
  keeper.add((store) => store.changeTurn(start.id, { isStart: false, fold: undefined }));
  refresh(start);
  updateGauge();
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let gauging;

/** Updates the gauge after a short delay, so that fast typing causes only one update. */
export function updateGauge() {
  clearTimeout(gauging);
  gauging = setTimeout(async () => {
    const { engine, tree } = chat;
    const path = shownAfter(tree).filter((one) => !isForgotten(one));
    const offer = await showGauge(engine, path, promptField.value).catch(() => undefined);
    if (!offer || isMeasuring || chat.running || chat.tree !== tree) return;
    if (!byId('context-note').hidden) return;
    const words = 'The context, which is all that the model reads at once, is nearly full.';
    showContextNote(words, offer, async (isFolding) => {
      const fold = isFolding ? await foldOf(path, offer.start) : undefined;
      if (fold !== '') await startAt(offer.start, path, fold);
    });
  }, GAUGE_MS);
}
