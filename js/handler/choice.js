// js/handler/choice.js — the choices of a completion in progress: text and tokens as they arrive.

/** @typedef {import('../index.js').Generation} Generation */
/** @typedef {import('../index.js').TokenDetail} TokenDetail */
/** @typedef {import('./echo.js').Echo} Echo */

const encoder = new TextEncoder();

/** A choice: its text as it arrives, and the details of its tokens. */
export class Choice {
  #texts;
  #offset = 0;
  /** The size in bytes of the text that was sent, and of its tokens. */
  #textBytes = 0;
  #tokenBytes = 0;
  /** Tokens that have not been sent in a chunk yet. @type {TokenDetail[]} */
  tokens = [];

  /**
   * @param {Generation} generation
   * @param {Echo} [echo] the prompt's text, which precedes the choice
   */
  constructor(generation, echo) {
    this.generation = generation;
    this.echo = echo;
    this.#texts = generation[Symbol.asyncIterator]();
  }

  next() {
    return this.#texts.next();
  }

  leave() {
    this.#texts.return();
  }

  /** @returns {string} the finish reason */
  get finish() {
    return this.generation.result?.finishReason === 'length' ? 'length' : 'stop';
  }

  /**
   * Tokens arrive before their text, which is buffered until it is read.
   * @param {string} text of the chunk
   * @param {boolean} isLast
   * @returns {TokenDetail[]} the tokens that make up the text
   */
  takeTokens(text, isLast) {
    this.#textBytes += encoder.encode(text).length;
    let count = 0;
    while (count < this.tokens.length && (isLast || this.#tokenBytes < this.#textBytes)) {
      this.#tokenBytes += this.tokens[count++].bytes.length;
    }
    return this.tokens.splice(0, count);
  }

  /**
   * @param {string} chunk the chunk's text
   * @param {boolean} isLast
   * @param {number} alternatives the number of alternatives for each token
   */
  takeLogprobs(chunk, isLast, alternatives) {
    const tokens = [...(this.echo?.tokens ?? []), ...this.takeTokens(chunk, isLast)];
    const textOffsets = tokens.map(({ text }) => {
      this.#offset += text.length;
      return this.#offset - text.length;
    });
    return {
      tokens: tokens.map(({ text }) => text),
      token_logprobs: tokens.map(({ logprob }) => logprob ?? null),
      top_logprobs: tokens.map(({ top, logprob }) =>
        logprob === null
          ? null
          : Object.fromEntries(top.slice(0, alternatives).map((one) => [one.text, one.logprob])),
      ),
      text_offset: textOffsets,
    };
  }
}

/**
 * @param {import('../index.js').Engine} engine
 * @param {string | number[]} prompt
 * @param {Record<string, any>} options of engine.generate
 * @param {Echo} [echo]
 * @returns {Choice} a choice that records the details of its tokens
 */
export function choiceOf(engine, prompt, options, echo) {
  const onToken = (/** @type {TokenDetail} */ token) => void choice.tokens.push(token);
  const choice = new Choice(engine.generate(prompt, { ...options, onToken }), echo);
  return choice;
}

/** @param {Choice[]} choices */
function leaveAll(choices) {
  for (const choice of choices) choice.leave();
}

/**
 * Reads all choices to their end.
 * @template T
 * @param {Choice[]} choices
 * @param {(text: string, index: number) => T} shapeOf called with the text of each
 * @returns {Promise<T[]>}
 */
export async function collect(choices, shapeOf) {
  const read = choices.map(async (choice, index) => {
    let text = '';
    for (let next = await choice.next(); !next.done; next = await choice.next()) text += next.value;
    return shapeOf(text, index);
  });
  try {
    return await Promise.all(read);
  } catch (error) {
    leaveAll(choices);
    throw error;
  }
}

/**
 * @param {Choice[]} choices
 * @param {AsyncGenerator<object, void, void>} chunks made from them
 * @returns {import('./event_stream.js').Chunks}
 */
export const chunksFrom = (choices, chunks) => ({
  leading: 0,
  next: () => chunks.next(),
  leave: () => leaveAll(choices),
});

/**
 * Yields the pieces of all choices in order of arrival, and the end of each. One piece of each is read
 * ahead.
 * @param {Choice[]} choices
 */
export async function* merged(choices) {
  /** @type {{index: number, next?: IteratorResult<string, void>, error?: unknown}[]} */
  const ready = [];
  let wake = () => {};
  /** @param {(typeof ready)[number]} come */
  const put = (come) => {
    ready.push(come);
    wake();
  };
  const ask = (/** @type {number} */ index) =>
    choices[index].next().then(
      (next) => put({ index, next }),
      (error) => put({ index, error }),
    );
  for (const index of choices.keys()) ask(index);
  for (let open = choices.length; open > 0; ) {
    const come = ready.shift();
    if (!come) {
      await new Promise((settle) => {
        wake = () => settle(undefined);
      });
      continue;
    }
    const { index, next, error } = come;
    if (!next) throw error;
    yield { index, text: next.value };
    if (next.done) open--;
    else ask(index);
  }
}
