// examples/chat/built_in.js — the model that comes with the page, and what decides whether a visit begins with it.

export const BUILT_IN_URL = 'wick-llm-demo-model/wick-4.2m-q8_0.gguf';
/** Tabs with the same model share one engine, which has this name. */
export const SHARED = 'wick-chat';
/** The localStorage keys of the model that was used last, and of the settings. */
export const LAST_MODEL = 'wick-chat-model';
export const SETTINGS = 'wick-chat-settings';
