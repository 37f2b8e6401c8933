// A model hub that behaves as publicly documented: paginated listings, large files on a different
// host with signed URLs that expire, gated and missing repositories, rate limits, HTML pages and LFS
// pointers instead of files.

import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

const COMMIT = 'c0ffee'.padEnd(40, '0');
const PAGE_ROWS = 2;
const exposed =
  'X-Repo-Commit, X-Request-Id, X-Error-Code, X-Error-Message, X-Total-Count, ETag, Link, Accept-Ranges, ' +
  'Content-Range, X-Linked-Size, X-Linked-ETag, X-Xet-Hash';

/** @param {string | Buffer} text @param {string} [kind] */
const hashOf = (text, kind = 'sha256') => createHash(kind).update(text).digest('hex');

/** @param {import('node:http').IncomingMessage} request @param {import('node:http').ServerResponse} response */
function allow(request, response) {
  response.setHeader('Access-Control-Allow-Origin', request.headers.origin ?? '*');
  response.setHeader('Access-Control-Expose-Headers', exposed);
  response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin');
  if (request.method !== 'OPTIONS') return false;
  response.setHeader('Access-Control-Allow-Headers', 'Authorization, Range');
  response.writeHead(204).end();
  return true;
}

/** @param {import('node:http').Server} server @returns {Promise<string>} */
const listen = (server) =>
  new Promise((settle) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
      settle(`http://127.0.0.1:${port}`);
    });
  });

