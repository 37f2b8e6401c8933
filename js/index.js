// js/index.js — what `import 'wick-llm'` gives.

export { createEngine } from './engine.js';
export { WickError } from './errors.js';
