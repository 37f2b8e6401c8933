// js/tabs.js — loaded by `wick-llm` for an engine that tabs share.

export { canShare, TabThread } from './tabs/tab_thread.js';
