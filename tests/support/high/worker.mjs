// The package's worker in Node, with the engine's heap above 4 GiB.

import './memory.js';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../locate.mjs';

await import(pathToFileURL(join(resolve(root, process.env.WICK_DIST ?? 'dist'), 'worker.js')).href);
