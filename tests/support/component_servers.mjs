// The components of `make edge` in the servers that they are for.

import { dirname } from 'node:path';
import { startServer } from './example_servers.mjs';
import { built, locate } from './locate.mjs';
import { modelPath } from './package.mjs';

/** @typedef {import('./example_servers.mjs').Started} Started */

/** @param {string} line */
const printedOrigin = (line) => /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];

/** @type {Record<string, string[]>} what `wasmtime serve` has to be told for each */
const flags = {
  p2: ['-Scli'],
  p3: [
    ...['-Scli', '-Sp3', '-Wcomponent-model-async', '--idle-instance-timeout', '600s'],
    ...['--max-instance-reuse-count', '100000', '--max-instance-concurrent-reuse-count', '256'],
  ],
};

/**
 * `wasmtime serve`, with the model in a preopened directory.
 * @param {string} name p2 or p3
 * @param {{args?: string[], model?: string}} [options] of the command; the folder's model is called as here
 * @returns {Promise<Started>}
 */
export function startWasmtime(name, { args = [], model = modelPath } = {}) {
  const folder = [
    '--dir',
    `${dirname(model)}::/models`,
    '--env',
    `WICK_MODEL=/models/${model.split('/').at(-1)}`,
  ];
  const component = built(`edge/wick-${name}.wasm`);
  return startServer(
    locate('wasmtimeCommand').path,
    ['serve', ...flags[name], '--addr', '127.0.0.1:0', ...folder, ...args, component],
    printedOrigin,
  );
}
