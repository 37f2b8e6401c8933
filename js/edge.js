// js/edge.js — the exports of `wick-llm/edge`.

export { WickError } from './base/errors.js';
export { createEngine, openOnce } from './edge/create_edge_engine.js';
