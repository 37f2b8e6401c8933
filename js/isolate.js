// js/isolate.js — the exports of `wick-llm/isolate`.

export { isolate } from './isolate/isolate_page.js';
export { isolated } from './isolate/isolation_headers.js';
