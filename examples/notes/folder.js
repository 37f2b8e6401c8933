// examples/notes/folder.js — lists the notes in a folder from any browser source: a handle, a file list, or a drop. Only names,
// sizes and dates are read here.

/** @typedef {{path: string, file: () => Promise<File>}} Found */
/**
 * @typedef {{name: string, found: Found[], isCut: boolean}} Listing `isCut`: whether there are more
 * files than listed
 */

const FILES_MAX = 50_000;
const DEPTH_MAX = 32;
const NOTE = /\.(md|markdown|mdown|txt)$/i;

/** Returns whether a folder belongs to a program. @param {string} name */
const isHidden = (name) => name.startsWith('.') || name === 'node_modules';

/** @param {FileSystemDirectoryHandle} handle @returns {Promise<Listing>} */
export async function listHandle(handle) {
  /** @type {Found[]} */
  const found = [];
  /** @type {{handle: any, path: string, depth: number}[]} */
  const waiting = [{ handle, path: '', depth: 0 }];
  let isCut = false;
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    for await (const [name, entry] of next.handle.entries()) {
      if (isHidden(name)) continue;
      const path = next.path + name;
      if (entry.kind === 'file' && NOTE.test(name))
        found.push({ path, file: () => entry.getFile() });
      if (entry.kind !== 'directory') continue;
      if (next.depth < DEPTH_MAX)
        waiting.push({ handle: entry, path: `${path}/`, depth: next.depth + 1 });
      else isCut = true;
    }
    if (found.length > FILES_MAX)
      return { name: handle.name, found: found.slice(0, FILES_MAX), isCut: true };
  }
  return { name: handle.name, found, isCut };
}

/** @param {FileList} files of <input webkitdirectory> @returns {Listing} */
export function listFiles(files) {
  const all = [...files];
  const name = all[0]?.webkitRelativePath.split('/')[0] || 'notes';
  const notes = all
    .map((file) => {
      const parts = file.webkitRelativePath.split('/').slice(1);
      return { parts: parts.length > 0 ? parts : [file.name], file };
    })
    .filter(({ parts }) => NOTE.test(parts.at(-1) ?? '') && !parts.some(isHidden));
  const found = notes
    .slice(0, FILES_MAX)
    .map(({ parts, file }) => ({ path: parts.join('/'), file: async () => file }));
  return { name, found, isCut: notes.length > FILES_MAX };
}

/** @param {Record<string, string>} texts by path @param {string} name @returns {Listing} */
export function listTexts(texts, name) {
  const found = Object.entries(texts).map(([path, text]) => {
    const file = new File([text], path, { lastModified: 0 });
    return { path, file: async () => file };
  });
  return { name, found, isCut: false };
}

/** @param {any} reader of a FileSystemDirectoryEntry @returns {Promise<any[]>} */
async function readEntries(reader) {
  const all = [];
  while (all.length <= FILES_MAX) {
    /** @type {any[]} */
    const some = await new Promise((settle, fail) => reader.readEntries(settle, fail));
    if (some.length === 0) break;
    all.push(...some);
  }
  return all;
}

/** @param {any} directory a FileSystemDirectoryEntry that was dropped @returns {Promise<Listing>} */
export async function listDropped(directory) {
  /** @type {Found[]} */
  const found = [];
  const waiting = [{ entry: directory, path: '', depth: 0 }];
  let isCut = false;
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    for (const entry of await readEntries(next.entry.createReader())) {
      if (isHidden(entry.name)) continue;
      const path = next.path + entry.name;
      if (entry.isFile && NOTE.test(entry.name))
        found.push({ path, file: () => new Promise((settle, fail) => entry.file(settle, fail)) });
      if (!entry.isDirectory) continue;
      if (next.depth < DEPTH_MAX) waiting.push({ entry, path: `${path}/`, depth: next.depth + 1 });
      else isCut = true;
    }
    if (found.length > FILES_MAX)
      return { name: directory.name, found: found.slice(0, FILES_MAX), isCut: true };
  }
  return { name: directory.name, found, isCut };
}
