// examples/chat/orphaned_drafts.js — stores the drafts and the forgotten turns from closed tabs that
// are still in the journal. Loaded if the journal has entries when the page starts.

/** @typedef {import('./store.js').Store} Store */

/** @param {Store} store @param {import('./journal.js').Forgotten} entry */
async function keepForgotten(store, { about, forgotten: { id, at, isForGood } }) {
  await store.changeTurn(id, { forgotten: at });
  if (isForGood) await store.erase(about.id, (one) => one.id === id);
}

/** @param {Store} store @param {any} entry */
async function keep(store, entry) {
  const { about, draft, question } = entry;
  if (entry.forgotten) await keepForgotten(store, entry);
  if (question && !(await store.turn(question.id))) await store.ask(about, question);
  const kept = draft && (await store.draft(draft.id));
  if (draft && !(kept?.changed > draft.changed)) await store.keepDraft(about, draft);
}

/** @param {Store} store @param {string[]} keys of the entries @param {(tab: string) => Promise<boolean>} isOpenElsewhere */
export async function takeUp(store, keys, isOpenElsewhere) {
  const isForgetting = (/** @type {string} */ key) => Number(key.includes(' forget '));
  keys.sort((a, b) => isForgetting(a) - isForgetting(b)); // a forgotten turn comes after the question that it refers to
  for (const key of keys) {
    const text = localStorage.getItem(key);
    const entry = text && JSON.parse(text);
    if (!entry || (await isOpenElsewhere(entry.tab))) continue;
    await keep(store, entry);
    localStorage.removeItem(key);
  }
}
