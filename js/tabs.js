// js/tabs.js — what `wick-llm` loads for an engine that tabs share.

export { canShare, TabThread } from './tabs/tab_thread.js';
