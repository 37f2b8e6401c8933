// js/chat.js — the exports of `wick-llm/chat`, which engine.createChat loads at its first use.

export { createChat, loadChat } from './chat/chat_session.js';
export { parseCompletion } from './chat/parse_completion.js';
