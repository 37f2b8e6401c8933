// Imported by tests that force the model's output with a grammar: the grammar applies to the whole output, including calls and
// reasoning. Constraints set by users apply only to the content.

import { Worker } from 'node:worker_threads';

const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (message, ...more) {
  const grammar = message.type === 'generate' ? message.settings.grammar : undefined;
  if (grammar?.kind === 1) grammar.isWhole = true;
  return postMessage.call(this, message, ...more);
};
