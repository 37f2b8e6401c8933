// js/handler/named_events.js — a stream of events that are built from the chunks of a chat
// completion.

/** @typedef {import('./event_stream.js').Chunks} Chunks */

/**
 * @param {AsyncIterator<any>} chunks of the chat completion
 * @param {{take: () => object[], add: (chunk: any) => void}} events `take` returns the events since its last
 * call
 * @param {{leading: number, failureOf: NonNullable<Chunks['failureOf']>}} ends the events at its start and after a failure
 * @returns {Chunks}
 */
export function namedEvents(chunks, events, { leading, failureOf }) {
  /** @type {object[]} */
  let ready = [];
  return {
    ...{ isNamed: true, leading, failureOf },
    async next() {
      for (;;) {
        ready.push(...events.take());
        const value = ready.shift();
        if (value) return { done: false, value };
        const next = await chunks.next();
        if (next.done) return { done: true, value: undefined };
        events.add(next.value);
      }
    },
    leave() {
      ready = [];
      void chunks.return?.();
    },
  };
}
