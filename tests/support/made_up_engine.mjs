// A fake engine with fixed chat completions, for routes that use chat completions.

/** Creates a fake engine that records its calls and returns one chat completion. */
export function madeUp() {
  /** @type {any[]} */
  const asked = [];
  const usage = {
    ...{ prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 },
    prompt_tokens_details: { cached_tokens: 4 },
  };
  /** @param {any} message @param {any[]} deltas @param {string} finish @param {unknown} [failure] */
  const engineOf = (message, deltas, finish, failure) => ({
    generate() {},
    countTokens: async () => usage.prompt_tokens,
    info: async () => ({ name: 'Made up' }),
    chat: {
      completions: {
        async create(/** @type {any} */ body) {
          asked.push(body);
          const choices = [{ index: 0, message, finish_reason: finish }];
          if (!body.stream) return { choices, usage };
          return (async function* chunks() {
            yield { choices: [{ delta: { role: 'assistant', content: '' }, finish_reason: null }] };
            for (const delta of deltas) yield { choices: [{ delta, finish_reason: null }] };
            if (failure) throw failure;
            yield { choices: [{ delta: {}, finish_reason: finish }] };
            yield { choices: [], usage };
          })();
        },
      },
    },
  });
  return { asked, engineOf };
}
