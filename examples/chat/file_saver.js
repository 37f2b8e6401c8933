// examples/chat/file_saver.js — gives the user a file: as a download, or with the system's share sheet if there are no downloads.

import { showNotice } from './notice.js';

/** @param {string} title @returns {string} that file systems take */
const fileNameOf = (title) =>
  title
    .replace(/[^\p{L}\p{N} ._-]+/gu, '')
    .trim()
    .slice(0, 60) || 'conversation';

/** @param {File} file @returns {Promise<void>} */
const share = (file) =>
  navigator.share({ files: [file] }).catch(({ name }) => {
    // preparing it took too long after the click; any other error is the user's change of mind
    if (name === 'NotAllowedError')
      showNotice(`${file.name} is ready.`, () => share(file), 'Save it');
  });

/**
 * Gives the user a file. An iPhone's home-screen application has no downloads: there it is shared.
 * @param {string} title @param {'json' | 'md'} kind @param {string} text
 */
export async function save(title, kind, text) {
  const type = kind === 'json' ? 'application/json' : 'text/markdown';
  const file = new File([text], `${fileNameOf(title)}.${kind}`, { type });
  const isStandalone = /** @type {{standalone?: boolean}} */ (navigator).standalone === true;
  if (isStandalone && navigator.canShare?.({ files: [file] })) return share(file);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = file.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
