// js/openai.js — the exports of `wick-llm/openai`.

export { createHandler } from './handler/create_handler.js';
