// js/page/engine_reports.js — the engine's JSON reports (include/wick.h) with the names of this package.

/** @import { EngineInfo, EngineStats, KvStats } from '../index.js' */

/** @param {string} name */
const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

/**
 * Renames the members of a value and of all values in it.
 * @param {any} value of JSON
 * @returns {any}
 */
function renamed(value) {
  if (Array.isArray(value)) return value.map(renamed);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, one]) => [camel(name), renamed(one)]);
  return Object.fromEntries(members);
}

/** @param {any} raw wick_info_json and the worker's counters @returns {EngineInfo} */
export function infoOf(raw) {
  return {
    architecture: raw.architecture ?? null,
    name: raw.name ?? null,
    shape: renamed(raw.shape) ?? null,
    contextSize: raw.plan?.context_tokens ?? 0,
    tokenizer: renamed(raw.tokenizer) ?? null,
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
    plan: renamed(raw.plan) ?? null,
    error: renamed(raw.error) ?? null,
    media: raw.media ?? [],
    mediaPlan: renamed(raw.media_plan) ?? null,
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
  if (raw.map) stats.map = raw.map.join('');
  return stats;
}

/** @param {any} raw wick_stats_json, with wick_kv_json as `kv` @returns {EngineStats} */
export const statsOf = (raw) => ({ ...renamed(raw), kv: kvStatsOf(raw.kv) });
