// js/page/engine_reports.js — the engine's JSON reports (include/wick.h) with the names of this package.

/** @typedef {import('../index.js').EngineInfo} EngineInfo */
/** @typedef {import('../index.js').KvStats} KvStats */

/** @param {string} name */
const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

/**
 * Renames the members of an object, but not those of nested objects.
 * @param {Record<string, any> | null | undefined} object
 * @returns {any}
 */
function renamed(object) {
  if (object === null || object === undefined) return null;
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [camel(name), value]));
}

/** @param {any} raw wick_info_json and the worker's counters @returns {EngineInfo} */
export function infoOf(raw) {
  return {
    architecture: raw.architecture ?? null,
    name: raw.name ?? null,
    shape: renamed(raw.shape),
    contextSize: raw.plan?.context_tokens ?? 0,
    tokenizer: renamed(raw.tokenizer),
    chatTemplate: raw.chat_template ?? null,
    types: raw.types ?? {},
    fingerprint: raw.load.fingerprint ?? null,
    threads: raw.threads,
    threadsUsed: raw.threadsUsed,
    kernels: raw.kernels,
    rounding: raw.kernels?.startsWith('relaxed') ? 'relaxed' : 'plain',
    sharing: raw.sharing ?? 'none',
    kType: raw.k_type,
    vType: raw.v_type,
    plan: renamed(raw.plan),
    error: renamed(raw.error),
    media: raw.media ?? [],
    mediaPlan: renamed(raw.media_plan),
    memory: {
      linearBytes: raw.linearBytes,
      usedBytes: raw.bytesNow,
      peakBytes: raw.bytesPeak,
      limitBytes: raw.limitBytes,
      mostBytes: raw.mostBytes,
      allocations: raw.allocations,
    },
  };
}

/** @param {any} raw wick_kv_json @returns {KvStats} */
export function kvStatsOf(raw) {
  const stats = renamed(raw);
  stats.pages = renamed(raw.pages);
  stats.fragmentation = renamed(raw.fragmentation);
  stats.prefix = renamed(raw.prefix);
  stats.groups = raw.groups.map(renamed);
  stats.states = renamed(raw.states);
  if (raw.map) stats.map = raw.map.join('');
  return stats;
}

/** @typedef {import('../index.js').EngineStats} EngineStats */

/** @param {any} raw wick_stats_json, with wick_kv_json as `kv` @returns {EngineStats} */
export function statsOf(raw) {
  return {
    ...renamed(raw),
    requests: renamed(raw.requests),
    tokens: renamed(raw.tokens),
    kv: kvStatsOf(raw.kv),
  };
}
