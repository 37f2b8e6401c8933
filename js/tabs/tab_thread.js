// js/tabs/tab_thread.js — one engine for all tabs of an origin. A Web Lock elects the leader, the tab that has the
// engine. Each other tab sends it the messages of js/connection/messages.js over a separate BroadcastChannel. An
// EngineConnection uses a TabThread like a worker. When the leader is closed, the next tab in the queue for the lock loads
// the model, and every tab sends its open calls to that tab. Every script of the origin can write to these channels, so
// malformed messages are ignored.

import { toPlainError } from '../base/errors.js';
import { isClientName, isFromLeader, isToLeader } from '../connection/messages.js';
import { Hub, leaderGone, sessionOf } from './shared_engine.js';

/** @import { FromWorker, Output, ToWorker } from '../connection/messages.js' */
/** @import { Thread } from '../connection/start_worker.js' */

/**
 * An open call, or an open completion of a request. `received` pieces have arrived and `acknowledged` of them were read.
 * `repeated` pieces arrive a second time, because a new leader has restarted the request.
 * @typedef {{message: ToWorker, received: number, acknowledged: number, repeated: number}} Open
 */

/** A place in the queue for the leader lock. @typedef {{held: Promise<void>, leave: AbortController, signal: AbortSignal, onLost: () => void}} Place */
/** A tab that takes part: `id` is its name, `place` is in the queue if it has one already, and aborting `end` releases its locks. @typedef {{id: string, end: AbortController, place?: Place}} Member */

/** @param {string} name of the engine @param {string} id @returns {string} the name of the tab's channel, and of the lock that it holds while it exists */
const nameOf = (name, id) => `${name} ${id}`;

/**
 * Acquires this tab's lock, and queues for the leader lock at the same time, which saves a round trip.
 * @param {string} name of the engine
 * @returns {Promise<Member | undefined>} undefined if tabs cannot share an engine: in Node, which
 * has no tabs, and where locks and channels would keep the process alive, and in a page whose
 * storage is blocked (by the user or a sandbox), where these interfaces reject every call
 */
export async function join(name) {
  const { locks } = globalThis.navigator ?? {};
  if (typeof locks?.request !== 'function' || typeof BroadcastChannel !== 'function')
    return undefined;
  if (globalThis.process?.versions?.node !== undefined) return undefined;
  const id = crypto.randomUUID();
  const end = new AbortController();
  try {
    const own = nameOf(name, id);
    new BroadcastChannel(own).close();
    const held = hold(own, end.signal);
    const place = queueUp(name, end.signal);
    await held;
    return { id, end, place };
  } catch {
    end.abort();
    return undefined;
  }
}

/**
 * The interval at which a tab that waits for its leader checks for a sign of life and requests one.
 */
const LOOK_MS = 1000;
/** If a leader shows no sign of life for this long, a warning is logged. */
const REPORT_MS = 3000;
/** After this long, the leader is replaced: browsers freeze background tabs, which keep their locks. */
const TAKE_OVER_MS = 12_000;

/**
 * @param {string} name
 * @param {AbortSignal} signal releases the lock, or leaves the queue
 * @param {{steal?: boolean, onLost?: () => void}} [options] `steal`: takes the lock from its
 * holder, whose `onLost` is called
 * @returns {Promise<void>} settles when the lock is held
 */
function hold(name, signal, { steal = false, onLost = () => {} } = {}) {
  return new Promise((settle, fail) => {
    let isHeld = false;
    const held = () =>
      new Promise((release) => {
        if (signal.aborted) return release(undefined);
        signal.addEventListener('abort', release);
        isHeld = true;
        settle();
      });
    navigator.locks.request(name, steal ? { steal } : { signal }, held).catch((error) => {
      fail(error);
      if (isHeld && !signal.aborted) onLost();
    });
  });
}

/** @param {string} name of the engine @param {AbortSignal} end releases the lock @returns {Place} */
function queueUp(name, end) {
  const leave = new AbortController();
  const signal = AbortSignal.any([end, leave.signal]);
  const place = { leave, signal, onLost: () => {} };
  const held = hold(name, signal, { onLost: () => place.onLost() });
  held.catch(() => {}); // TabThread reports the error
  return Object.assign(place, { held });
}

/** @implements {Thread} */
export class TabThread {
  #id;
  #name;
  #load;
  #onMessage;
  #Connection;
  #end;
  /** The channel where leaders and clients announce themselves. */
  #hall;
  /** The channel between this client and its leader. */
  #channel;
  /** A leader's channels to its clients. @type {Map<string, BroadcastChannel>} */
  #channels = new Map();
  /** @type {Hub | undefined} */
  #hub;
  #leader = '';
  #isReady = false;
  /** @type {Place} */
  #place;
  #watch = setInterval(() => this.#look(), LOOK_MS);
  /** The time of the leader's last sign of life, and when this tab last checked for one. */
  #signMs = performance.now();
  #lookMs = performance.now();
  #isWaiting = false;
  /** @type {string | undefined} */
  #fingerprint;
  /** @type {Map<number, Open>} */
  #open = new Map();

