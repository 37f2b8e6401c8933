// js/connection/calls.js — a table of the calls that the page makes to the engine's worker. The
// page calls them by name (EngineConnection.call), the worker answers them, and a shared engine
// uses the rows to determine which sessions belong to a tab.

/**
 * The relation of a call to sessions, if any:
 * - `makes`: its result is the number of a new session.
 * - `uses`: its first argument is a session's number; 0 means no session.
 * - `forks`: it uses a session and makes a new one.
 * - `closes`: it uses a session, which no longer exists afterwards.
 * - `loads`: its result has the number of a new session as `session`; 0 means no session.
 * @typedef {'makes' | 'uses' | 'forks' | 'closes' | 'loads'} SessionRule
 */

/**
 * With `native`, a call needs no JavaScript other than its row, which specifies the function of
 * web/exports.c, its parameters after the engine, and its result. Without it, js/worker/served_engine.js
 * has a function with the call's name.
 * @typedef {{session?: SessionRule} &
 *   (import('../wasm/native_engine.js').NativeCall | {native?: undefined})} Call
 */

/** @satisfies {Record<string, Call>} */
export const calls = {
  tokenize: {},
  detokenize: {},
  tokenBytes: {},
  applyTemplate: {},
  countChat: {},
  tokenizeChat: {},
  mediaCost: {},
  findPages: {},
  info: {},
  inspect: { native: 'inspect_json', takes: [], gives: 'json' },
  metrics: {},
  embed: {},
  addAdapter: {},
  feedAdapter: {},
  endAdapter: {},
  removeAdapter: {},
  listAdapters: {},
  kvStats: { native: 'kv_json', takes: ['flag'], gives: 'json' },
  stats: {},
  createSession: {
    session: 'makes',
    native: 'session_create',
    takes: ['text'],
    gives: 'session',
  },
  forkSession: { session: 'forks', native: 'session_fork', takes: ['number'], gives: 'session' },
  truncateSession: {
    session: 'uses',
    native: 'session_truncate',
    takes: ['number', 'number'],
  },
  dropFromSession: {
    session: 'uses',
    native: 'session_drop',
    takes: ['number', 'number', 'number'],
  },
  sessionTokens: { session: 'uses', native: 'session_tokens', takes: ['number'], gives: 'tokens' },
  closeSession: { session: 'closes', native: 'session_close', takes: ['number'] },
  saveState: { session: 'uses' },
  loadState: { session: 'loads' },
  keepFile: {},
};

/** @typedef {keyof typeof calls} CallName */
/**
 * Calls that js/worker/served_engine.js answers.
 * @typedef {{[Name in CallName]:
 *   (typeof calls)[Name] extends {native: string} ? never : Name}[CallName]} AnsweredName
 */

/**
 * @param {string} name as received in a message
 * @returns {Call | undefined} undefined for an unknown name
 */
export const callNamed = (name) =>
  Object.hasOwn(calls, name) ? calls[/** @type {CallName} */ (name)] : undefined;

/** @param {Call | undefined} call @returns {boolean} whether its first argument is a session's number */
export const usesSession = (call) => ['uses', 'forks', 'closes'].includes(call?.session ?? '');
