// js/page/beam_search.js — beam search on sessions. A beam is a fork, so a common prefix of beams is in memory only
// once. The beams of a step run as one batch.

import { argumentError } from '../base/errors.js';
import { checkNames } from '../base/option_names.js';
import { LOGPROBS_MAX, plainSampling } from '../base/option_table.js';
import { grammarNames } from './grammar_options.js';
import { checkCount, checkNumber, shown } from './option_checks.js';

/** @import { Beam, BeamSearchOptions, Session } from '../index.js' */
/** @import { Engine } from './engine.js' */

/**
 * A continuation. Its session has all of its tokens except `next`; `begun` contains the bytes of
 * its text.
 * @typedef {{session: Session, tokens: number[], begun: number[], logprob: number, next: string | number[]}} Live
 * @typedef {{beam: Live, token: number, bytes: number[], logprob: number}} Candidate
 */

const names = /** @type {(keyof import('../index.js').GrammarOptions)[]} */ (
  Object.keys(grammarNames)
);

/**
 * Settings that return probabilities relative to the tokens that a grammar allows and change
 * nothing else.
 */
const amongAllowed = { ...plainSampling, temperature: 1, seed: 0, logprobsAfter: true };

/** @param {BeamSearchOptions} options */
function checked(options) {
  const own = /** @type {const} */ ([
    'width',
    'maxTokens',
    'lengthPenalty',
    'signal',
    'priority',
    'salt',
  ]);
  checkNames(options, [...own, ...names]);
  const { width = 4, maxTokens = 64, lengthPenalty = 1, signal, priority, salt } = options;
  checkNumber('width', width, { min: 1, max: 16, whole: true });
  if (checkCount('maxTokens', maxTokens) === 0) throw argumentError('maxTokens must be at least 1');
  if (typeof lengthPenalty !== 'number' || Number.isNaN(lengthPenalty)) {
    throw argumentError(`lengthPenalty must be a number, not ${shown(lengthPenalty)}`);
  }
  const given = names.filter((name) => (options[name] ?? undefined) !== undefined);
  const constraint =
    given.length > 0 && Object.fromEntries(given.map((name) => [name, options[name]]));
  return { width, maxTokens, lengthPenalty, signal, priority, salt, constraint };
}

/**
 * @param {Engine} engine
 * @param {string | number[]} prompt
 * @param {BeamSearchOptions} [options]
 * @returns {Promise<Beam[]>} at most `width` beams, best first
 */
export async function beamSearch(engine, prompt, options = {}) {
  const settings = checked(options);
  const ends = new Set((await engine.info()).tokenizer?.ends);
  const search = new Search(settings, ends);
  const { signal = null, salt } = settings;
  try {
    await search.run(await engine.createSession({ signal, salt }), prompt);
    return await search.best((tokens) => engine.detokenize(tokens));
  } finally {
    await search.close();
  }
}

class Search {
  #settings;
  #ends;
  /** @type {Live[]} */
  #live = [];
  /** @type {Omit<Beam, 'text'>[]} */
  #ended = [];
  /** @type {Set<Session>} */
  #open = new Set();
  /** Texts that beams have already generated under the grammar. @type {Set<string>} */
  #texts = new Set();

  /** @param {ReturnType<typeof checked>} settings @param {Set<number>} ends tokens that end a text */
  constructor(settings, ends) {
    this.#settings = settings;
    this.#ends = ends;
  }