  /**
   * @param {string} name the engine's name, the same for all tabs of the origin
   * @param {Member} member this tab
   * @param {(connection: import('../connection/engine_connection.js').EngineConnection) => Promise<object>} load called when this tab becomes the leader
   * @param {(message: FromWorker) => void} onMessage
   * @param {import('./shared_engine.js').ConnectionClass} Connection of the engine
   */
  constructor(name, { id, end, place }, load, onMessage, Connection) {
    this.#name = name;
    this.#id = id;
    this.#end = end;
    this.#place = place ?? queueUp(name, end.signal);
    this.#load = load;
    this.#onMessage = onMessage;
    this.#Connection = Connection;
    this.#hall = new BroadcastChannel(name);
    this.#hall.onmessage = ({ data }) => this.#hear(data);
    this.#channel = new BroadcastChannel(nameOf(name, id));
    this.#channel.onmessage = ({ data }) => {
      if (!isClientName(data?.leader) || !isFromLeader(data.message)) return;
      this.#receive(data.leader, data.message);
    };
    this.#wait().catch((error) => {
      if (!end.signal.aborted) onMessage({ type: 'failed', error: toPlainError(error) });
    });
  }

  /** Follows the leader until this tab becomes the leader. */
  async #wait() {
    const { held, signal } = this.#place;
    this.#place.onLost = () => this.#giveWay();
    this.#hall.postMessage({ join: this.#id });
    try {
      await held;
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    if (!signal.aborted) await this.#lead();
  }

  // ---- a leader that is frozen ----

  #look() {
    const now = performance.now();
    const isIdle = this.#hub !== undefined || (this.#isReady && this.#open.size === 0);
    if (isIdle || now - this.#lookMs > REPORT_MS) this.#hearSign(); // this tab may have been frozen itself
    this.#lookMs = now;
    const silentMs = now - this.#signMs;
    if (silentMs < LOOK_MS) return;
    this.#hall.postMessage({ ask: this.#id });
    if (silentMs > REPORT_MS && !this.#isWaiting) this.#reportWaiting();
    if (silentMs > TAKE_OVER_MS) this.#takeOver().catch(() => {}); // retried at the next check
  }

  #hearSign() {
    this.#signMs = performance.now();
    this.#isWaiting = false;
  }

  #reportWaiting() {
    this.#isWaiting = true;
    console.warn(
      'wick-llm: the tab that runs the engine does not respond; this one takes over soon',
    );
    const unknown = { total: undefined, bytesPerSecond: undefined, secondsLeft: undefined };
    this.#onMessage({ type: 'progress', progress: { loaded: 0, phase: 'waiting', ...unknown } });
  }

  /**
   * Makes this tab the leader. Only one tab at a time can do so: the others are notified of the new
   * leader and follow it.
   */
  async #takeOver() {
    await navigator.locks.request(
      `${this.#name} takes over`,
      { ifAvailable: true },
      async (lock) => {
        if (lock === null || this.#hub || performance.now() - this.#signMs < TAKE_OVER_MS) return;
        this.#place.leave.abort();
        await hold(this.#name, this.#end.signal, { steal: true, onLost: () => this.#giveWay() });
        if (!this.#end.signal.aborted) this.#lead();
      },
    );
  }

  /**
   * Makes this tab a follower, because it was frozen and another tab leads now. Its open calls go to
   * the new leader.
   */
  async #giveWay() {
    const hub = this.#hub;
    this.#hub = undefined;
    for (const channel of this.#channels.values()) channel.close();
    this.#channels.clear();
    this.#follow('');
    await hub?.close();
    if (this.#end.signal.aborted) return;
    this.#place = queueUp(this.#name, this.#end.signal);
    await this.#wait();
  }

  /** @param {{join?: string, lead?: string, ask?: string, alive?: string} | undefined} heard */
  #hear(heard) {
    const { join, lead, ask, alive } = heard ?? {};
    if (isClientName(ask) && this.#hub) this.#hall.postMessage({ alive: this.#id });
    if (isClientName(alive) || isClientName(lead)) this.#hearSign();
    if (isClientName(join) && this.#hub) this.#greet(this.#hub, /** @type {string} */ (join));
    // the leader's greeting may have arrived first: messages on different channels arrive in any
    // order
    if (isClientName(lead) && !this.#hub && lead !== this.#leader) {
      this.#follow(/** @type {string} */ (lead));
      this.#hall.postMessage({ join: this.#id });
    }
  }

  // ---- leading ----

  async #lead() {
    const hub = new Hub(this.#Connection);
    this.#hub = hub;
    this.#follow(this.#id);
    hub.add(this.#id, 'leader', (message) => this.#receive(this.#id, message));
    this.#hall.postMessage({ lead: this.#id });
    await hub.start(this.#load);
  }

  /**
   * Admits a client after the lock manager has answered: until then, a tab that was frozen cannot tell
   * whether it leads.
   * @param {Hub} hub
   * @param {string} client
   */
  async #greet(hub, client) {
    await navigator.locks.query?.();
    if (this.#hub === hub) this.#admit(hub, client);
  }

  /** @param {Hub} hub @param {string} client */
  #admit(hub, client) {
    if (this.#channels.has(client)) return;
    const channel = new BroadcastChannel(nameOf(this.#name, client));
    this.#channels.set(client, channel);
    channel.onmessage = ({ data }) => {
      if (isToLeader(data?.message)) hub.receive(client, data.message);
    };
    hub.add(client, 'follower', (message) => channel.postMessage({ leader: this.#id, message }));
    // the leader acquires a client's lock once the client is closed or has crashed
    const gone = () => {
      hub.remove(client);
      channel.close();
      this.#channels.delete(client);
    };
    const { signal } = this.#end;
    navigator.locks.request(nameOf(this.#name, client), { signal }, gone).catch(() => {});
  }

  // ---- following (a leader follows itself) ----

  /** @param {string} leader the tab that loads the model */
  #follow(leader) {
    this.#leader = leader;
    this.#isReady = false;
    this.#failWhere(sessionOf, 'its sessions are lost');
  }

  /** @param {(message: ToWorker) => unknown} isLost @param {string} why */
  #failWhere(isLost, why) {
    const error = toPlainError(leaderGone(why));
    for (const [id, { message }] of this.#open) {
      if (!isLost(message)) continue;
      this.#open.delete(id);
      this.#onMessage({ type: 'error', id, error });
    }
  }

  /** @param {string} leader @param {FromWorker} message */
  #receive(leader, message) {
    if (this.#hub && leader !== this.#id) return;
    this.#hearSign();
    const isAnswer = message.type === 'step' || 'id' in message;
    if (isAnswer && leader !== this.#leader) return; // from an earlier leader: the call is sent to the new leader
    if (message.type === 'ready') this.#meet(leader, message);
    else if (message.type === 'step') this.#step(message.outputs);
    else {
      if ('id' in message && !this.#open.delete(message.id)) return;
      this.#onMessage(message);
    }
  }

  /** @param {string} leader @param {{type: 'ready', info: object}} message */
  #meet(leader, message) {
    if (this.#leader === leader && this.#isReady) return;
    this.#leader = leader;
    this.#isReady = true;
    const { fingerprint } = /** @type {any} */ (message.info).load;
    const isOther = this.#fingerprint !== undefined && this.#fingerprint !== fingerprint;
    if (isOther) this.#failWhere(({ type }) => type === 'generate', 'the model has changed');
    this.#fingerprint = fingerprint;
    this.#onMessage(message);
    for (const asked of new Set([...this.#open.values()].map((open) => open.message))) {
      this.#ask(asked);
    }
  }

  /** @param {ToWorker} message an unanswered call, or a request that has not ended */
  #ask(message) {
    this.#send(message);
    if (message.type !== 'generate') return;
    // the same settings produce the same text, and so the same pieces
    for (let id = message.id; id < message.id + message.completions; id++) {
      const open = this.#open.get(id);
      if (open) {
        open.repeated = open.received;
        this.#send({ type: 'ack', id, count: open.acknowledged });
      } else {
        this.#send({ type: 'cancel', id });
      }
    }
  }

  /** @param {Output[]} outputs */
  #step(outputs) {
    const fresh = outputs.flatMap((output) => {
      const open = this.#open.get(output.id);
      if (!open) return [];
      const known = Math.min(open.repeated, output.texts.length);
      open.repeated -= known;
      open.received += output.texts.length - known;
      if (output.done || output.error) this.#open.delete(output.id);
      const { texts, tokens } = output;
      return [{ ...output, texts: texts.slice(known), tokens: tokens.slice(known) }];
    });
    if (fresh.length > 0) this.#onMessage({ type: 'step', outputs: fresh });
  }

  /** @param {ToWorker} message */
  #send(message) {
    if (this.#hub) this.#hub.receive(this.#id, message);
    else this.#channel.postMessage({ message });
  }

  // ---- calls of an EngineConnection ----

  /** Messages that a lost leader has not answered are sent to the next one. @param {any} message */
  post(message) {
    const { type, id } = message;
    if (!this.#isReady) structuredClone(message); // throws immediately if the message cannot be sent later
    if (type === 'call' || type === 'generate') {
      for (let i = 0; i < (message.completions ?? 1); i++) {
        this.#open.set(id + i, { message, received: 0, acknowledged: 0, repeated: 0 });
      }
    } else if (type === 'cancel') {
      this.#open.delete(id);
    } else if (type === 'ack') {
      const open = this.#open.get(id);
      if (open) open.acknowledged += message.count;
    }
    try {
      if (this.#isReady) this.#send(message);
    } catch (error) {
      for (let i = 0; i < (message.completions ?? 1); i++) this.#open.delete(id + i);
      throw error;
    }
  }

  /** Releases the lock after the engine's memory is freed. */
  async terminate() {
    clearInterval(this.#watch);
    this.#hall.close();
    this.#channel.close();
    await this.#hub?.close();
    for (const channel of this.#channels.values()) channel.close();
    this.#end.abort();
  }

  keepAlive() {}
}
