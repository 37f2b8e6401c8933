// js/base/own_files.js — the URLs of the package's own files.

import { WickError } from './errors.js';

/**
 * Returns the URL of one of the package's files. In Node, the files must be on disk. Server bundles of Next and other
 * frameworks give them URLs on the site instead.
 * @param {() => URL} address
 * @returns {URL}
 */
export function ownFile(address) {
  let url;
  try {
    url = address();
  } catch (error) {
    throw movedFile(String(error), error);
  }
  const isNode = typeof Worker !== 'function' && globalThis.process?.versions?.node !== undefined;
  if (isNode && url.protocol !== 'file:') throw movedFile(String(url));
  return url;
}

/** @param {string} found @param {unknown} [cause] */
const movedFile = (found, cause) =>
  new WickError(
    'UNSUPPORTED',
    `the package's files are not on disk: a bundler moved them (${found}). Keep wick-llm out of the server's bundle ` +
      "(Next: serverExternalPackages: ['wick-llm']), or pass worker and wasm to createEngine",
    cause,
  );
