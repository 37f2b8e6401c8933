// js/tabs/shared_engine.js — the leader's side of a shared engine. It passes the calls of its clients (other tabs,
// and this one) to the engine. When a client disconnects, its requests are cancelled and its
// sessions are closed.

import { toPlainError, WickError } from '../base/errors.js';
import { callNamed, usesSession } from '../connection/calls.js';

/** @import { CallName } from '../connection/calls.js' */
/** @import { EngineConnection, RunningRequest } from '../connection/engine_connection.js' */
/** @import { FromWorker, GenerateMessage, ToWorker } from '../connection/messages.js' */
/** @typedef {typeof EngineConnection} ConnectionClass */

/** @param {string} what */
export const leaderGone = (what) =>
  new WickError('LEADER_GONE', `shared engine: the tab that ran it was closed, so ${what}`);

/** @param {ToWorker} message @returns {number} the session that it uses; 0: none */
export function sessionOf(message) {
  if (message.type === 'generate') return message.settings.session ?? 0;
  if (message.type !== 'call' || !usesSession(callNamed(message.method))) return 0;
  return /** @type {number} */ (message.args[0]);
}

export class Hub {
  /** @type {Map<string, Client>} */
  #clients = new Map();
  #engine;
  /** The result of loading. @type {{info: object} | {error: import('../base/errors.js').PlainError} | undefined} */
  #loaded;
  /**
   * Clients may still use session numbers from an earlier leader. This number is added to new ones
   * so that they differ.
   */
  #firstSession = crypto.getRandomValues(new Uint32Array(1))[0] * 2 ** 20;

