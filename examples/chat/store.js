// examples/chat/store.js — stores conversations. Each turn and each draft is a separate record, so
// that tabs that write at the same time do not overwrite each other's changes. A record is changed
// by reading and writing it in one transaction.

import { erase, RECORD_VERSION } from './records.js';

/** @import { Database } from './database.js' */
/** @import { Conversation, Draft, Turn, Whole } from './records.js' */
/** @import { News } from './tabs.js' */

const KEPT_AFTER_DELETION_MS = 30 * 24 * 60 * 60 * 1000;

/** @param {{version?: number} | undefined} record @returns {boolean} */
const isKnown = (record) => record !== undefined && (record.version ?? 0) <= RECORD_VERSION;

/** @param {{created: number}} a @param {{created: number}} b */
const byTime = (a, b) => a.created - b.created;

export class Store {
  #database;
  #tell;

  /** @param {Database} database @param {(news: News) => void} [tell] called with stored records */
  constructor(database, tell = () => {}) {
    this.#database = database;
    this.#tell = tell;
  }

  get kind() {
    return this.#database.kind;
  }

  close() {
    return this.#database.close();
  }

  // ---- reading ----

  /** @returns {Promise<Conversation[]>} all conversations, including deleted ones */
  async list() {
    const all = await this.#database.run('readonly', (rows) => rows.all('conversations'));
    return all.filter(isKnown);
  }

