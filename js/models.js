// js/models.js — the exports of `wick-llm/models`.

export { openModels } from './models/open_store.js';
export { openKept } from './models/stored_source.js';