  /**
   * @param {ConnectionClass} Connection passed by the caller, so that its code is in only one file
   * of the package
   */
  constructor(Connection) {
    /**
     * Notifies all clients, this tab last, because this tab closes the hub when the engine ends.
     * @param {FromWorker} message
     */
    const tell = (message) => {
      for (const client of [...this.#clients.values()].reverse()) client.post(message);
    };
    this.#engine = new Connection(
      (progress) => tell({ type: 'progress', progress }),
      // after a crash each tab closes its side; the next tab that opens the engine becomes the
      // leader
      (error) => tell({ type: 'failed', error: toPlainError(error) }),
    );
  }

  /** @param {(connection: EngineConnection) => Promise<object>} load starts the engine and returns its info */
  async start(load) {
    try {
      this.#loaded = { info: await load(this.#engine) };
    } catch (error) {
      this.#loaded = { error: toPlainError(error) };
    }
    for (const client of [...this.#clients.values()].reverse()) this.#greet(client);
  }

  /** @param {Client} client */
  #greet(client) {
    if (!this.#loaded) return;
    if ('error' in this.#loaded) client.post({ type: 'failed', error: this.#loaded.error });
    else client.post({ type: 'ready', info: client.infoFor(this.#loaded.info) });
  }

  /**
   * @param {string} id a known client is not added again
   * @param {'leader' | 'follower'} sharing
   * @param {(message: FromWorker) => void} post
   */
  add(id, sharing, post) {
    if (this.#clients.has(id)) return;
    const client = new Client(this.#engine, sharing, post, this.#firstSession);
    this.#clients.set(id, client);
    this.#greet(client);
  }

  /** @param {string} id @param {ToWorker} message */
  receive(id, message) {
    this.#clients.get(id)?.receive(message);
  }

  /** @param {string} id a client that has disconnected */
  remove(id) {
    this.#clients.get(id)?.leave();
    this.#clients.delete(id);
  }

  /** Ends the engine. Clients get no message: they send their open calls to the next leader. */
  async close() {
    for (const id of [...this.#clients.keys()]) this.remove(id);
    await this.#engine.close();
  }
}

class Client {
  #engine;
  #sharing;
  #tell;
  #firstSession;
  /** @type {Map<number, RunningRequest>} by the client's numbers */
  #running = new Map();
  /** Pending calls, by the client's numbers. @type {Map<number, AbortController>} */
  #calls = new Map();
  /** @type {Set<number>} by the engine's numbers */
  #sessions = new Set();
  #isGone = false;

  /**
   * @param {EngineConnection} engine
   * @param {'leader' | 'follower'} sharing
   * @param {(message: FromWorker) => void} tell
   * @param {number} firstSession
   */
  constructor(engine, sharing, tell, firstSession) {
    this.#engine = engine;
    this.#sharing = sharing;
    this.#tell = tell;
    this.#firstSession = firstSession;
  }

  /** @param {FromWorker} message */
  post(message) {
    if (!this.#isGone) this.#tell(message);
  }

  /** @param {object} info the engine's info @returns {object} the same with this client's role */
  infoFor(info) {
    return { ...info, sharing: this.#sharing };
  }

  /** @param {ToWorker} message */
  receive(message) {
    if (message.type === 'call') this.#call(message);
    else if (message.type === 'generate') this.#generate(message);
    else if (message.type === 'ack') this.#running.get(message.id)?.acknowledge(message.count);
    else if (message.type === 'cancel') {
      this.#end(message.id)?.cancel();
      this.#calls.get(message.id)?.abort();
    }
  }

  /** @param {number} id @returns {RunningRequest | undefined} */
  #end(id) {
    const running = this.#running.get(id);
    this.#running.delete(id);
    return running;
  }

  leave() {
    this.#isGone = true;
    for (const running of this.#running.values()) running.cancel();
    for (const call of this.#calls.values()) call.abort();
    this.#running.clear();
    for (const session of this.#sessions) this.#closeSession(session);
  }

  /** @param {number} session the engine's number */
  #closeSession(session) {
    this.#engine.call('closeSession', [session]).catch(() => {}); // the engine has ended
  }

  /** @param {ToWorker} message @returns {number} the engine's number of the session that it uses */
  #session(message) {
    const session = sessionOf(message);
    if (session === 0) return 0;
    const own = session - this.#firstSession;
    if (!this.#sessions.has(own)) {
      const wasOurs = own > 0 && own < 2 ** 20;
      throw wasOurs ? new WickError('SEQ', 'session: closed') : leaderGone('its sessions are lost');
    }
    return own;
  }

  /** @param {Extract<ToWorker, {type: 'call'}>} message */
  async #call(message) {
    const { id, method } = message;
    const leaves = new AbortController();
    this.#calls.set(id, leaves);
    // a session that was created for a tab that has disconnected is closed
    const signal = callNamed(method)?.session ? undefined : leaves.signal;
    try {
      const session = this.#session(message);
      const args = session === 0 ? message.args : [session, ...message.args.slice(1)];
      const value = await this.#engine.call(/** @type {CallName} */ (method), args, signal);
      if (callNamed(method)?.session === 'closes') this.#sessions.delete(session);
      this.post({ type: 'result', id, value: this.#valueOf(method, value) });
    } catch (error) {
      this.post({ type: 'error', id, error: toPlainError(error) });
    } finally {
      this.#calls.delete(id);
    }
  }

  /** @param {string} method @param {any} value @returns {unknown} the value with this client's session numbers */
  #valueOf(method, value) {
    if (method === 'info') return this.infoFor(value);
    const rule = callNamed(method)?.session;
    if (rule === 'loads') return { ...value, session: this.#own(value.session) };
    return rule === 'makes' || rule === 'forks' ? this.#own(value) : value;
  }

  /** @param {number} session the engine's number, 0: none @returns {number} the client's number */
  #own(session) {
    if (session === 0) return 0;
    if (this.#isGone) this.#closeSession(session);
    else this.#sessions.add(session);
    return this.#firstSession + session;
  }

  /** @param {GenerateMessage} message */
  #generate({ id: first, completions, type, ...request }) {
    const ids = Array.from({ length: completions }, (_, index) => first + index);
    try {
      const session = this.#session({ id: first, completions, type, ...request });
      const settings = { ...request.settings, ...(session !== 0 && { session }) };
      const running = this.#engine.generate(
        { ...request, settings },
        ids.map((id) => this.#waiter(id)),
      );
      for (const [index, id] of ids.entries()) this.#running.set(id, running[index]);
    } catch (error) {
      for (const id of ids) this.post({ type: 'error', id, error: toPlainError(error) });
    }
  }

  /** @param {number} id */
  #waiter(id) {
    return {
      onOutput: (/** @type {import('../connection/messages.js').Output} */ output) => {
        if (output.done || output.error) this.#end(id)?.forget();
        this.post({ type: 'step', outputs: [{ ...output, id }] });
      },
      fail: (/** @type {unknown} */ error) => {
        this.#end(id);
        this.post({ type: 'error', id, error: toPlainError(error) });
      },
    };
  }
}
