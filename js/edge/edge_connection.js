// js/edge/edge_connection.js — the connection that the page's classes expect (like
// js/connection/engine_connection.js) if the engine is in the same thread. Nothing runs in the
// background: the reader of an answer computes until it has output, in its own turns of the event
// loop. Output for other readers is kept until they read it. No promise is shared between requests,
// and no reader waits for another one, which may have disconnected.

import { unlessAborted } from '../base/abort_signals.js';
import { refusalOf, throwIfAborted, toPlainError, WickError } from '../base/errors.js';
import { pause } from '../base/take_turn.js';
import { STEP_PROGRESS } from '../wasm/layout.js';
import { emptyOutput } from '../worker/request_table.js';
import { ServedEngine } from '../worker/served_engine.js';
import { Turns } from './turns.js';

/** @import { EngineConnection, RunningRequest } from '../connection/engine_connection.js' */
/** @import { Output } from '../connection/messages.js' */
/** @import { NativeEngine } from '../wasm/native_engine.js' */
/** @typedef {Parameters<EngineConnection['generate']>[1][number]} Waiter */

/** Units of work per embedding step. */
const EMBED_UNITS = 4;

/** @implements {Pick<EngineConnection, 'generate' | 'call' | 'check' | 'close' | 'isEnded'>} */
export class EdgeConnection {
  #native;
  #served;
  #turns;
  /** Units of work per pass with one row for each request: the layers, and the logits. */
  #passUnits;
  #lastId = 0;
  /** The number of request steps so far. */
  #steps = 0;
  /**
   * Output that has not been read yet, by the numbers of the unfinished requests.
   * @type {Map<number, Output[]>}
   */
  #mail = new Map();
  /** The readers of this output. @type {Map<number, Waiter>} */
  #waiters = new Map();
  /** The error that every later call throws. @type {WickError | undefined} */
  #end;
  /** @type {EngineConnection['decoders']} */
  decoders;

