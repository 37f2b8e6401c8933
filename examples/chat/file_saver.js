// examples/chat/file_saver.js — saves a file for the user: as a download, or through the system's share sheet on hosts without downloads.

import { showNotice } from './notice.js';

/**
 * @param {string} title
 * @param {string} [none] the name if the title has no letters
 * @returns {string} a name that file systems accept
 */
export const fileNameOf = (title, none = 'conversation') =>
  title
    .replace(/[^\p{L}\p{N} ._-]+/gu, '')
    .trim()
    .slice(0, 60) || none;

/** @param {File} file @returns {Promise<void>} */
const share = (file) =>
  navigator.share({ files: [file] }).catch(({ name }) => {
    // the file was prepared too long after the click; any other error means that the user has
    // cancelled
    if (name === 'NotAllowedError')
      showNotice(`${file.name} is ready.`, () => share(file), 'Save it');
  });

/**
 * Saves a file for the user. An iPhone's home-screen application has no downloads, so there the
 * file is shared.
 * @param {string} name
 * @param {string | Blob} content
 * @param {string} [type]
 */
export async function saveFile(name, content, type) {
  const file = new File([content], name, { type });
  const isStandalone = /** @type {{standalone?: boolean}} */ (navigator).standalone === true;
  if (isStandalone && navigator.canShare?.({ files: [file] })) return share(file);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** @param {string} title @param {'json' | 'md'} kind @param {string} text of conversations */
export const save = (title, kind, text) =>
  saveFile(
    `${fileNameOf(title)}.${kind}`,
    text,
    kind === 'json' ? 'application/json' : 'text/markdown',
  );
