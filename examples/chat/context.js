// examples/chat/context.js — the model's context: how full it is, how much of a conversation still
// fits, and the oldest turns, which the user can leave out. The KV entries of the other turns
// are kept: they were computed while the dropped turns were still in the context, and are not
// recomputed.

import { messagesOf, readPart } from './answer_request.js';
import { attachedMedia, loadMedia, untilHeld } from './attachments.js';
import { bookSession, hasBook } from './book.js';
import { note } from './developer.js';
import { byId, formatNumber } from './dom.js';
import { introduce } from './introductions.js';
import { settings, toolsOfPrompt } from './settings.js';

/** @import { ChatMessage, Engine, Session } from 'wick-llm' */
/** @import { Message } from './tree.js' */
/**
 * `left` is the number of messages that can be left out, and `start` is the first message that the
 * model would then read.
 * @typedef {{left: number, start: Message}} Offer
 */
/**
 * `tooLong` is the number of tokens by which even the last question exceeds the context.
 * @typedef {{tokens: number, size: number, fits: boolean, tooLong?: number, own?: number,
 *   answer: number, offer?: Offer}} Fit
 */

/** The tokens that are reserved for the answer: this number, or an eighth of the context. */
const ANSWER_TOKENS = 512;
/** The fill level after turns are left out, so that more than one turn fits. */
const FILL_AFTER = 0.7;
/** At this fill level, the page starts to show how full the context is. */
const FILL_SHOWN = 0.7;
/** At this fill level, the page offers to make room. */
const FILL_OFFER = 0.85;

/** More tokens than usual templates add to a conversation, and to each message. */
const TEMPLATE_TOKENS = 512;
const MESSAGE_TOKENS = 32;

const meter = /** @type {HTMLMeterElement} */ (byId('gauge'));

/** @param {number} size @returns {number} */
const answerRoom = (size) => Math.min(ANSWER_TOKENS, Math.floor(size / 8));

/** @param {Engine} engine @param {Message[]} path */
async function count(engine, path) {
  await untilHeld(path);
  const messages = messagesOf(path);
  if (!messages.some(({ content }) => Array.isArray(content)))
    return engine.countTokens(messages, toolsOfPrompt());
  return (await loadMedia()).countMessages(engine, messages, toolsOfPrompt());
}

/**
 * @param {Engine} engine
 * @param {Message[]} path whose last message is the question
 * @param {number} size of the context
 * @param {boolean} isEarly whether to offer it before the context is full
 * @returns {Promise<Offer | undefined>} undefined if nothing can be left out
 */
async function findOffer(engine, path, size, isEarly) {
  const read = readPart(path);
  const questions = read.filter(({ role }, index) => role === 'user' && index > 0);
  const most = Math.min(size * FILL_AFTER, size - answerRoom(size));
  if (isEarly && questions.length > 1) questions.pop(); // some of the conversation must remain
  const fits = async (/** @type {Message} */ start) => {
    const later = path.slice(path.indexOf(start) + 1);
    return (await count(engine, [{ ...start, isStart: true }, ...later])) <= most;
  };
  // a later start means less text: find the first start that fits, or else the last one
  let [low, high] = [0, questions.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (await fits(questions[middle])) high = middle;
    else low = middle + 1;
  }
  const start = questions[low];
  return start && { left: read.indexOf(start), start };
}

/**
 * @param {Message[]} path
 * @returns {number} at least its tokens, unless the template is unusually long: a token has at
 * least one byte, and a character at most three per UTF-16 unit
 */
function tokensAtMost(path) {
  const texts = messagesOf(path).map(({ content }) => content);
  if (settings.tools || !texts.every((text) => typeof text === 'string')) return Infinity;
  return TEMPLATE_TOKENS + texts.reduce((sum, text) => sum + MESSAGE_TOKENS + 3 * text.length, 0);
}

/**
 * @param {Engine} engine
 * @param {Message[]} path whose last message is the question
 * @returns {Promise<Fit>} with an upper bound instead of the tokens if it certainly fits
 */
export async function measure(engine, path) {
  const { contextSize: size } = await engine.info();
  const answer = answerRoom(size);
  const most = tokensAtMost(path);
  if (most + answer <= size) return { tokens: most, size, fits: true, answer };
  const tokens = await count(engine, path);
  const fits = tokens + answer <= size;
  if (fits) return { tokens, size, fits, answer };
  const last = path.slice(path.findLastIndex(({ role }) => role === 'user'));
  const own = await count(engine, [{ ...last[0], isStart: true }, ...last.slice(1)]);
  if (own + answer > size) {
    return { tokens, size, fits, answer, own, tooLong: own + answer - size };
  }
  return { tokens, size, fits, answer, offer: await findOffer(engine, path, size, false) };
}

/**
 * Shows how full the context is.
 * @param {Engine | undefined} engine
 * @param {Message[]} path
 * @param {string} draft
 * @returns {Promise<Offer | undefined>} an offer to make room before it is full
 */
