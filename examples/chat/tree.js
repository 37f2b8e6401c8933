// examples/chat/tree.js — a conversation as a tree. Any number of messages can follow a message: edits of a
// question, or variants of an answer. One of them is shown.

/** @import { Turn } from './records.js' */
/** The parent of messages: a message, or the beginning. `shown` is an id. @typedef {{children: Message[], shown?: string}} Place */
/** @typedef {Omit<Turn, 'parent' | 'conversation' | 'version'> & Place & {parent: Place}} Message */

/** @returns {Place} */
export const newTree = () => ({ children: [] });

/** @param {Place} place @returns {string} its id, or '' for the beginning */
export const idOf = (place) => ('id' in place ? /** @type {Message} */ (place).id : '');

/**
 * @param {Place} place
 * @returns {Message | undefined} the chosen child, or the newest one
 */
export const shownChild = ({ children, shown }) =>
  children.find(({ id }) => id === shown) ?? children.at(-1);

/** @param {Message} a @param {Message} b */
const byTime = (a, b) => a.created - b.created || (a.id < b.id ? -1 : 1);

/**
 * @param {Place} parent
 * @param {Omit<Turn, 'parent' | 'conversation' | 'version'>} said
 * @returns {Message} the message, which is not shown if another one was chosen
 */
export function insert(parent, said) {
  parent.shown = shownChild(parent)?.id ?? said.id;
  const message = { ...said, parent, children: [] };
  parent.children.push(message);
  parent.children.sort(byTime);
  return message;
}

/**
 * @param {Place} parent
 * @param {Omit<Turn, 'parent' | 'conversation' | 'version'>} said
 * @returns {Message} the message, which is now shown
 */
export function add(parent, said) {
  const message = insert(parent, said);
  parent.shown = message.id;
  return message;
}

/**
 * @param {Message} message that has no message after it
 * @param {string} [shown] the message to show instead
 */
export function removeLeaf(message, shown) {
  const { parent } = message;
  parent.children = parent.children.filter((one) => one !== message);
  parent.shown = shown;
}

/** @param {Place} place @returns {Message[]} the messages shown after it */
export function shownAfter(place) {
  const path = [];
  for (let next = shownChild(place); next; next = shownChild(next)) path.push(next);
  return path;
}

/** @param {Place} place @returns {Message[]} the messages from the first one to this one */
export function saidUntil(place) {
  /** @type {Message[]} */
  const path = [];
  for (let one = place; 'role' in one; one = path[path.length - 1].parent) {
    path.push(/** @type {Message} */ (one));
  }
  return path.reverse();
}

/** @param {Message} message @returns {boolean} whether it is hidden from the model; an answer is hidden with its question */
export function isForgotten({ role, forgotten, parent }) {
  const question = /** @type {Place & {forgotten?: number}} */ (parent);
  return Boolean(role === 'user' ? forgotten : question.forgotten);
}

/**
 * @param {Place} place
 * @returns {Message | undefined} the message with that id, at this place or after it
 */
export function find(place, /** @type {string} */ id) {
  const open = [...place.children];
  for (let one = open.pop(); one; one = open.pop()) {
    if (one.id === id) return one;
    open.push(...one.children);
  }
  return undefined;
}

/** @param {Turn} turn @returns {Omit<Turn, 'parent' | 'conversation' | 'version'>} */
export function saidOf({ parent, conversation, version, ...said }) {
  return said;
}

/**
 * @param {Turn[]} turns in any order
 * @param {string} [shown] the id of the message that is shown first
 * @returns {Place}
 */
export function fromTurns(turns, shown) {
  const tree = newTree();
  tree.shown = shown;
  /** @type {Map<string, Message>} */
  const known = new Map();
  for (const turn of turns) {
    known.set(turn.id, { ...saidOf(turn), parent: tree, children: [] });
  }
  for (const { id, parent } of turns) {
    const message = /** @type {Message} */ (known.get(id));
    const place = known.get(parent);
    if (place) message.parent = place;
    message.parent.children.push(message);
  }
  for (const { children } of [tree, ...known.values()]) children.sort(byTime);
  return tree;
}

/** @param {Message} message @param {string} conversation @param {number} version @returns {Turn} */
export function toTurn({ children, parent, ...said }, conversation, version) {
  return { ...said, version, conversation, parent: idOf(parent) };
}

/** @param {Place} place @returns {Message[]} all messages after it, on every branch; parents come first */
export function allAfter(place) {
  /** @type {Message[]} */
  const all = [...place.children];
  for (let index = 0; index < all.length; index++) all.push(...all[index].children);
  return all;
}
