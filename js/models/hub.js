// js/models/hub.js — names of models on a hub: `hf:owner/repo/file.gguf` is a file, `owner/repo:Q4_K_M` is the file
// with this type in a repository. The hub's listing contains the names, sizes and SHA-256 hashes of the files.

import { argumentError, WickError, wordsOf } from '../base/errors.js';
import { splitNames } from '../bytes/split_files.js';

/** @import { HubOptions } from '../models.js' */
/** @typedef {{owner: string, repo: string, revision?: string, path?: string, type?: string}} HubName */
/** @typedef {{path: string, size: number, sha256: string | undefined}} HubFile */

const ENDPOINT = 'https://huggingface.co';
/** The default type, which takes precedence over the order of the listing. */
const TYPE = 'Q4_K_M';
const PAGES_MAX = 100;
const TRIES_MAX = 4;
const WAIT_MS_MAX = 8000;
const WAIT_MS = 500;

const NAME = /^(?:hf:)?([\w.-]+)\/([\w.-]+?)(?:@([\w.-]+))?(?:\/(.+\.gguf)|:([\w.-]+))?$/i;

/**
 * Returns whether a part of the name would lead to a different location on the hub.
 * @param {string | undefined} part
 */
const isUpward = (part) => part === '.' || part === '..';

/** @param {unknown} name */
export const noHubName = (name) =>
  argumentError(`${name} is not a valid hub name (example: hf:owner/repo/file.gguf)`);

/** @param {unknown} text @returns {HubName | undefined} */
export function parseHubName(text) {
  const found = typeof text === 'string' ? NAME.exec(text) : null;
  if (!found) return undefined;
  const [, owner, repo, revision, path, type] = found;
  if ([owner, repo, revision, ...(path ?? '').split('/')].some(isUpward)) return undefined;
  const isMeant = /^hf:/i.test(String(text)) || type !== undefined; // others are relative URLs
  return isMeant ? { owner, repo, revision, path, type } : undefined;
}

/** The type of a repository's mmproj file. */
const MMPROJ = 'MMPROJ';

/** @param {HubName} name @returns {HubName} its mmproj file, next to the model */
export const mmprojName = ({ owner, repo, revision }) => ({ owner, repo, revision, type: MMPROJ });

/** @param {HubName} name @returns {string} the canonical form of the name */
export function canonicalName({ owner, repo, revision, path, type }) {
  const rest = path === undefined ? `:${(type ?? TYPE).toUpperCase()}` : `/${path}`;
  return `hf:${owner}/${repo}${revision === undefined ? '' : `@${revision}`}${rest}`;
}

/**
 * Returns the files of a model, at the commit to which its revision points now.
 * @param {HubName} name
 * @param {HubOptions & {fetch?: typeof globalThis.fetch, signal?: AbortSignal | null}} options
 * @returns {Promise<{url: string, name: string, size: number, sha256: string | undefined, headers: Record<string, string>}[]>}
 */
export async function resolveHubModel(name, options) {
  const { endpoint = ENDPOINT, token } = options;
  if (!URL.canParse(endpoint)) throw argumentError(`endpoint is not a URL: ${endpoint}`);
  const base = endpoint.replace(/\/+$/, '');
  const headers = /** @type {Record<string, string>} */ (
    token === undefined ? {} : { Authorization: `Bearer ${token}` }
  );
  const ask = { ...options, headers };
  const repo = `${name.owner}/${name.repo}`;
  const commit = name.revision ?? (await commitOf(`${base}/api/models/${repo}`, ask));
  const files = await listFiles(
    base,
    `${base}/api/models/${repo}/tree/${commit}?recursive=true`,
    ask,
  );
  return chooseFiles(files, name).map(({ path, size, sha256 }) => ({
    url: `${base}/${repo}/resolve/${commit}/${path.split('/').map(encodeURIComponent).join('/')}`,
    name: path.split('/').at(-1) ?? path,
    size,
    sha256,
    headers,
  }));
}

/** @param {string} url @param {Parameters<typeof request>[1]} ask @returns {Promise<string>} */
async function commitOf(url, ask) {
  const { sha } = await jsonOf(await request(url, ask), url);
  if (typeof sha === 'string' && /^\w+$/.test(sha)) return sha;
  throw new WickError('HTTP', `${url}: response has no commit`);
}

/**
 * @param {string} base
 * @param {string} first
 * @param {Parameters<typeof request>[1]} ask
 * @returns {Promise<HubFile[]>}
 */
async function listFiles(base, first, ask) {
  /** @type {HubFile[]} */
  const files = [];
  let url = first;
  for (let page = 0; page < PAGES_MAX; page++) {
    const response = await request(url, ask);
    const rows = await jsonOf(response, url);
    if (!Array.isArray(rows)) throw new WickError('HTTP', `${url} is not a file listing`);
    for (const { type, path, size, lfs } of rows) {
      const isModel = type === 'file' && typeof path === 'string' && /\.gguf$/i.test(path);
      if (isModel) files.push({ path, size: lfs?.size ?? size, sha256: lfs?.oid });
    }
    const next = /<([^>]+)>\s*;\s*rel="?next"?/.exec(response.headers.get('Link') ?? '')?.[1];
    if (next === undefined) return files;
    url = new URL(next, url).href;
    // the token is sent only to this host
    if (new URL(url).origin !== new URL(base).origin) break;
  }
  throw new WickError('HTTP', `${first}: file listing has too many pages`);
}

