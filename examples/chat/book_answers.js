// examples/chat/book_answers.js — several answers about a book.

/**
 * Merges answers that are generated at the same time, each on a separate fork, into one stream.
 * @param {(body: any, more: object) => Promise<AsyncIterable<import('./tool_calls.js').Chunk>>} create
 * @param {any} body @param {import('wick-llm').Session[]} forks
 */
export async function* sideBySide(create, body, forks) {
  const readers = await Promise.all(
    forks.map(async (session, index) => {
      const seed = body.seed === undefined ? {} : { seed: body.seed + index };
      return (await create(body, { ...seed, session }))[Symbol.asyncIterator]();
    }),
  );
  const read = (/** @type {number} */ index) =>
    readers[index].next().then((step) => ({ index, step }));
  const pending = new Map(readers.map((_, index) => [index, read(index)]));
  try {
    while (pending.size > 0) {
      const { index, step } = await Promise.race(pending.values());
      pending.delete(index);
      if (step.done) continue;
      pending.set(index, read(index));
      yield { ...step.value, choices: step.value.choices.map((one) => ({ ...one, index })) };
    }
  } finally {
    for (const index of pending.keys()) readers[index].return?.();
  }
}
