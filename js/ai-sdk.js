// js/ai-sdk.js — the exports of `wick-llm/ai-sdk`.

export { WickChatTransport } from './ai_sdk/chat_transport.js';
export { createWick } from './ai_sdk/provider.js';
