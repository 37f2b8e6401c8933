// examples/chat/developer_panel.js — the content of the developer panel: a map of the engine's KV cache pages, and
// a list of facts about the cache. Loaded when the panel is opened.

import { drawPages } from '../fork/kv_map.js';
import { byId, formatBytes, make } from './dom.js';

/** @import { KvStats } from 'wick-llm' */
/** @typedef {[name: string, text: string]} Fact */

const where = {
  picture: byId('kv-pages'),
  legend: byId('kv-legend'),
  words: {
    shared: 'shared',
    private: 'used by one answer',
    cached: 'cached',
    free: 'free',
  },
};

/** @param {KvStats} stats @returns {Fact[]} */
export function factsOf({ kType, vType, pageTokens, pageBytes, bytes, forks, cowCopies, prefix }) {
  const types = `keys ${kType}, values ${vType}; a page is ${pageTokens} tokens, ${formatBytes(pageBytes)}`;
  const used = `${formatBytes(bytes.used)} of ${formatBytes(bytes.capacity)} in use, ${forks} forks, ${cowCopies} copies`;
  const saved = prefix && `${prefix.hits} hits, ${prefix.tokensSaved} tokens saved`;
  return [
    ['Types', types],
    ['Memory', used],
    ['Prefix cache', saved ?? 'off'],
  ];
}

/** @param {Fact[]} all */
export function showFacts(all) {
  const list = all.flatMap(([name, text]) => {
    const description = make('dd', {}, text);
    description.dataset.fact = name;
    return [make('dt', {}, name), description];
  });
  byId('kv-facts').replaceChildren(...list);
}

/** @param {KvStats} stats with the map of the pages */
export const drawStats = (stats) => drawPages(where, stats);
