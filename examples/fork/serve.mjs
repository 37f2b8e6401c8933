// examples/fork/serve.mjs — builds the page and serves it.
//   node examples/fork/serve.mjs [--port 8082]

import { parseArgs } from 'node:util';
import { serve } from '../../tools/serve.mjs';
import { buildFork, site } from './build.mjs';

const { values } = parseArgs({ options: { port: { type: 'string', default: '8082' } } });
await buildFork();
const server = await serve({ root: site, port: Number(values.port) });
console.log(`\nWick forks: ${server.url}   (press Ctrl-C to stop)\n`);
