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

/** @typedef {Parameters<import('./connection.js').Work<unknown>>[0]} Rows the object stores, by name */

/** @param {Rows} rows @param {'turns' | 'drafts'} name @param {string} conversation @returns {Promise<any[]>} */
const of = (rows, name, conversation) => rows(name).index('conversation').getAll(conversation);

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
    const all = await this.#database.run('readonly', (rows) => rows('conversations').getAll());
    return all.filter(isKnown);
  }

  /** @returns {Promise<{conversations: Conversation[], drafts: Draft[]}>} the list's entries */
  async overview() {
    return this.#database.run('readonly', async (rows) => ({
      conversations: (await rows('conversations').getAll()).filter(isKnown),
      drafts: (await rows('drafts').getAll()).filter(isKnown),
    }));
  }

  /** @param {string} id @returns {Promise<(Whole & {drafts: Draft[]}) | undefined>} */
  async open(id) {
    return this.#database.run('readonly', async (rows) => {
      const conversation = await rows('conversations').get(id);
      if (!isKnown(conversation)) return undefined;
      const turns = (await of(rows, 'turns', id)).filter(isKnown).sort(byTime);
      const drafts = (await of(rows, 'drafts', id)).filter(isKnown);
      return { conversation, turns, drafts };
    });
  }

  /** @param {string} id @returns {Promise<Turn | undefined>} */
  async turn(id) {
    const turn = await this.#database.run('readonly', (rows) => rows('turns').get(id));
    return isKnown(turn) ? turn : undefined;
  }

  /** @param {string} id @returns {Promise<Draft | undefined>} */
  async draft(id) {
    return this.#database.run('readonly', (rows) => rows('drafts').get(id));
  }

  /** @returns {Promise<{conversations: Conversation[], turns: Turn[], drafts: Draft[]}>} all records */
  async everything() {
    return this.#database.run('readonly', async (rows) => ({
      conversations: (await rows('conversations').getAll()).filter(isKnown),
      turns: (await rows('turns').getAll()).filter(isKnown).sort(byTime),
      drafts: (await rows('drafts').getAll()).filter(isKnown),
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
        const kept = await rows('conversations').get(conversation.id);
        const { parent } = question;
        const isThere = kept && (parent === '' || (await rows('turns').get(parent)));
        for (const turn of isThere ? [] : known) await rows('turns').put(turn);
        await rows('turns').put(question);
        await this.#showAfter(rows, question);
        const { id, title, model, settings } = conversation;
        await rows('conversations').put({
          ...(kept ?? conversation),
          ...(!kept?.title && { title }),
          ...(question.parent === '' && { shown: question.id }),
          ...{ id, model, settings, deleted: 0, changed: Date.now() },
        });
        if (draft) await rows('drafts').delete(draft);
      },
      true,
    );
    this.#tell({ kind: 'turn', conversation: conversation.id, id: question.id });
    this.#tell({ kind: 'conversation', conversation: conversation.id });
  }

  /**
   * @param {Rows} rows
   * @param {Turn} turn to show after its parent
   */
  async #showAfter(rows, turn) {
    if (turn.parent === '') return;
    const parent = await rows('turns').get(turn.parent);
    if (parent) await rows('turns').put({ ...parent, shown: turn.id });
  }

  /** @param {Turn} turn an answer, as far as it has arrived; `shown` is unchanged @param {boolean} [isEnd] */
  async keepAnswer(turn, isEnd = false) {
    await this.#database.run(
      'readwrite',
      async (rows) => {
        const conversation = await rows('conversations').get(turn.conversation);
        if (!conversation) return; // another tab has deleted it permanently
        const kept = await rows('turns').get(turn.id);
        await rows('turns').put({ ...turn, ...(kept?.shown && { shown: kept.shown }) });
        if (!kept) await this.#showAfter(rows, turn);
        if (isEnd) {
          await rows('conversations').put({ ...conversation, changed: Date.now() });
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
      const kept = await rows('turns').get(id);
      if (isKnown(kept)) await rows('turns').put({ ...kept, ...change });
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
      const turns = (await of(rows, 'turns', conversation)).filter(isKnown);
      const meant = turns.filter((one) => one.role === 'user' && one.forgotten && isMeant(one));
      const ids = new Set(meant.map(({ id }) => id));
      for (const one of turns) {
        const isAnswer = one.role === 'assistant' && ids.has(one.parent);
        if (!isAnswer && !ids.has(one.id)) continue;
        await rows('turns').put(erase(one));
        changed.push(one.id);
      }
    });
    for (const id of changed) this.#tell({ kind: 'turn', conversation, id });
  }

  /** @param {string} id @param {Partial<Conversation>} change */
  async changeConversation(id, change) {
    await this.#database.run('readwrite', async (rows) => {
      const kept = await rows('conversations').get(id);
      if (isKnown(kept)) await rows('conversations').put({ ...kept, ...change });
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
      const kept = await rows('conversations').get(id);
      if (draft.text !== '' || draft.media) {
        if (!kept) await rows('conversations').put(conversation);
        await rows('drafts').put(draft);
        return !kept;
      }
      await rows('drafts').delete(draft.id);
      const isEmpty =
        (await of(rows, 'turns', id)).length === 0 && (await of(rows, 'drafts', id)).length === 0;
      if (kept && isEmpty) await rows('conversations').delete(id);
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
      await rows('drafts').put(own);
      await rows('drafts').delete(draft.id);
    });
  }

  // ---- whole conversations ----

  /** @param {Whole} whole @returns {Promise<boolean>} whether it is new */
  async takeIn({ conversation, turns }) {
    const isNew = await this.#database.run(
      'readwrite',
      async (rows) => {
        if (await rows('conversations').get(conversation.id)) return false;
        await rows('conversations').put(conversation);
        for (const turn of turns) await rows('turns').put(turn);
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
          for (const record of await of(rows, store, id)) await rows(store).delete(record.id);
        }
        await rows('conversations').delete(id);
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
