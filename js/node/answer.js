// js/node/answer.js — answers a node:http request with a function from Request to Response. A slow
// client slows down only its own response. The request's signal aborts when the client disconnects.

/**
 * @typedef {import('node:http').IncomingMessage & {body?: unknown}} IncomingMessage whose body a
 * framework may already have read
 */
/** @typedef {import('node:http').ServerResponse} ServerResponse */
/** @typedef {(request: Request) => Promise<Response>} Handle */

/**
 * Returns the body, which is received no faster than it is read. After cancel() the rest is discarded, and the
 * connection is closed after the response.
 * @param {IncomingMessage} incoming
 * @param {ServerResponse} outgoing
 * @returns {ReadableStream<Uint8Array>}
 */
function bodyOf(incoming, outgoing) {
  /** @param {Buffer} bytes */
  let take = (bytes) => void bytes;
  return new ReadableStream(
    {
      start(controller) {
        take = (bytes) => {
          controller.enqueue(bytes);
          incoming.pause();
        };
        incoming.on('data', take);
        incoming.once('end', () => controller.close());
        incoming.once('error', (error) => controller.error(error));
        incoming.pause();
      },
      pull: () => void incoming.resume(),
      cancel() {
        incoming.removeAllListeners('end').off('data', take).resume();
        if (!outgoing.headersSent) outgoing.setHeader('Connection', 'close');
      },
    },
    { highWaterMark: 0 },
  );
}

/**
 * Returns a body that a framework has already parsed (for example express.json()) as text or bytes.
 * @param {IncomingMessage} incoming
 * @returns {string | Uint8Array | undefined} undefined: it was not parsed
 */
function readBodyOf({ readableDidRead, body }) {
  if (!readableDidRead || body === undefined) return undefined;
  return typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
}

/** Headers that describe the received bytes and do not apply to a parsed body. */
const bodyHeaders = ['content-length', 'content-encoding', 'transfer-encoding'];

/**
 * @param {IncomingMessage} incoming
 * @param {ServerResponse} outgoing
 * @param {string} path with its query
 * @param {AbortSignal} signal
 * @returns {Request}
 */
function requestOf(incoming, outgoing, path, signal) {
  const { method = 'GET', headersDistinct } = incoming;
  const headers = new Headers();
  for (const [name, values] of Object.entries(headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const init = { method, headers, signal, ...(hasBody && { duplex: 'half' }) };
  const read = hasBody ? readBodyOf(incoming) : undefined;
  if (read !== undefined) for (const name of bodyHeaders) headers.delete(name);
  const body = read ?? (hasBody ? bodyOf(incoming, outgoing) : null);
  return new Request(new URL(path, 'http://localhost'), {
    ...init,
    body: /** @type {BodyInit | null} */ (body),
  });
}

/** @param {ReadableStream<Uint8Array>} body @param {ServerResponse & {flush?: () => void}} outgoing */
async function send(body, outgoing) {
  const reader = body.getReader();
  let wake = () => {};
  outgoing.once('close', () => {
    reader.cancel().catch(() => {}); // the stream has already ended
    wake();
  });
  for (;;) {
    const { done, value } = await reader.read();
    if (done || outgoing.destroyed) break;
    const isTaken = outgoing.write(value);
    if (Object.hasOwn(outgoing, 'flush')) outgoing.flush?.(); // added by Express' compression middleware
    if (isTaken) continue;
    await new Promise((settle) => {
      wake = () => settle(undefined);
      outgoing.once('drain', wake);
    });
  }
  outgoing.end();
}

/**
 * Never rejects: if the response fails midway, the connection is closed.
 * @param {IncomingMessage} incoming
 * @param {ServerResponse} outgoing
 * @param {Handle} handle
 * @param {string} [path] the path for the handler; by default the request's path
 */
export async function answer(incoming, outgoing, handle, path = incoming.url ?? '/') {
  try {
    await answerWell(incoming, outgoing, handle, path);
  } catch {
    outgoing.destroy();
  }
}

/**
 * @param {ServerResponse} outgoing
 * @returns {AbortSignal} aborts when the client disconnects before the response has ended
 */
export function signalOf(outgoing) {
  const controller = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) controller.abort();
  });
  if (outgoing.destroyed) controller.abort(); // the client disconnected before the framework called this
  return controller.signal;
}

/** @param {IncomingMessage} incoming @param {ServerResponse} outgoing @param {Handle} handle @param {string} path */
async function answerWell(incoming, outgoing, handle, path) {
  const signal = signalOf(outgoing);
  let request;
  try {
    request = requestOf(incoming, outgoing, path, signal);
  } catch {
    outgoing.writeHead(400).end(); // the Request constructor rejects the URL or the method
    return;
  }
  const response = await handle(request);
  if (outgoing.destroyed) {
    await response.body?.cancel();
    return;
  }
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null || incoming.method === 'HEAD') outgoing.end();
  else await send(response.body, outgoing);
}
