// A static file server for the demo page and for tests: byte ranges, ETags, and optional
// cross-origin isolation, but no caching and no directory listings.
//   node tools/serve.mjs [--port 8080] [--host 127.0.0.1] [--no-isolation] [--cors] [FOLDER]

import { createReadStream, readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize, resolve, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** @type {Record<string, string>} */
const types = {
  '.css': 'text/css; charset=utf-8',
  '.gguf': 'application/octet-stream',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
};

/** Sending 350 MB takes 0.25 s of CPU time in pieces of this size, and 0.6 s with Node's default of 64 KB. */
const PIECE_BYTES = 1 << 20;
/** Smaller files are read at once, which takes a fraction of the time that a stream takes to open. */
const SMALL_BYTES = 1 << 20;

/**
 * @typedef {object} ServeOptions
 * @property {string | Record<string, string>} root a folder, or several by their paths ({'/': …,
 *   '/dist/': …}; the longest matching path is used)
 * @property {number} [port] 0, the default: any free port
 * @property {string} [host] 127.0.0.1 by default
 * @property {boolean} [isolated] whether pages are served with COOP and COEP, which enable shared
 * memory; true by default
 * @property {boolean} [cors] whether other origins may read the files; false by default
 * @property {boolean} [ranges] whether Range requests are supported; true by default
 * @property {(path: string) => void} [onRequest] called for every request
 */

/**
 * @param {ServeOptions} options
 * @returns {Promise<{url: string, port: number, close: () => Promise<void>}>} `url` ends in a slash
 */
export async function serve({ port = 0, host = '127.0.0.1', ...options }) {
  const server = createServer((request, response) => {
    answer(request, response, options).catch((error) => {
      if (!response.headersSent) response.writeHead(error.code === 'ENOENT' ? 404 : 500).end();
      else response.destroy();
    });
  });
  await new Promise((settle, fail) => {
    server.once('error', fail);
    server.listen(port, host, () => settle(undefined));
  });
  const address = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${address.port}/`,
    port: address.port,
    close: () =>
      new Promise((settle) => {
        server.close(() => settle());
        server.closeAllConnections();
      }),
  };
}

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {ServeOptions} options
 */
async function answer(request, response, options) {
  options.onRequest?.(request.url ?? '/');
  for (const [name, value] of Object.entries(headersFor(options))) response.setHeader(name, value);
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.writeHead(request.method === 'OPTIONS' ? 204 : 405).end();
    return;
  }
  const path = findFile(new URL(request.url ?? '/', 'http://localhost').pathname, options.root);
  if (path === undefined) {
    response.writeHead(404).end();
    return;
  }
  const facts = await stat(path);
  if (facts.isDirectory()) {
    response.writeHead(404).end();
    return;
  }
  const etag = `"${facts.size.toString(16)}-${Math.floor(facts.mtimeMs).toString(16)}"`;
  response.setHeader('Content-Type', types[extname(path)] ?? 'application/octet-stream');
  response.setHeader('ETag', etag);
  response.setHeader('Last-Modified', facts.mtime.toUTCString());
  const range = options.ranges === false ? undefined : rangeOf(request, facts.size, etag);
  await send(request, response, path, facts.size, range);
}

/** @param {ServeOptions} options @returns {Record<string, string>} */
function headersFor({ isolated = true, cors = false, ranges = true }) {
  return {
    'Cache-Control': 'no-cache',
    ...(ranges && { 'Accept-Ranges': 'bytes' }),
    ...(isolated && {
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Embedder-Policy': 'require-corp',
    }),
    ...(cors && {
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Allow-Headers': 'Range',
      'Cross-Origin-Resource-Policy': 'cross-origin',
    }),
  };
}

/** @param {string} pathname @param {ServeOptions['root']} root @returns {string | undefined} */
function findFile(pathname, root) {
  const folders = typeof root === 'string' ? { '/': root } : root;
  const wanted = normalize(decodeURIComponent(pathname)).replaceAll(sep, '/');
  if (wanted.includes('\0')) return undefined;
  const mount = Object.keys(folders)
    .filter((path) => wanted.startsWith(path))
    .sort((a, b) => b.length - a.length)[0];
  if (mount === undefined) return undefined;
  const below = wanted.slice(mount.length);
  const file = join(
    folders[mount],
    below === '' || below.endsWith('/') ? `${below}index.html` : below,
  );
  return resolve(file).startsWith(resolve(folders[mount])) ? file : undefined;
}

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {number} size
 * @param {string} etag
 * @returns {{first: number, last: number} | 'none' | undefined} 'none' if the range is outside of
 * the file
 */
function rangeOf(request, size, etag) {
  const found = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? '');
  const condition = request.headers['if-range'];
  if (!found || (condition !== undefined && condition !== etag)) return undefined;
  const [, from, to] = found;
  if (from === '' && to === '') return undefined;
  const first = from === '' ? Math.max(0, size - Number(to)) : Number(from);
  const last = from === '' || to === '' ? size - 1 : Math.min(Number(to), size - 1);
  return first < size && first <= last ? { first, last } : 'none';
}

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {string} path
 * @param {number} size
 * @param {ReturnType<typeof rangeOf>} range
 */
async function send(request, response, path, size, range) {
  if (range === 'none') {
    response.writeHead(416, { 'Content-Range': `bytes */${size}` }).end();
    return;
  }
  const { first, last } = range ?? { first: 0, last: size - 1 };
  response.setHeader('Content-Length', last - first + 1);
  if (range) response.setHeader('Content-Range', `bytes ${first}-${last}/${size}`);
  response.writeHead(range ? 206 : 200);
  if (request.method === 'HEAD' || size === 0) {
    response.end();
    return;
  }
  if (size <= SMALL_BYTES) {
    response.end(readFileSync(path).subarray(first, last + 1));
    return;
  }
  const file = createReadStream(path, { start: first, end: last, highWaterMark: PIECE_BYTES });
  await pipeline(file, response);
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      port: { type: 'string', default: '8080' },
      host: { type: 'string', default: '127.0.0.1' },
      'no-isolation': { type: 'boolean', default: false },
      cors: { type: 'boolean', default: false },
    },
  });
  const { url } = await serve({
    root: resolve(positionals[0] ?? '.'),
    port: Number(values.port),
    host: values.host,
    isolated: !values['no-isolation'],
    cors: values.cors,
  });
  console.log(url);
}
