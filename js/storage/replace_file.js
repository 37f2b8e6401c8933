// js/storage/replace_file.js — replaces a file on disk atomically: its bytes are written to another
// file, which is then renamed. If a process ends before that, the next one removes its leftover
// file.

/** @typedef {typeof import('node:fs').promises} Files */

/**
 * After this time without a write, a file of an unknown process counts as abandoned, because an
 * active writer writes more often.
 */
const ABANDONED_MS = 3_600_000;
/** The suffix of a file name: a process id and a random name or, in earlier versions, only the random name. */
const UNFINISHED = /^\.(?:(\d+)-)?[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\.tmp$/;

/** @param {number} pid @returns {boolean} */
export function isRunning(pid) {
  try {
    globalThis.process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {any} */ (error)?.code === 'EPERM';
  }
}

/**
 * @param {Files} files
 * @param {string} name
 * @param {string | Uint8Array} content
 * @param {{flush?: boolean}} [options]
 */
export async function replaceFile(files, name, content, options = {}) {
  const unfinished = `${name}.${globalThis.process.pid}-${crypto.randomUUID()}.tmp`;
  try {
    await files.writeFile(unfinished, content, options);
    await files.rename(unfinished, name);
  } finally {
    await files.rm(unfinished, { force: true });
  }
  await removeUnfinished(files, name).catch(() => {}); // the next save tries again
}

/**
 * Removes files of processes that have ended. Files that are still being written are kept.
 * @param {Files} files
 * @param {string} name
 */
async function removeUnfinished(files, name) {
  const path = globalThis.process.getBuiltinModule('node:path');
  const [folder, base] = [path.dirname(name), path.basename(name)];
  for (const one of await files.readdir(folder)) {
    const found = one.startsWith(base) ? UNFINISHED.exec(one.slice(base.length)) : null;
    if (!found) continue;
    const left = path.join(folder, one);
    const { mtimeMs } = await files.stat(left);
    const isEnded = found[1] !== undefined && !isRunning(Number(found[1]));
    if (isEnded || Date.now() - mtimeMs > ABANDONED_MS) await files.rm(left, { force: true });
  }
}
