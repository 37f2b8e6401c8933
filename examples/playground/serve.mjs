// examples/playground/serve.mjs — builds the page and serves it.
//   node examples/playground/serve.mjs [--port 8082]

import { parseArgs } from 'node:util';
import { serve } from '../../tools/serve.mjs';
import { buildPlayground, site } from './build.mjs';

const { values } = parseArgs({ options: { port: { type: 'string', default: '8082' } } });
await buildPlayground();
const server = await serve({ root: site, port: Number(values.port) });
console.log(`\nWick playground: ${server.url}   (press Ctrl-C to stop)\n`);