/** @param {Record<string, Record<string, Buffer>>} repositories their files by path */
export async function startHub(repositories) {
  const state = {
    /** Requests to the hub: method and path. @type {string[]} */
    asked: [],
    /** Offsets at which files were sent. @type {number[]} */
    starts: [],
    /** Headers of requests to the other host. @type {import('node:http').IncomingHttpHeaders[]} */
    storageHeaders: [],
    /** Repositories that need a token, and the token. @type {Record<string, string>} */
    gated: {},
    /** The number of requests that are rejected with 429 before one is answered. */
    busy: 0,
    /** Increase this to make earlier signed URLs expire. */
    epoch: 0,
    commit: COMMIT,
    repositories,
    /**
     * The number of bytes after which the other host's connections break.
     * @type {number | undefined}
     */
    cut: undefined,
  };

  const storage = createServer((request, response) => {
    if (allow(request, response)) return;
    const url = new URL(request.url ?? '/', 'http://localhost');
    state.storageHeaders.push(request.headers);
    if (url.searchParams.get('epoch') !== String(state.epoch)) {
      response.writeHead(403).end('Request has expired');
      return;
    }
    const bytes = Object.values(state.repositories)
      .flatMap((files) => Object.values(files))
      .find((file) => hashOf(file) === url.pathname.slice(1));
    if (!bytes) return void response.writeHead(404).end();
    const start = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const isPart = request.headers.range !== undefined;
    state.starts.push(start);
    response.setHeader('ETag', `"${hashOf(bytes, 'md5')}"`);
    response.setHeader('Accept-Ranges', 'bytes');
    response.setHeader('Content-Length', bytes.length - start);
    if (isPart) {
      response.setHeader('Content-Range', `bytes ${start}-${bytes.length - 1}/${bytes.length}`);
    }
    response.writeHead(isPart ? 206 : 200);
    const { cut } = state;
    if (cut === undefined) return void response.end(bytes.subarray(start));
    state.cut = undefined;
    response.write(bytes.subarray(start, start + cut), () =>
      setTimeout(() => response.destroy(), 5),
    );
  });
  const storageUrl = await listen(storage);

  const hub = createServer((request, response) => {
    if (allow(request, response)) return;
    const url = new URL(request.url ?? '/', base);
    state.asked.push(`${request.method} ${url.pathname}${url.search}`);
    /** @param {number} status @param {string} [code] @param {string} [message] */
    const refuse = (status, code, message = 'refused') => {
      if (code) response.setHeader('X-Error-Code', code).setHeader('X-Error-Message', message);
      response.writeHead(status).end(message);
    };
    if (state.busy-- > 0) {
      response.setHeader('Retry-After', '0');
      return refuse(429);
    }
    if (url.pathname === '/api/models') {
      const search = (url.searchParams.get('search') ?? '').toLowerCase();
      const names = Object.keys(state.repositories).filter((one) =>
        one.toLowerCase().includes(search),
      );
      const gguf = names.filter((one) =>
        Object.keys(state.repositories[one]).some((path) => path.endsWith('.gguf')),
      );
      return response.end(
        JSON.stringify(gguf.map((id, index) => ({ id, downloads: 1000 - index, gated: false }))),
      );
    }
    const api = /^\/api\/models\/([^/]+\/[^/]+)(?:\/tree\/([^/]+))?$/.exec(url.pathname);
    const file = /^\/([^/]+\/[^/]+)\/(resolve|raw|blob)\/([^/]+)\/(.+)$/.exec(url.pathname);
    const name = (api ?? file)?.[1] ?? '';
    const files = state.repositories[name];
    const token = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1];
    if (!files) return refuse(token ? 404 : 401, 'RepoNotFound', 'Repository not found');
    const wanted = state.gated[name];
    if (wanted !== undefined && file && token !== wanted) {
      return refuse(token ? 403 : 401, 'GatedRepo', `Access to ${name} is restricted`);
    }
    const revision = (api ?? file)?.[api ? 2 : 3];
    if (revision !== undefined && !['main', state.commit].includes(revision)) {
      return refuse(404, 'RevisionNotFound', 'Invalid rev id');
    }
    if (api && revision === undefined) {
      const siblings = Object.keys(files).map((rfilename) => ({ rfilename }));
      const gated = wanted === undefined ? false : 'manual';
      return response.end(JSON.stringify({ sha: state.commit, siblings, gated }));
    }
    if (api) return list(url, files, response);
    const [, , kind, , escaped] = /** @type {RegExpExecArray} */ (file);
    const path = decodeURIComponent(escaped);
    const bytes = files[path];
    if (!bytes) return refuse(404, 'EntryNotFound', 'Entry not found');
    response.setHeader('X-Repo-Commit', state.commit);
    if (kind === 'blob') {
      response.setHeader('Content-Type', 'text/html; charset=utf-8');
      return response.end('<!doctype html><title>A file</title>');
    }
    const sha256 = hashOf(bytes);
    if (kind === 'raw') {
      const pointer = `oid sha256:${sha256}\nsize ${bytes.length}\n`;
      return response.end(`version https://git-lfs.github.com/spec/v1\n${pointer}`);
    }
    response.setHeader('X-Linked-Size', bytes.length);
    response.setHeader('X-Linked-ETag', `"${sha256}"`);
    response.setHeader('Location', `${storageUrl}/${sha256}?epoch=${state.epoch}`);
    response.writeHead(302).end();
  });
  const base = await listen(hub);

  /** @param {URL} url @param {Record<string, Buffer>} files @param {import('node:http').ServerResponse} response */
  function list(url, files, response) {
    const rows = [
      { type: 'directory', path: 'more', size: 0, oid: '0' },
      { type: 'file', path: 'README.md', size: 7, oid: '1' },
      ...Object.entries(files).map(([path, bytes]) => ({
        type: 'file',
        path,
        size: bytes.length,
        oid: hashOf(bytes, 'sha1'),
        lfs: { oid: hashOf(bytes), size: bytes.length, pointerSize: 134 },
      })),
    ];
    const first = Number(url.searchParams.get('cursor') ?? 0);
    if (first + PAGE_ROWS < rows.length) {
      const next = new URL(url);
      next.searchParams.set('cursor', String(first + PAGE_ROWS));
      response.setHeader('Link', `<${next.href}>; rel="next"`);
    }
    return response.end(JSON.stringify(rows.slice(first, first + PAGE_ROWS)));
  }

  return {
    url: base,
    state,
    close: async () => {
      for (const server of [hub, storage]) {
        server.closeAllConnections();
        await new Promise((settle) => server.close(settle));
      }
    },
  };
}

/**
 * Starts a hub with a model that can be found, and two models from the page's list: one that runs, and
 * one with an unknown architecture.
 * @param {Buffer} model
 */
export const startListedHub = (model) =>
  startHub({
    'wick/tiny-GGUF': {
      ...{ 'tiny-Q4_0.gguf': model, 'tiny-mmproj.gguf': model },
      'broken.gguf': Buffer.from('no'),
    },
    'wick/notes': {},
    'bartowski/SmolLM2-135M-Instruct-GGUF': { 'SmolLM2-135M-Instruct-Q8_0.gguf': model },
    'HuggingFaceTB/SmolLM2-360M-Instruct-GGUF': {
      'smollm2-360m-instruct-q8_0.gguf': Buffer.from(
        model.toString('latin1').replaceAll('llama', 'other'),
        'latin1',
      ),
    },
  });
