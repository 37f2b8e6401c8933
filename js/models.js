// js/models.js — the exports of `wick-llm/models`.

export { openKept } from './models/kept_source.js';
export { openModels } from './models/open_models.js';
