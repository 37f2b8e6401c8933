// A server with one file whose responses a test controls: faults, different versions, and the number
// of bytes to send.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { randomBytes } from './random_bytes.mjs';

/** @param {number} size @param {number} [seed] @returns {Buffer<ArrayBuffer>} bytes that start like a model */
export function pretendedModel(size, seed = 1) {
  const bytes = randomBytes(size, seed);
  bytes.write('GGUF');
  return bytes;
}

/** @param {Buffer} bytes */
export const sha256Of = (bytes) => createHash('sha256').update(bytes).digest('hex');

/**
 * The fault in one response: `cut` ends the connection after this many bytes, `status` responds with a status
 * and without the file, `page` and `text` respond with different content, `whole` ignores the range, `stall` stops
 * sending after `cut` bytes, `unknown` does not report the length, `damaged` has a wrong byte.
 * @typedef {{cut?: number, stall?: boolean, status?: number, page?: boolean, whole?: boolean, text?: string | Buffer,
 *   unknown?: boolean, damaged?: boolean}} Fault
 */

/** The interval between bytes of a held response, so that it is not considered stalled. */
const HELD_MS = 100;

/**
 * @param {import('node:http').ServerResponse} response
 * @param {Buffer} bytes
 * @param {{paceMs: number, holdAt: number}} state may be changed by the test at any time
 */
async function sendSlowly(response, bytes, state) {
  for (let at = 0; at < bytes.byteLength && !response.destroyed; ) {
    const isHeld = at >= state.holdAt;
    const end = at + (isHeld ? 1 : 1 << 20);
    response.write(bytes.subarray(at, end));
    at = end;
    await new Promise((settle) => setTimeout(settle, isHeld ? HELD_MS : state.paceMs));
  }
  response.end();
}

/** @param {Buffer} first */
export async function serveModel(first) {
  const state = {
    bytes: first,
    tag: `"${sha256Of(first).slice(0, 16)}"`,
    /** Offsets of requests. @type {number[]} */
    starts: [],
    sent: 0,
    /** The pause after each megabyte. */
    paceMs: 0,
    /** Responses are held after this many bytes, until the test increases it. */
    holdAt: Infinity,
    /** @type {(start: number) => Fault | undefined} */
    fault: () => undefined,
    /** A promise to await before each response. @type {() => Promise<unknown> | undefined} */
    before: () => undefined,
    /** @type {import('node:http').IncomingHttpHeaders[]} */
    headers: [],
  };
  const server = createServer(async (request, response) => {
    const { bytes, tag } = state;
    await state.before();
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    const condition = request.headers['if-range'];
    const fits = range && (condition === undefined || condition === tag);
    const start = fits ? Number(range[1]) : 0;
    state.starts.push(start);
    state.headers.push(request.headers);
    const fault = state.fault(start) ?? {};
    response.on('error', () => {});
    response.setHeader('Access-Control-Allow-Origin', '*');
    if (fault.status) return response.writeHead(fault.status).end('no');
    if (fault.page) {
      return response.writeHead(200, { 'Content-Type': 'text/html' }).end('<html><title>Sign in');
    }
    if (fault.text !== undefined) return response.writeHead(200).end(fault.text);
    const isPart = Boolean(fits) && !fault.whole;
    const part = bytes.subarray(isPart ? start : 0);
    if (isPart && part.byteLength === 0) return response.writeHead(416).end();
    response.setHeader('ETag', tag);
    if (!fault.unknown) response.setHeader('Content-Length', part.byteLength);
    if (isPart) {
      response.setHeader('Content-Range', `bytes ${start}-${bytes.length - 1}/${bytes.length}`);
    }
    response.writeHead(isPart ? 206 : 200);
    const { cut = part.byteLength } = fault;
    const sent = fault.damaged ? Buffer.from(part) : part.subarray(0, cut);
    if (fault.damaged) sent[sent.length >> 1] ^= 1;
    state.sent += sent.byteLength;
    if (state.paceMs > 0 || state.holdAt < Infinity) return sendSlowly(response, sent, state);
    if (cut >= part.byteLength) return response.end(sent);
    return response.write(sent, () => {
      if (!fault.stall) setTimeout(() => response.destroy(), 5);
    });
  });
  await new Promise((settle) => server.listen(0, '127.0.0.1', () => settle(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    state,
    url: `http://127.0.0.1:${port}/model.gguf`,
    /** @param {Buffer} bytes a different version of the file */
    change(bytes) {
      state.bytes = bytes;
      state.tag = `"${sha256Of(bytes).slice(0, 16)}"`;
    },
    /** Closes all connections, as if the network were lost. */
    drop: () => server.closeAllConnections(),
    close: () =>
      new Promise((settle) => {
        server.close(() => settle(undefined));
        server.closeAllConnections();
      }),
  };
}

/**
 * The number of bytes before a position that are compared if a cross-origin server hides the range it
 * sent.
 */
export const TAIL_BYTES = 4096;

/**
 * Asserts that a download was continued at a position: only the tail of the stored bytes was
 * fetched again.
 * @param {number[]} starts of all requests
 * @param {number} position
 */
export function assertContinued(starts, position) {
  assert.deepEqual(starts.slice(0, 2), [0, position]);
  const others = starts.slice(2);
  assert.ok(others.length <= 2, `${starts}`);
  for (const start of others) assert.equal(start, position - TAIL_BYTES);
}
