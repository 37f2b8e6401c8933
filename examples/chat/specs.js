// examples/chat/specs.js — parses a model name that a user types or pastes: a URL, a page on the hub,
// a repository, a file in one, or words to search for.

import { decoded, parseUrl } from './hub.js';

/**
 * @typedef {{kind: 'search', text: string} | {kind: 'repository', name: string, revision: string, type?: string} |
 *   {kind: 'file', url: string} | {kind: 'none', why?: string}} Spec
 */

const REPOSITORY = /^(?:hf:)?([\w.-]+\/[\w.-]+?)(?:@([\w.-]+))?(?:\/(.+\.gguf)|:([\w.-]+))?\/?$/i;
/** The path of a page on the hub: repository, kind of page, revision, path. */
const PAGE = /^\/([\w.-]+\/[\w.-]+)(?:\/(tree|blob|resolve|raw)\/([^/]+)(?:\/(.*))?)?\/?$/;

/** Matches URLs with schemes other than http and https. */
const OTHER_SCHEME = /^(?!https?:)(?:[a-z][a-z\d+.-]*:\/\/|(?:about|blob|data|file|javascript):)/i;

/** @param {string} path */
const encoded = (path) => path.split('/').map(encodeURIComponent).join('/');

/** @param {URL} url of the hub @param {string} hub @returns {Spec} */
function ofPage(url, hub) {
  const found = PAGE.exec(decoded(url.pathname));
  if (!found) return { kind: 'file', url: url.href };
  const [, name, , revision = 'main', path = ''] = found;
  if (!/\.gguf$/i.test(path)) return { kind: 'repository', name, revision };
  return { kind: 'file', url: `${hub}/${name}/resolve/${revision}/${encoded(path)}` };
}

/**
 * @param {string} typed
 * @param {string} hub its URL, without a trailing slash
 * @param {string} [base] for relative URLs such as `models/own.gguf`
 * @returns {Spec}
 */
export function specOf(typed, hub, base) {
  const text = typed.trim();
  if (text === '') return { kind: 'none' };
  if (OTHER_SCHEME.test(text)) return { kind: 'none', why: 'The URL must begin with https://.' };
  if (/^https?:\/\//i.test(text)) {
    const url = parseUrl(text);
    if (!url) return { kind: 'none' };
    if (url.username || url.password)
      return { kind: 'none', why: 'The URL must not contain a user name or a password.' };
    return url.origin === new URL(hub).origin ? ofPage(url, hub) : { kind: 'file', url: url.href };
  }
  if (/^[\w-]+(\.[\w-]+)+\//.test(text)) {
    const url = parseUrl(`https://${text}`);
    if (url?.host === new URL(hub).host) return ofPage(url, hub);
  }
  const found = REPOSITORY.exec(text);
  if (found && !/\.gguf$/i.test(found[1])) {
    const [, name, revision = 'main', path, type] = found;
    if (path) return { kind: 'file', url: `${hub}/${name}/resolve/${revision}/${encoded(path)}` };
    return { kind: 'repository', name, revision, ...(type && { type }) };
  }
  const isPath = /^(\.{0,2}\/|[^\s]*\.gguf$)/i.test(text) && base !== undefined;
  const file = isPath ? parseUrl(text, base) : undefined;
  if (file) return { kind: 'file', url: file.href };
  return { kind: 'search', text };
}
