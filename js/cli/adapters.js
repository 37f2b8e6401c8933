// js/cli/adapters.js — loads the adapters of the --lora option.

/** @param {string} text FILE[:SCALE] */
function adapterOf(text) {
  const [, file, scale] = /^(.+?)(?::(-?\d+(?:\.\d+)?))?$/.exec(text) ?? [];
  return { file, use: { name: file, scale: Number(scale ?? 1) } };
}

/**
 * @param {import('../index.js').Engine} engine
 * @param {string[]} given
 * @returns {Promise<{adapters?: import('../index.js').AdapterUse[]}>} the `adapters` field of
 * requests
 */
export async function loadAdapters(engine, given) {
  const adapters = given.map(adapterOf);
  for (const { file, use } of adapters) await engine.adapters.add({ file }, { name: use.name });
  return adapters.length > 0 ? { adapters: adapters.map(({ use }) => use) } : {};
}
