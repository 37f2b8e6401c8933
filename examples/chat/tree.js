// examples/chat/tree.js — a conversation as a tree. Any number of messages can follow a message: edits of a
// question, or variants of an answer. One of them is shown.

/** @typedef {{role: 'user' | 'assistant', content: string, system?: string}} Said */
/** What messages follow: one of them, or the beginning. @typedef {{children: Message[], shown: number}} Place */
/** `facts` tell how an answer was made. @typedef {Said & Place & {parent: Place, facts?: string}} Message */
/** The stored form: one list, in which `parent` is an index; -1 is the beginning. */
/** @typedef {Said & {parent?: number, isShown?: boolean}} Kept */

/** @returns {Place} */
export const newTree = () => ({ children: [], shown: 0 });

/** @param {Place} parent @param {Said & {facts?: string}} said @returns {Message} shown from now on */
export function add(parent, said) {
  const message = { ...said, parent, children: [], shown: 0 };
  parent.shown = parent.children.push(message) - 1;
  return message;
}

/** @param {Place} place @returns {Message[]} what is shown after it */
export function shownAfter(place) {
  const path = [];
  for (let next = place.children[place.shown]; next; next = next.children[next.shown]) {
    path.push(next);
  }
  return path;
}

/** @param {Place} place @returns {Message[]} from the first one to this one */
export function saidUntil(place) {
  /** @type {Message[]} */
  const path = [];
  for (let one = place; 'role' in one; one = path[0].parent) {
    path.unshift(/** @type {Message} */ (one));
  }
  return path;
}

/** @param {Place} tree @returns {Kept[]} */
export function toList(tree) {
  /** @type {Kept[]} */
  const list = [];
  /** @param {Place} place @param {number} parent */
  const visit = (place, parent) => {
    for (const [index, { role, content, system, ...after }] of place.children.entries()) {
      const isShown = index === place.shown;
      const at = list.push({ role, content, ...(system && { system }), parent, isShown }) - 1;
      visit(after, at);
    }
  };
  visit(tree, -1);
  return list;
}

/** @param {any} kept @returns {boolean} */
const isMessage = (kept) =>
  ['user', 'assistant'].includes(kept?.role) && typeof kept.content === 'string';

/** @param {unknown} list @returns {Place} empty, if that is none */
export function fromList(list) {
  const tree = newTree();
  if (!Array.isArray(list) || !list.every(isMessage)) return tree;
  /** @type {Message[]} */
  const messages = [];
  for (const [index, { role, content, system, parent = index - 1, isShown }] of list.entries()) {
    const place = parent === -1 ? tree : Number.isInteger(parent) && messages[parent];
    if (!place) return newTree();
    const { shown } = place;
    const facts = 'from the last visit';
    messages.push(add(place, { role, content, ...(system && { system }), facts }));
    if (isShown === false) place.shown = shown;
  }
  return tree;
}
