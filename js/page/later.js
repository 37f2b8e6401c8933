// js/page/later.js — files of the package that are loaded at first use. Their URLs are literals, for bundlers.

import { WickError } from '../base/errors.js';

/** @param {string} name @returns {(error: unknown) => never} */
const missing = (name) => (error) => {
  throw new WickError('NETWORK', `wick-llm's ${name} could not be loaded: ${error}`, error);
};

export const loadChats = async () => await import('../chat.js').catch(missing('chat.js'));
export const loadSources = async () => await import('../sources.js').catch(missing('sources.js'));
export const loadTabs = async () => await import('../tabs.js').catch(missing('tabs.js'));
export const loadTasks = async () => await import('../tasks.js').catch(missing('tasks.js'));
