// Imported by tests whose models write what a grammar forces: the grammar is of all that they write, calls and reasoning
// among it. Users' constraints apply to the content alone.

import { Worker } from 'node:worker_threads';

const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (message, ...more) {
  const grammar = message.type === 'generate' ? message.settings.grammar : undefined;
  if (grammar?.kind === 1) grammar.isWhole = true;
  return postMessage.call(this, message, ...more);
};
