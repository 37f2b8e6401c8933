// js/worker/request_table.js — the requests in the engine's worker, waiting or submitted, and the
// messages to the page about them. Maps the page's request numbers to the engine's, and the
// engine's events to outputs.

import { nameOption, optionOf } from '../base/error_subjects.js';
import { codeOfStatus, refusalOf, toPlainError, WickError } from '../base/errors.js';
import { takeTurn } from '../base/take_turn.js';
import * as layout from '../wasm/layout.js';
import { inTemplateWords } from './chat_template.js';
import { precedes, WaitingRequests } from './waiting_requests.js';

/** @import { Delta, Output } from '../connection/messages.js' */
/** @import { NativeRequest } from '../wasm/engine_records.js' */
/** @import { EngineEvent } from '../wasm/event_records.js' */
/** @import { NativeEngine } from '../wasm/native_engine.js' */

/**
 * A request is submitted when fewer than this many of the engine's requests precede it, not
 * counting resting ones. Otherwise it waits, because all memory that a request needs is allocated
 * when it is submitted.
 */
const AWAKE_MAX = 64;
/** A request rests (is paused) when this many of its pieces are unread. */
const UNREAD_MAX = 256;

const decoder = new TextDecoder();

const finishes = /** @type {const} */ (['stop', 'stop', 'length', 'abort']);

/**
 * One completion of a request.
 * @typedef {import('./waiting_requests.js').Place & {id: number, group: Entry[], request: NativeRequest,
 *   wantsTokens: boolean, number: number, unread: number, isResting: boolean,
 *   isAsking: boolean, isCancelled: boolean, hasSpoken: boolean, deltas: Delta[],
 *   broken: Pick<Delta, 'callsWhole'> | undefined}} Entry
 * `deltas` contains the parts of a reply whose piece has not arrived yet; after a malformed call,
 * `broken` is stored with its content.
 */

export class RequestTable {
  #native;
  /** @type {WaitingRequests<Entry>} */
  #waiting = new WaitingRequests();
  #arrivals = 0;
  /** Memory ran out for a request beyond AWAKE_MAX. No further request is submitted until one has ended. */
  #isTight = false;
  /** All requests, by the page's numbers. @type {Map<number, Entry>} */
  #all = new Map();
  /** The submitted requests, by the engine's numbers. @type {Map<number, Entry>} */
  #submitted = new Map();
  /** The number of submitted requests that rest. */
  #resting = 0;
  /** Results for the page, by the page's numbers. @type {Map<number, Output>} */
  #outputs = new Map();
  #isUrgent = false;
  /** Results of requests that the engine rejected. @type {Output[]} */
  #refused = [];
  #limit;
  /** The number of requests that were rejected because the queue was full. */
  #refusals = 0;
  /**
   * Requests whose grammar is being loaded or compiled. After that, they wait to be submitted.
   * @type {Set<Entry[]>}
   */
  #held = new Set();
  #onChange;
  #waitingMax = 0;
  /** Requests that are added when their images and recordings are encoded. */
  reserved = 0;

  /**
   * @param {NativeEngine} native
   * @param {number} [limit] the limit on running and waiting requests
   * @param {(trap?: unknown) => void} [onChange] called when the engine should be stepped although no message has
   *   arrived, or when the module has trapped
   */
  constructor(native, limit = Number.POSITIVE_INFINITY, onChange = () => {}) {
    this.#native = native;
    this.#onChange = onChange;
    this.#limit = limit;
  }

  /** @param {number} completions that are to be added @throws QUEUE_FULL */
  checkLimit(completions) {
    const waiting = this.#waiting.count + this.#heldCount + this.reserved;
    const count = this.#submitted.size + waiting;
    if (count + completions > this.#limit) {
      this.#refusals += completions;
      const words = `${count} requests are running or waiting, limit is ${this.#limit}`;
      throw new WickError('QUEUE_FULL', words);
    }
  }