  /**
   * @param {NativeEngine} native an engine with a model
   * @param {{queueLimit: number | undefined, chatTemplate: string | undefined}} options
   */
  constructor(native, options) {
    const { shape } = native.info();
    this.#native = native;
    this.#turns = new Turns(shape);
    this.#passUnits = (shape?.layers ?? 0) + 1;
    this.#served = new ServedEngine(native, {
      ...options,
      wake: (trap) => {
        if (trap) this.#crash(trap);
      },
      step: () => this.#step(),
      embedding: {
        step: () => this.#stepEmbedding(),
        takeTurn: () => this.#turns.take(),
        isClosed: () => this.isEnded,
      },
    });
  }

  get isEnded() {
    return this.#end !== undefined;
  }

  /** Throws if the engine has ended. */
  check() {
    if (this.#end) throw this.#end;
  }

  /**
   * Ends the engine after a trap, because the module's memory is then in an unknown state.
   * @param {unknown} trap
   * @returns {WickError} the error that every later call throws
   */
  #crash(trap) {
    return this.#stop(new WickError('WORKER_CRASHED', `The engine crashed: ${trap}`, trap));
  }

  /**
   * @param {WickError} error of every pending and every later call
   * @returns {WickError} the error that the first call passed
   */
  #stop(error) {
    if (this.#end) return this.#end;
    this.#end = error;
    const waiters = [...this.#waiters.values()];
    this.#mail.clear();
    this.#waiters.clear();
    for (const { fail } of waiters) fail(error);
    return error;
  }

  /**
   * @template T
   * @param {() => T} action
   * @returns {T}
   */
  #guard(action) {
    try {
      return action();
    } catch (error) {
      if (error instanceof WickError || error instanceof TypeError) throw error;
      throw this.#crash(error);
    }
  }

  // ---- calls ----

  /** @type {EngineConnection['call']} */
  async call(method, args, signal) {
    this.check();
    throwIfAborted(signal);
    const id = ++this.#lastId;
    try {
      const value = this.#guard(() => this.#served.call(method, args, id));
      return await (value instanceof Promise ? unlessAborted(value, signal, () => {}) : value);
    } catch (error) {
      if (!signal?.aborted) throw this.#guard(() => refusalOf(error));
      this.#use((served) => served.cancel(id));
      throw error;
    }
  }

  // ---- generation ----

  /** @type {EngineConnection['generate']} */
  generate({ settings, ...message }, waiters) {
    this.check();
    this.#cancelLost();
    const ids = waiters.map(() => ++this.#lastId);
    for (const [index, id] of ids.entries()) {
      this.#mail.set(id, []);
      this.#waiters.set(id, waiters[index]);
    }
    /**
     * Reports an encoding failure; another reader may have been doing the encoding.
     * @param {unknown} error
     */
    const fail = (error) => {
      const plain = toPlainError(refusalOf(error));
      for (const id of ids) this.#mail.get(id)?.push({ ...emptyOutput(id), error: plain });
    };
    try {
      const own = { settings: Object.assign({}, settings), id: ids[0], completions: ids.length };
      this.#guard(() => this.#served.submit(Object.assign(own, message), fail));
    } catch (error) {
      for (const id of ids) this.#forget(id);
      const refusal = refusalOf(error);
      for (const waiter of waiters) waiter.fail(refusal);
    }
    return ids.map((id, index) => this.#running(id, waiters[index]));
  }

  /** @param {number} id @param {Waiter} waiter @returns {RunningRequest} */
  #running(id, waiter) {
    return {
      acknowledge: (count) => this.#use(({ requests }) => requests.acknowledge(id, count)),
      answer: (logits) => this.#use(({ requests }) => requests.answer(id, logits)),
      forget: () => this.#forget(id),
      cancel: () => this.#cancel(id),
      drive: () => this.#drive(id, waiter),
    };
  }

  /** Does nothing after the engine has ended. @param {(served: ServedEngine) => void} action */
  #use(action) {
    if (!this.#end) this.#guard(() => action(this.#served));
  }

  /**
   * Cancels a request and runs the next pass, which frees its memory, because there may be no
   * other reader to run it.
   * @param {number} id
   */
  #cancel(id) {
    if (!this.#mail.has(id)) return;
    try {
      this.#guard(() => this.#served.cancel(id));
      this.#step(1);
    } catch {
      // the engine crashed, which every later call reports
    }
    this.#forget(id);
  }

  /** Cancels requests whose readers were garbage-collected. */
  #cancelLost() {
    for (const [id, { isLost }] of this.#waiters) if (isLost?.()) this.#cancel(id);
  }

  /** @param {number} id */
  #forget(id) {
    this.#mail.delete(id);
    this.#waiters.delete(id);
    void this.#endCancelled();
  }

  /**
   * Completes the pass that cancelled requests are part of, unless a reader does so. The remaining
   * requests may have no active reader.
   */
  async #endCancelled() {
    try {
      for (let steps = -1; !this.#end && this.#served.requests.hasCancelled; ) {
        if (steps === this.#steps && this.#step(1) !== STEP_PROGRESS) return;
        steps = this.#steps;
        await this.#turns.take();
      }
    } catch {
      // the engine has crashed, which every later call reports
    }
  }

  /**
   * @param {number} id
   * @param {Waiter} waiter
   * @returns {Promise<void>} settles when output was delivered, or no more will arrive
   */
  async #drive(id, waiter) {
    for (;;) {
      this.check();
      const mail = this.#mail.get(id);
      if (!mail) return;
      if (mail.length > 0) {
        this.#mail.set(id, []);
        for (const output of mail) waiter.onOutput(output);
        return;
      }
      if (this.#turns.isDue) await this.#turns.take();
      else if (this.#served.isEncoding(id)) await this.#encode();
      else if (this.#step() !== STEP_PROGRESS && mail.length === 0) await pause();
    }
  }

  /**
   * @param {number} [units] prefill runs layer by layer, because each layer takes a long time
   * @returns {number} STEP_*
   */
  #step(units = this.#served.requests.awaitsFirst() ? 1 : this.#passUnits) {
    this.#steps++;
    const result = this.#guard(() => this.#native.stepUnits(units));
    this.#turns.count(units);
    const { requests } = this.#served;
    for (const output of requests.collect()) this.#mail.get(output.id)?.push(output);
    return result;
  }

  /**
   * Runs one step of the encoder, which takes as long as a turn. The step may belong to an
   * earlier request.
   */
  async #encode() {
    this.#guard(() => this.#served.encodeStep());
    await this.#turns.take();
  }

  #stepEmbedding() {
    let result = STEP_PROGRESS;
    for (let units = 0; units < EMBED_UNITS && result === STEP_PROGRESS; units++) {
      result = this.#guard(() => this.#native.embedStep(0));
    }
    return result;
  }

  // ---- the end ----

  /** Frees the memory. May be called more than once. */
  async close() {
    if (this.#end) return;
    this.#stop(new WickError('CLOSED', 'engine: closed'));
    this.#served.requests.close();
    this.#native.destroy();
  }
}
