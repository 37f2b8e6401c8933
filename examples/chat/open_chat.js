// examples/chat/open_chat.js — the open conversation, the model that answers it, and the answer that is being generated. Only
// conversation.js changes them.

import { newConversation } from './records.js';
import { newTree } from './tree.js';

/**
 * A new `tree` means that another conversation was opened. `temperature` is the value recommended for the model.
 * @type {{about: import('./records.js').Conversation, tree: import('./tree.js').Place,
 *   engine?: import('wick-llm').Engine, model?: import('./records.js').ModelName, temperature: number,
 *   running?: AbortController}}
 */
export const chat = { about: newConversation(), tree: newTree(), temperature: 0.7 };