  /**
   * Adds the requests that are waiting here to the engine's stats.
   * @param {any} stats the object of wick_stats_json
   */
  addTo({ requests, ...stats }) {
    const waiting = requests.waiting + this.#waiting.count + this.#heldCount + this.reserved;
    this.#waitingMax = Math.max(this.#waitingMax, requests.waiting_max, waiting);
    const refused = requests.refused + this.#refusals;
    return { ...stats, requests: { ...requests, waiting, waiting_max: this.#waitingMax, refused } };
  }

  /**
   * @param {number} id the page's number for the first completion
   * @param {NativeRequest} request
   * @param {boolean} wantsTokens
   */
  add(id, request, wantsTokens) {
    const { completions = 1 } = request;
    this.checkLimit(completions);
    const arrival = this.#arrivals++;
    const passesBefore = this.#native.passes();
    /** @type {Entry[]} */
    const entries = [];
    for (let index = 0; index < completions; index++) {
      const entry = {
        id: id + index,
        group: entries,
        priority: request.priority,
        arrival,
        passesBefore,
        request,
        wantsTokens,
        number: 0,
        unread: 0,
        isResting: false,
        isAsking: false,
        isCancelled: false,
        hasSpoken: false,
        deltas: [],
        broken: undefined,
      };
      entries.push(entry);
      this.#all.set(entry.id, entry);
    }
    if (this.#waiting.count === 0 && this.#trySubmit(entries)) return;
    this.#waiting.add(entries);
    this.#submitWaiting();
    this.#waitingMax = Math.max(this.#waitingMax, this.#waiting.count);
  }

  // ---- waiting for grammars ----

  get #heldCount() {
    let count = 0;
    for (const entries of this.#held) count += entries.length;
    return count;
  }

  /** Requests on a session do not overtake each other. @param {Entry[]} entries */
  #mustHold([{ request, arrival }]) {
    if (this.#native.lacks(request)) return true;
    const { session } = request;
    for (const [held] of this.#held) {
      if (session && held.request.session === session && held.arrival < arrival) return true;
    }
    return false;
  }

  /**
   * Submits a request again later.
   * @param {Entry[]} entries
   * @param {Promise<unknown>} ready
   */
  async #hold(entries, ready) {
    this.#held.add(entries);
    let failure;
    try {
      await ready;
      while (this.#held.has(entries) && this.#mustHold(entries)) await takeTurn();
    } catch (error) {
      failure = error;
    }
    if (!this.#held.delete(entries)) return;
    try {
      if (failure) this.#refuse(entries, refusalOf(failure));
      else this.#waiting.add(entries);
      this.#submitWaiting();
      this.#onChange();
    } catch (trap) {
      this.#onChange(trap);
    }
  }

  /** @param {Entry[]} entries @param {WickError} refusal */
  #refuse(entries, refusal) {
    const plain = toPlainError(inWords(refusal));
    for (const { id } of entries) {
      this.#refused.push({ ...emptyOutput(id), error: plain });
      this.#all.delete(id);
    }
  }

  // ---- submitting ----

  #submitWaiting() {
    while (this.#waiting.count > 0) {
      const entries = /** @type {Entry[]} */ (this.#waiting.first(this.#native.passes()));
      if (!this.#trySubmit(entries)) return;
      this.#waiting.take(entries);
    }
  }

  /** @param {Entry[]} entries of the next request @returns {boolean} false if it must wait */
  #trySubmit(entries) {
    const passes = this.#native.passes();
    if (!this.#hasPlace(entries, passes)) return false;
    try {
      entries[0].request.passesWaited = passes - entries[0].passesBefore;
      if (this.#mustHold(entries)) this.#hold(entries, this.#native.loadGrammarPart());
      // a grammar is compiled in slices, between which the engine serves other requests
      else if (!this.#submit(entries)) this.#hold(entries, takeTurn());
    } catch (error) {
      const refusal = refusalOf(error);
      const isMore = this.#awake + entries.length > AWAKE_MAX;
      this.#isTight = isMore && refusal.code === 'NOMEM';
      if (this.#isTight) return false;
      this.#refuse(entries, refusal);
    }
    return true;
  }

  /** @returns {boolean} whether the engine has not ended all cancelled requests yet */
  get hasCancelled() {
    for (const { isCancelled } of this.#submitted.values()) if (isCancelled) return true;
    return false;
  }

  get #awake() {
    return this.#submitted.size - this.#resting;
  }

  /** @param {Entry[]} entries @param {number} passes begun by now */
  #hasPlace(entries, passes) {
    if (this.#submitted.size + entries.length > layout.REQUESTS_MAX) return false;
    if (this.#awake + entries.length <= AWAKE_MAX) return true;
    if (this.#isTight) return false;
    let before = entries.length;
    for (const entry of this.#submitted.values()) {
      if (!entry.isResting && precedes(entry, entries[0], passes)) before++;
    }
    return before <= AWAKE_MAX;
  }

  /** @param {Entry[]} entries @returns {boolean} false if its grammar is still being compiled */
  #submit(entries) {
    const first = this.#native.submit(entries[0].request);
    if (first === 0) return false;
    for (const [index, entry] of entries.entries()) {
      entry.number = first + index;
      this.#submitted.set(entry.number, entry);
      if (entry.isCancelled) this.#native.cancel(entry.number);
    }
    return true;
  }

  /** @param {number} id if it is unknown, the request has already ended */
  cancel(id) {
    const entry = this.#all.get(id);
    if (!entry || entry.isCancelled) return;
    entry.isCancelled = true;
    if (entry.number !== 0) return this.#native.cancel(entry.number);
    const { group } = entry;
    if (!group.every(({ isCancelled }) => isCancelled)) return;
    if (!this.#held.delete(group)) this.#waiting.take(group);
    for (const one of group) this.#all.delete(one.id);
  }

  /** @param {number} session @returns {boolean} whether a cancelled request still uses it */
  isLeaving(session) {
    for (const { request, isCancelled } of this.#submitted.values()) {
      if (isCancelled && session !== 0 && request.session === session) return true;
    }
    return false;
  }

  /** @param {number} id @param {number} count the number of further pieces that were read */
  acknowledge(id, count) {
    const entry = this.#all.get(id);
    if (entry) this.#count(entry, -count);
  }

  /** @param {number} id of a request that is waiting for its hook @param {Float32Array} logits */
  answer(id, logits) {
    const entry = this.#all.get(id);
    if (!entry?.isAsking) return;
    entry.isAsking = false;
    this.#native.answerLogits(entry.number, logits);
  }

  /**
   * Counts unread pieces. A request rests while its reader does not continue, so that it does not
   * delay others.
   * @param {Entry} entry
   * @param {number} pieces
   */
  #count(entry, pieces) {
    entry.unread += pieces;
    this.#rest(entry, entry.unread >= UNREAD_MAX);
  }

  /** @param {Entry} entry @param {boolean} isResting */
  #rest(entry, isResting) {
    if (entry.isResting === isResting) return;
    entry.isResting = isResting;
    this.#resting += isResting ? 1 : -1;
    this.#native.pause(entry.number, isResting);
  }

  /** @returns {boolean} whether a step would produce a result for a reader */
  canStep() {
    if (this.#refused.length > 0) return true;
    for (const { isResting, isAsking, isCancelled } of this.#submitted.values()) {
      if (isCancelled || !(isResting || isAsking)) return true;
    }
    return false;
  }

  /** @returns {boolean} whether a submitted request is still waiting for its first piece */
  awaitsFirst() {
    for (const { hasSpoken } of this.#submitted.values()) if (!hasSpoken) return true;
    return false;
  }

  /**
   * Reads the events of a step.
   * @returns {boolean} whether there is a first piece or an end, which must be sent immediately
   */
  hear() {
    for (const event of this.#native.takeEvents()) this.#add(event);
    this.#submitWaiting();
    return this.#isUrgent || this.#refused.length > 0;
  }

  /** @returns {Output[]} the results of the steps since the last call, one for each request */
  collect() {
    this.hear();
    const outputs = [...this.#outputs.values(), ...this.#refused];
    this.#outputs.clear();
    this.#refused = [];
    this.#isUrgent = false;
    return outputs;
  }

  /** @param {EngineEvent} event */
  #add(event) {
    const entry = this.#submitted.get(event.request);
    if (!entry) return;
    const output = this.#outputs.get(entry.id) ?? emptyOutput(entry.id);
    this.#outputs.set(entry.id, output);
    if (event.kind === layout.EVENT_PREFILL) {
      output.prefill = { done: event.tokensCached, total: event.tokensPrompt };
    } else if (event.kind === layout.EVENT_TOKEN) {
      this.#addToken(event, entry, output);
    } else if (event.kind === layout.EVENT_LOGITS) {
      entry.isAsking = true;
      this.#isUrgent = true;
      output.asked = this.#native.requestLogits(event.request);
    } else if (event.kind === layout.EVENT_DONE) {
      this.#submitted.delete(event.request);
      this.#all.delete(entry.id);
      this.#isTight = false;
      this.#isUrgent = true;
      this.#resting -= Number(entry.isResting);
      this.#addDone(event, entry, output);
    } else {
      addPart(event, entry);
    }
  }

  /**
   * Adds the parts of a reply that belong to a piece.
   * @param {Entry} entry
   * @param {Output} output
   * @param {EngineEvent} event that ends the piece
   * @returns {boolean} whether anything was added
   */
  #addParts(entry, output, { kind, text }) {
    const { deltas } = entry;
    entry.deltas = [];
    if (!entry.request.conversation) return text !== '';
    if (kind === layout.EVENT_DONE && text === '' && deltas.length === 0) return false;
    output.deltas ??= [];
    output.deltas.push(deltas);
    return true;
  }

  /** Ends all requests with the engine. */
  close() {
    this.#held.clear();
  }

  /** @param {EngineEvent} event @param {Entry} entry @param {Output} output */
  #addToken(event, entry, output) {
    if (event.text === '' && !entry.wantsTokens) return;
    output.texts.push(event.text);
    this.#addParts(entry, output, event);
    this.#isUrgent ||= !entry.hasSpoken;
    entry.hasSpoken = true;
    this.#count(entry, 1);
    if (!entry.wantsTokens) return;
    const top = event.top.map(({ token, logprob }) =>
      Object.assign(this.#token(token), { logprob }),
    );
    const token = Object.assign(this.#token(event.token), { top });
    // omitted if it was not requested and therefore not computed: 0 would mean a probability of 1
    const { logprob } = entry.request;
    output.tokens.push(logprob ? Object.assign(token, { logprob: event.logprob }) : token);
  }

  /** @param {EngineEvent} event @param {Entry} entry @param {Output} output */
  #addDone(event, entry, output) {
    if (event.finish === layout.FINISH_ERROR) {
      const cause = { option: optionOf(event.subject) };
      const words = nameOption(event.text, event.subject);
      const error = new WickError(codeOfStatus(event.status), words, cause);
      output.error = toPlainError(inWords(error));
      return;
    }
    // text that was held back because it could be the start of a stop string
    if (this.#addParts(entry, output, event)) {
      output.texts.push(event.text);
      if (entry.wantsTokens) output.tokens.push({ token: -1, text: '', bytes: [], top: [] });
    }
    output.done = {
      finish: finishes[event.finish],
      ...(event.stop > 0 && { stop: entry.request.stop[event.stop - 1] }),
      promptTokens: event.tokensPrompt,
      cachedTokens: event.tokensCached,
      completionTokens: event.tokensOut,
      queueMs: event.queueMs,
      prefillMs: event.prefillMs,
      decodeMs: event.decodeMs,
      ttftMs: event.ttftMs,
    };
  }

  /** @param {number} token */
  #token(token) {
    const bytes = this.#native.tokenBytes(token);
    return { token, text: decoder.decode(bytes), bytes: Array.from(bytes) };
  }
}

/** @param {number} id @returns {Output} */
export function emptyOutput(id) {
  return {
    id,
    texts: [],
    tokens: [],
    prefill: undefined,
    done: undefined,
    error: undefined,
  };
}

/** @param {EngineEvent} event a part of a reply @param {Entry} entry */
function addPart({ kind, text, id, stop: index }, entry) {
  const { deltas, broken } = entry;
  if (kind === layout.EVENT_CONTENT) deltas.push({ content: text, ...broken });
  if (kind === layout.EVENT_REASONING) deltas.push({ reasoning_content: text });
  if (kind === layout.EVENT_CALL_BROKEN) entry.broken = { callsWhole: index };
  if (kind === layout.EVENT_ARGUMENTS) {
    deltas.push({ tool_calls: [{ index, function: { arguments: text } }] });
  }
  if (kind === layout.EVENT_CALL) {
    const called = { name: text, arguments: '' };
    deltas.push({ tool_calls: [{ index, id, type: 'function', function: called }] });
  }
}

/**
 * @param {WickError} refusal FULL refers to the grammar or the prompt, because the engine's queue
 * is never full
 * @returns {WickError}
 */
function inWords(refusal) {
  const error = /** @type {WickError} */ (inTemplateWords(refusal));
  if (error.code !== 'FULL') return error;
  const isGrammar = /grammar|tool/.test(/** @type {any} */ (error.cause)?.option);
  return new WickError(
    isGrammar ? 'GRAMMAR_TOO_LARGE' : 'PROMPT_TOO_LONG',
    error.message,
    error.cause,
  );
}
