// js/chat.js — the exports of `wick-llm/chat`, which engine.createChat loads when first called.

export { createChat, loadChat } from './chat/chat_session.js';
export { parseCompletion } from './chat/parse_completion.js';