/**
 * @param {HubFile[]} files
 * @param {HubName} name
 * @returns {HubFile[]} all files of a split model
 */
function chooseFiles(files, { owner, repo, path, type }) {
  const isMmproj = type?.toUpperCase() === MMPROJ;
  const models = isMmproj ? files.filter((one) => PROJECTOR.test(one.path)) : modelsAmong(files);
  const chosen =
    path === undefined
      ? fileOfType(models, isMmproj ? undefined : type)
      : files.find((one) => one.path === path);
  if (!chosen) {
    const wanted = path ?? `a GGUF file of type ${type ?? TYPE}`;
    const there = models.map((one) => one.path).slice(0, 20);
    const message = `${owner}/${repo} has no ${wanted}; it has ${there.join(', ') || 'no GGUF file'}`;
    throw new WickError('NOT_FOUND', message, { files: there });
  }
  return splitNames(chosen.path).map((part) => {
    const found = files.find((one) => one.path === part);
    if (found) return found;
    throw new WickError('NOT_FOUND', `${owner}/${repo} has no ${part}, a file of a split model`);
  });
}

/**
 * Files next to a model: projectors and importance matrices. Models quantized with such a matrix
 * have a type in their name.
 */
const PROJECTOR = /(^|[-_./])mmproj/i;
const MATRIX = /(^|[-_./])imatrix/i;
const TYPED = /[-_.](I?Q\d\w*|BF16|F16|F32)[-_.]/i;
/** Draft models, recognized by the names that publishers give them. */
const DRAFTER = /(^|[-_./])(mtp|draft|drafter|eagle\d*)([-_./]|$)/i;

/** @param {HubFile[]} files @returns {HubFile[]} drafters only if the repository has no other model */
function modelsAmong(files) {
  const models = files.filter(
    ({ path }) => !PROJECTOR.test(path) && (!MATRIX.test(path) || TYPED.test(path)),
  );
  const main = models.filter(({ path }) => !DRAFTER.test(path));
  return main.length > 0 ? main : models;
}

/** The preferred types if the name contains none, best first: small files with good quality for their size. */
const PREFERRED = [TYPE, 'Q4_K_S', 'Q4_K_XL', 'Q4_0', 'Q5_K_M', 'Q8_0', 'Q6_K', 'Q4_1', 'IQ4_XS'];
const LARGE = /(^|[-_./])(BF16|F16|F32)([-_./]|$)/i;

/** @param {HubFile[]} files @param {string | undefined} type */
function fileOfType(files, type) {
  const of = (/** @type {string} */ wanted) => {
    const literal = wanted.replace(/[.-]/g, '\\$&');
    const pattern = new RegExp(`(^|[-_./])${literal}([-_./]|$)`, 'i');
    return files.find((one) => pattern.test(one.path));
  };
  if (type !== undefined) return of(type);
  const [best] = PREFERRED.map(of).filter(Boolean);
  return best ?? files.find(({ path }) => !LARGE.test(path)) ?? files[0];
}

/**
 * @param {string} url
 * @param {{headers: Record<string, string>, fetch?: typeof globalThis.fetch, signal?: AbortSignal | null}} options
 * @returns {Promise<Response>} the response, with a successful status
 */
async function request(url, { headers, fetch = globalThis.fetch, signal }) {
  for (let tries = 1; ; tries++) {
    /** @type {Response} */
    let response;
    try {
      response = await fetch(url, { headers, signal });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new WickError(
        'NETWORK',
        `${new URL(url).host} could not be reached: ${wordsOf(error)}`,
        error,
      );
    }
    if (response.ok) return response;
    const isBusy = response.status === 429 || response.status >= 500;
    if (!isBusy || tries === TRIES_MAX) throw await refusalOf(url, response);
    const seconds = Number(response.headers.get('Retry-After')) || 0;
    const waitMs = Math.min(WAIT_MS_MAX, seconds * 1000 || WAIT_MS * tries);
    await new Promise((settle) => setTimeout(settle, waitMs));
    signal?.throwIfAborted();
  }
}

/** @param {Response} response @param {string} url @returns {Promise<any>} */
async function jsonOf(response, url) {
  try {
    return await response.json();
  } catch (error) {
    throw new WickError('HTTP', `${url} is not JSON: ${wordsOf(error)}`, error);
  }
}

/** @param {string} url @param {Response} response */
async function refusalOf(url, { status, headers }) {
  const code = headers.get('X-Error-Code') ?? undefined;
  const words = headers.get('X-Error-Message') ?? `${url} answered ${status}`;
  const cause = { status, code, url };
  if (code === 'GatedRepo') {
    const hint = 'accept its terms on its page, and send a token';
    return new WickError('GATED', `${words}: the model is gated; ${hint}`, cause);
  }
  const isMissing = /^(Repo|Entry|Revision)NotFound$/.test(code ?? '');
  return new WickError(isMissing ? 'NOT_FOUND' : 'HTTP', words, cause);
}
