// js/index.js — what `import 'wick-llm'` gives.

export { WickError } from './base/errors.js';
export { createEngine } from './page/create_engine.js';
