// js/tasks.js — loaded by `wick-llm` when a task is first used: the engine's less common calls.

export { beamSearch } from './page/beam_search.js';
export { readAll } from './page/best_of.js';
export { classify } from './page/classify.js';
export { createEmbeddings, embed, rerank } from './page/embeddings.js';
export { extract } from './page/extract.js';
export { decodePart } from './page/media_decode.js';
export { prometheusOf } from './page/prometheus.js';
export { runTools } from './page/run_tools.js';