  /** @returns {Promise<{conversations: Conversation[], drafts: Draft[]}>} the list's entries */
  async overview() {
    return this.#database.run('readonly', async (rows) => ({
      conversations: (await rows.all('conversations')).filter(isKnown),
      drafts: (await rows.all('drafts')).filter(isKnown),
    }));
  }

  /** @param {string} id @returns {Promise<(Whole & {drafts: Draft[]}) | undefined>} */
  async open(id) {
    return this.#database.run('readonly', async (rows) => {
      const conversation = await rows.get('conversations', id);
      if (!isKnown(conversation)) return undefined;
      const turns = (await rows.of('turns', id)).filter(isKnown).sort(byTime);
      const drafts = (await rows.of('drafts', id)).filter(isKnown);
      return { conversation, turns, drafts };
    });
  }

  /** @param {string} id @returns {Promise<Turn | undefined>} */
  async turn(id) {
    const turn = await this.#database.run('readonly', (rows) => rows.get('turns', id));
    return isKnown(turn) ? turn : undefined;
  }

  /** @param {string} id @returns {Promise<Draft | undefined>} */
  async draft(id) {
    return this.#database.run('readonly', (rows) => rows.get('drafts', id));
  }

  /** @returns {Promise<{conversations: Conversation[], turns: Turn[], drafts: Draft[]}>} all records */
  async everything() {
    return this.#database.run('readonly', async (rows) => ({
      conversations: (await rows.all('conversations')).filter(isKnown),
      turns: (await rows.all('turns')).filter(isKnown).sort(byTime),
      drafts: (await rows.all('drafts')).filter(isKnown),
    }));
  }

  // ---- messages ----

  /**
   * Stores a question. A new message restores a conversation that another tab has deleted.
   * @param {Conversation} conversation
   * @param {Turn} question
   * @param {{draft?: string, known?: Turn[]}} [options] `draft`: the draft that becomes this
   * question. `known`: this tab's copy of the conversation, in case a part of it no longer exists
   */
  async ask(conversation, question, { draft, known = [] } = {}) {
    await this.#database.run(
      'readwrite',
      async (rows) => {
        const kept = await rows.get('conversations', conversation.id);
        const { parent } = question;
        const isThere = kept && (parent === '' || (await rows.get('turns', parent)));
        for (const turn of isThere ? [] : known) await rows.put('turns', turn);
        await rows.put('turns', question);
        await this.#showAfter(rows, question);
        const { id, title, model, settings } = conversation;
        await rows.put('conversations', {
          ...(kept ?? conversation),
          ...(!kept?.title && { title }),
          ...(question.parent === '' && { shown: question.id }),
          ...{ id, model, settings, deleted: 0, changed: Date.now() },
        });
        if (draft) await rows.delete('drafts', draft);
      },
      true,
    );
    this.#tell({ kind: 'turn', conversation: conversation.id, id: question.id });
    this.#tell({ kind: 'conversation', conversation: conversation.id });
  }

  /**
   * @param {import('./database.js').Rows} rows
   * @param {Turn} turn to show after its parent
   */
  async #showAfter(rows, turn) {
    if (turn.parent === '') return;
    const parent = await rows.get('turns', turn.parent);
    if (parent) await rows.put('turns', { ...parent, shown: turn.id });
  }

  /** @param {Turn} turn an answer, as far as it has arrived; `shown` is unchanged @param {boolean} [isEnd] */
  async keepAnswer(turn, isEnd = false) {
    await this.#database.run(
      'readwrite',
      async (rows) => {
        const conversation = await rows.get('conversations', turn.conversation);
        if (!conversation) return; // another tab has deleted it permanently
        const kept = await rows.get('turns', turn.id);
        await rows.put('turns', { ...turn, ...(kept?.shown && { shown: kept.shown }) });
        if (!kept) await this.#showAfter(rows, turn);
        if (isEnd) {
          await rows.put('conversations', { ...conversation, changed: Date.now() });
        }
      },
      isEnd,
    );
    this.#tell({ kind: 'turn', conversation: turn.conversation, id: turn.id });
    if (isEnd) this.#tell({ kind: 'conversation', conversation: turn.conversation });
  }

  /** @param {string} id @param {Partial<Turn>} change */
  async changeTurn(id, change) {
    const conversation = await this.#database.run('readwrite', async (rows) => {
      const kept = await rows.get('turns', id);
      if (isKnown(kept)) await rows.put('turns', { ...kept, ...change });
      return kept?.conversation;
    });
    if (conversation) this.#tell({ kind: 'turn', conversation, id });
  }

  /**
   * Forgets questions and their answers permanently.
   * @param {string} conversation
   * @param {(question: Turn) => boolean} isMeant
   */
  async erase(conversation, isMeant) {
    /** @type {string[]} */
    const changed = [];
    await this.#database.run('readwrite', async (rows) => {
      const turns = (await rows.of('turns', conversation)).filter(isKnown);
      const meant = turns.filter((one) => one.role === 'user' && one.forgotten && isMeant(one));
      const ids = new Set(meant.map(({ id }) => id));
      for (const one of turns) {
        const isAnswer = one.role === 'assistant' && ids.has(one.parent);
        if (!isAnswer && !ids.has(one.id)) continue;
        await rows.put('turns', erase(one));
        changed.push(one.id);
      }
    });
    for (const id of changed) this.#tell({ kind: 'turn', conversation, id });
  }

  /** @param {string} id @param {Partial<Conversation>} change */
  async changeConversation(id, change) {
    await this.#database.run('readwrite', async (rows) => {
      const kept = await rows.get('conversations', id);
      if (isKnown(kept)) await rows.put('conversations', { ...kept, ...change });
    });
    this.#tell({ kind: 'conversation', conversation: id });
  }

  // ---- drafts ----

  /**
   * Stores the typed text. The first letter creates a conversation, which is removed if it becomes
   * empty.
   * @param {Conversation} conversation
   * @param {Draft} draft
   */
  async keepDraft(conversation, draft) {
    const { id } = conversation;
    const isNews = await this.#database.run('readwrite', async (rows) => {
      const kept = await rows.get('conversations', id);
      if (draft.text !== '' || draft.media) {
        if (!kept) await rows.put('conversations', conversation);
        await rows.put('drafts', draft);
        return !kept;
      }
      await rows.delete('drafts', draft.id);
      const isEmpty =
        (await rows.of('turns', id)).length === 0 && (await rows.of('drafts', id)).length === 0;
      if (kept && isEmpty) await rows.delete('conversations', id);
      return kept && isEmpty;
    });
    if (isNews) this.#tell({ kind: 'conversation', conversation: id });
  }

  /**
   * Assigns a draft to another tab.
   * @param {Draft} draft from a closed tab
   * @param {Draft} own
   */
  async adoptDraft(draft, own) {
    await this.#database.run('readwrite', async (rows) => {
      await rows.put('drafts', own);
      await rows.delete('drafts', draft.id);
    });
  }

  // ---- whole conversations ----

  /** @param {Whole} whole @returns {Promise<boolean>} whether it is new */
  async takeIn({ conversation, turns }) {
    const isNew = await this.#database.run(
      'readwrite',
      async (rows) => {
        if (await rows.get('conversations', conversation.id)) return false;
        await rows.put('conversations', conversation);
        for (const turn of turns) await rows.put('turns', turn);
        return true;
      },
      true,
    );
    if (isNew) this.#tell({ kind: 'conversation', conversation: conversation.id });
    return isNew;
  }

  /** Deletes conversations permanently. @param {string[]} ids */
  async remove(ids) {
    await this.#database.run('readwrite', async (rows) => {
      for (const id of ids) {
        for (const store of /** @type {const} */ (['turns', 'drafts'])) {
          for (const record of await rows.of(store, id)) await rows.delete(store, record.id);
        }
        await rows.delete('conversations', id);
      }
    });
    for (const id of ids) this.#tell({ kind: 'gone', conversation: id });
  }

  /** Removes records that were deleted, or forgotten, long ago. */
  async removeOld() {
    const before = Date.now() - KEPT_AFTER_DELETION_MS;
    const old = (await this.list()).filter(({ deleted }) => deleted > 0 && deleted < before);
    if (old.length > 0) await this.remove(old.map(({ id }) => id));
    const { turns } = await this.everything();
    const isOld = (/** @type {Turn} */ { forgotten, content }) =>
      Boolean(forgotten) && Number(forgotten) < before && content !== '';
    for (const id of new Set(turns.filter(isOld).map(({ conversation }) => conversation)))
      await this.erase(id, isOld);
  }
}
