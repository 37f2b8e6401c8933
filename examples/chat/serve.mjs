// examples/chat/serve.mjs — builds and serves the page with the models that tools/setup.sh has installed: `make demo`.
//   node examples/chat/serve.mjs [--port 8080]

import { existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { serve } from '../../tools/serve.mjs';
import { buildChat, site } from './build.mjs';

/** The model that `tools/setup.sh smollm2` installs. Neither the site nor the package contains it. */
const installed = [
  {
    id: 'smollm2-135m',
    name: 'SmolLM2 135M Instruct, Q4_1',
    use: 'from this server; simple questions in English',
    temperature: 0.2,
    needBytes: 199_900_000,
    file: 'smollm2-135m-instruct-q4_1.gguf',
  },
];
const folder = resolve(dirname(fileURLToPath(import.meta.url)), '../../.toolchain/models');

/** @returns {import('./models.js').ServedModel[]} the installed models */
const servedModels = () =>
  installed
    .filter(({ file }) => existsSync(resolve(folder, file)))
    .map(({ file, ...model }) => ({
      ...model,
      url: `models/${file}`,
      bytes: statSync(resolve(folder, file)).size,
    }));

const { values } = parseArgs({ options: { port: { type: 'string', default: '8080' } } });
await buildChat(site, undefined, servedModels());

/** @param {number} port @returns {ReturnType<typeof serve>} the port, or any free port if it is taken */
async function serveAt(port) {
  try {
    return await serve({ root: { '/': site, '/models/': folder }, port });
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EADDRINUSE' || port === 0)
      throw error;
    return serveAt(0);
  }
}

const server = await serveAt(Number(values.port));
console.log(`\nWick chat: ${server.url}   (press Ctrl-C to stop)\n`);
