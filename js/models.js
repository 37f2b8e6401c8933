// js/models.js — the exports of `wick-llm/models`.

export { openModels } from './models/open_models.js';
