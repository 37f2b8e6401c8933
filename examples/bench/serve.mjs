// examples/bench/serve.mjs — builds the page and serves it.
//   node examples/bench/serve.mjs [--port 8081]

import { parseArgs } from 'node:util';
import { serve } from '../../tools/serve.mjs';
import { buildBench, site } from './build.mjs';

const { values } = parseArgs({ options: { port: { type: 'string', default: '8081' } } });
await buildBench();
const server = await serve({ root: site, port: Number(values.port) });
console.log(`\nWick benchmark: ${server.url}   (press Ctrl-C to stop)\n`);
