// Builds the example pages that take a long time to build, once for all test files of a run. The
// runner sets WICK_PAGES to their folder (browser_server.mjs). A test file that is run alone builds
// its own.

import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { root } from './locate.mjs';
import { waitUntil } from './package.mjs';

/** @type {Record<string, (folder: string) => Promise<unknown>>} */
const builders = {
  chat: async (folder) => (await import('../../examples/chat/build.mjs')).buildChat(folder),
  site: async (folder) => (await import('../../examples/site/build.mjs')).buildSite(folder),
};

/** @returns {string} a folder in build/ that is removed when this process exits */
export function makePagesFolder() {
  mkdirSync(resolve(root, 'build'), { recursive: true });
  const folder = mkdtempSync(resolve(root, 'build/pages-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** @type {string | undefined} */
let ownFolder;

/** Returns whether this process must build the page. @param {string} lock a folder */
function take(lock) {
  try {
    mkdirSync(lock);
    return true;
  } catch {
    return false;
  }
}

/**
 * Builds a page in one of the processes that need it.
 * @param {string} name
 * @param {string} folder
 */
async function buildOnce(name, folder) {
  const lock = `${folder}.building`;
  await waitUntil(() => existsSync(folder) || take(lock), `${folder} to be built`);
  if (existsSync(folder)) return;
  try {
    await builders[name](join(lock, name));
    renameSync(join(lock, name), folder);
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

/** @param {'chat' | 'site'} name @returns {Promise<string>} its folder, which must not be changed */
export async function builtPage(name) {
  ownFolder ??= process.env.WICK_PAGES ?? makePagesFolder();
  const folder = join(ownFolder, name);
  await buildOnce(name, folder);
  return folder;
}

/** Copies the chat page to a folder that a test may change. @param {string} folder */
export async function copyChat(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  cpSync(await builtPage('chat'), folder, { recursive: true });
}
