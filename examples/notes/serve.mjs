// examples/notes/serve.mjs — builds the page and serves it.
//   node examples/notes/serve.mjs [--port 8083]

import { parseArgs } from 'node:util';
import { serve } from '../../tools/serve.mjs';
import { buildNotes, site } from './build.mjs';

const { values } = parseArgs({ options: { port: { type: 'string', default: '8083' } } });
await buildNotes();
const server = await serve({ root: site, port: Number(values.port) });
console.log(`\nWick notes: ${server.url}   (press Ctrl-C to stop)\n`);
