// js/index.js — the exports of `wick-llm`.

export { WickError } from './base/errors.js';
export { createEngine } from './page/create_engine.js';