  /** @param {Session} session an empty one @param {string | number[]} prompt */
  async run(session, prompt) {
    const { width, maxTokens } = this.#settings;
    this.#open.add(session);
    this.#live = [{ session, tokens: [], begun: [], logprob: 0, next: prompt }];
    for (let step = 0; step < maxTokens && this.#live.length > 0; step++) {
      const extended = await Promise.allSettled(this.#live.map((beam) => this.#extend(beam)));
      // all requests have ended, so their sessions can be closed
      const refused = extended.find((one) => one.status === 'rejected');
      if (step > 0 && refused?.reason?.code === 'PROMPT_TOO_LONG') return; // the context is full
      if (refused) throw refused.reason;
      const candidates = extended.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
      await this.#follow(this.#chosen(candidates.sort((a, b) => b.logprob - a.logprob)));
      if (this.#ended.length >= width) return;
    }
  }

  /**
   * @param {(tokens: number[]) => Promise<string>} textOf
   * @returns {Promise<Beam[]>}
   */
  async best(textOf) {
    const { width, lengthPenalty } = this.#settings;
    // unfinished texts count only if fewer than `width` have ended
    const cut = this.#ended.length >= width ? [] : this.#live;
    const live = cut.map(({ tokens, logprob }) => ({
      tokens,
      logprob,
      finishReason: /** @type {const} */ ('length'),
    }));
    /** @param {{tokens: number[], logprob: number}} beam */
    const score = ({ tokens, logprob }) => logprob / Math.max(1, tokens.length) ** lengthPenalty;
    const best = [...this.#ended, ...live].sort((a, b) => score(b) - score(a)).slice(0, width);
    return Promise.all(best.map(async (beam) => ({ ...beam, text: await textOf(beam.tokens) })));
  }

  /**
   * Returns the best candidates. With a grammar, no text occurs twice: different token sequences
   * can spell the same text, and only the most likely one is kept.
   * @param {Candidate[]} candidates the most likely first
   * @returns {Candidate[]}
   */
  #chosen(candidates) {
    const { width, constraint } = this.#settings;
    if (!constraint) return candidates.slice(0, width);
    /** @type {Candidate[]} */
    const chosen = [];
    for (const candidate of candidates) {
      if (chosen.length === width) break;
      const text = `${[...candidate.beam.begun, ...candidate.bytes]}`;
      const isEnd = this.#ends.has(candidate.token);
      if (!isEnd && this.#texts.has(text)) continue;
      if (!isEnd) this.#texts.add(text);
      chosen.push(candidate);
    }
    return chosen;
  }

  async close() {
    await Promise.allSettled([...this.#open].map((session) => session.close()));
  }

  /**
   * Returns the most likely next tokens of a beam.
   * @param {Live} beam
   * @returns {Promise<Candidate[]>}
   */
  async #extend(beam) {
    const { width, signal, priority, constraint } = this.#settings;
    /** @type {import('../index.js').TokenDetail[]} */
    const details = [];
    const generation = beam.session.prompt(beam.next, {
      temperature: 0,
      ...(constraint && { ...amongAllowed, ...constraint, begun: Uint8Array.from(beam.begun) }),
      maxTokens: 1,
      ignoreEnd: true,
      speculation: false,
      logprobs: Math.min(2 * width, LOGPROBS_MAX),
      onToken: (token) => void details.push(token),
      signal: signal ?? null,
      priority: priority ?? 0,
    });
    await generation.text();
    if (details.length === 0) {
      // the grammar allows no further text
      this.#ended.push({ tokens: beam.tokens, logprob: beam.logprob, finishReason: 'stop' });
      return [];
    }
    // the sampled token is only one of the candidates, so it is removed
    const tokens = await beam.session.tokens();
    await beam.session.truncate(tokens.length - 1);
    const top = details[0].top.filter(({ logprob }) => Number.isFinite(logprob));
    return top.map(({ token, bytes, logprob }) => ({
      beam,
      token,
      bytes,
      logprob: beam.logprob + logprob,
    }));
  }

  /**
   * Creates a fork of the beam's session for each chosen candidate. The last candidate of a beam takes the session
   * itself.
   * @param {Candidate[]} chosen
   */
  async #follow(chosen) {
    const isEnd = (/** @type {Candidate} */ { token }) => this.#ends.has(token);
    for (const { beam, logprob } of chosen.filter(isEnd)) {
      this.#ended.push({ tokens: beam.tokens, logprob, finishReason: 'stop' });
    }
    const going = chosen.filter((candidate) => !isEnd(candidate));
    /** @type {Live[]} */
    const next = [];
    for (const [index, { beam, token, bytes, logprob }] of going.entries()) {
      const isLast = !going.slice(index + 1).some((candidate) => candidate.beam === beam);
      const session = isLast ? beam.session : await beam.session.fork();
      this.#open.add(session);
      const [tokens, begun] = [
        [...beam.tokens, token],
        [...beam.begun, ...bytes],
      ];
      next.push({ session, tokens, begun, logprob, next: [token] });
    }
    for (const beam of this.#live) {
      if (going.some((candidate) => candidate.beam === beam)) continue;
      this.#open.delete(beam.session);
      await beam.session.close();
    }
    this.#live = next;
  }
}
