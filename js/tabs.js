// js/tabs.js — loaded by `wick-llm` for an engine that is shared between tabs.

export { join, TabThread } from './tabs/tab_thread.js';