export async function showGauge(engine, path, draft) {
  const box = byId('context');
  const media = attachedMedia();
  const typed = /** @type {Message} */ ({ role: 'user', content: draft, media });
  const whole = draft.trim() === '' && media.length === 0 ? path : [...path, typed];
  if (!engine || whole.length === 0) {
    box.classList.add('unused');
    return undefined;
  }
  const { contextSize } = await engine.info();
  const tokens = await count(engine, whole);
  meter.max = contextSize;
  meter.high = contextSize * FILL_OFFER;
  meter.value = Math.min(tokens, contextSize);
  byId('gauge-text').textContent = `${formatNumber(tokens)} of ${formatNumber(contextSize)} tokens`;
  const isRoomy = tokens < contextSize * FILL_SHOWN;
  box.classList.toggle('roomy', isRoomy);
  const isEarly = tokens > contextSize * FILL_OFFER && path.length > 2;
  if (!isRoomy && !isEarly && path.length > 2) introduce('forget'); // otherwise the page offers to make room
  box.classList.remove('unused');
  return isEarly ? findOffer(engine, path, contextSize, true) : undefined;
}

/** @param {Fit} fit @returns {string} */
export function wordsFor({ tokens, size, answer, own, tooLong }) {
  const limit = `the context of the model has ${formatNumber(size)} tokens, of which ${answer} are reserved for the answer`;
  if (tooLong && own)
    return `This text is ${formatNumber(tooLong)} tokens too long: it has ${formatNumber(own)}, and ${limit}.`;
  return `With this question the conversation has ${formatNumber(tokens)} tokens; ${limit}.`;
}

/** @type {((isFolding?: boolean) => void) | undefined} */
let accept;

/** @param {string} text @param {Offer} [offer] @param {(isFolding?: boolean) => void} [take] */
export function showContextNote(text, offer, take) {
  accept = take;
  const button = byId('make-room');
  byId('context-text').textContent = text;
  button.hidden = !offer;
  byId('fold-room').hidden = !offer;
  button.textContent = offer
    ? `Leave out the oldest ${offer.left === 1 ? 'message' : `${offer.left} messages`}`
    : '';
  byId('context-note').hidden = false;
}

export function hideContextNote() {
  accept = undefined;
  byId('context-note').hidden = true;
}

/** Returns whether the page currently offers to make room. */
export const isOffered = () => accept !== undefined && !byId('make-room').hidden;

export function takeOffer(isFolding = false) {
  const take = accept;
  hideContextNote();
  take?.(isFolding);
}

byId('make-room').addEventListener('click', () => takeOffer());
byId('fold-room').addEventListener('click', () => takeOffer(true));
byId('dismiss-context').addEventListener('click', hideContextNote);

// ---- kept turns ----

/**
 * A session with the kept turns, which were computed together with the dropped ones.
 * @type {{engine: Engine, start: Message, session: Session} | undefined}
 */
let kept;

/**
 * @param {Engine} engine
 * @param {Message[]} path
 * @returns {Session | undefined} the session that belongs to this branch
 */
export function sessionFor(engine, path) {
  if (hasBook()) return bookSession(engine, path);
  return kept?.engine === engine && kept.start === readPart(path)[0] ? kept.session : undefined;
}

/**
 * Returns the tokens of a prompt with the tools that the model may call.
 * @param {Engine} engine
 * @param {ChatMessage[]} messages
 */
const tokensOf = (engine, messages) => engine.tokenize(messages, toolsOfPrompt());

/**
 * Drops the tokens of turns that were removed from a session's conversation.
 * @param {Session} session
 * @param {number[]} wanted the tokens that remain
 */
async function dropMiddle(session, wanted) {
  const had = [...(await session.tokens())];
  const most = Math.min(had.length, wanted.length);
  let same = 0;
  while (same < most && had[same] === wanted[same]) same++;
  const rest = wanted.length - same;
  const isSame = wanted
    .slice(same)
    .every((token, index) => had[had.length - rest + index] === token);
  if (!isSame || rest < 0 || had.length - rest <= same) return 0;
  await session.drop(same, had.length - rest);
  return rest;
}

/**
 * Reads the branch from the prefix cache into a session, and drops the oldest turns from it.
 * @param {Engine} engine
 * @param {Message[]} before all messages that were read so far
 * @param {Message} start the first message that the model still reads; it is marked
 */
export async function leaveOut(engine, before, start) {
  await forgetSession();
  const old = messagesOf(before);
  start.isStart = true;
  const later = before.slice(before.indexOf(start));
  if (before.indexOf(start) < 0 || hasBook()) return; // the engine's pages were dropped; a book is kept anyway
  const session = await engine.createSession();
  try {
    // the prompt is in the prefix cache, so only its last token is read
    await engine.chat.completions.create({
      messages: old,
      ...toolsOfPrompt(),
      session,
      max_tokens: 1,
    });
    const tokens = await tokensOf(engine, old);
    await session.truncate(Math.min(tokens.length, (await session.tokens()).length));
    const rest = await dropMiddle(session, await tokensOf(engine, messagesOf(later)));
    note('Left out', `${rest} tokens after the removed part are kept`);
    kept = { engine, start, session };
  } catch (error) {
    note('Left out', `the rest is recomputed: ${error}`);
    await session.close().catch(() => {});
  }
}

/** Drops the kept session after its conversation or its engine was closed. */
export async function forgetSession() {
  const before = kept;
  kept = undefined;
  await before?.session.close().catch(() => {});
}

/**
 * Replaces the conversation's session with a fork that has continued it.
 * @param {Session} before
 * @param {Session} fork
 * @returns {boolean} whether that session is still the conversation's
 */
export function replaceSession(before, fork) {
  if (kept?.session !== before) return false;
  kept = { ...kept, session: fork };
  before.close().catch(() => {}); // already closed with the engine
  return true;
}
