// Imported by tests whose models write text that a grammar forces: the grammar applies to all of the output, including calls
// and reasoning. Users' constraints apply only to the content.

import { Worker } from 'node:worker_threads';

const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (message, ...more) {
  const grammar = message.type === 'generate' ? message.settings.grammar : undefined;
  if (grammar?.kind === 1) grammar.isWhole = true;
  return postMessage.call(this, message, ...more);
};
