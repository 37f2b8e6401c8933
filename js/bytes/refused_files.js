// js/bytes/refused_files.js — detects HTML error pages, Git LFS pointers and similar files in place
// of a model by their first bytes.

import { WickError } from '../base/errors.js';

/** @param {Uint8Array} bytes the first bytes of a file; throws if it is a web page or a Git LFS pointer */
export function refuseOthers(bytes) {
  const start = new TextDecoder().decode(bytes.slice(0, 64));
  if (/^\s*<(!doctype|html|head|body|\?xml)/i.test(start)) {
    throw new WickError('NOT_GGUF', 'file: a web page, not a GGUF file');
  }
  if (start.startsWith('version https://git-lfs.github.com/spec/')) {
    throw new WickError(
      'NOT_GGUF',
      'This is a Git LFS pointer, not the model: it only describes where the model is stored. Fetch the model ' +
        'itself (git lfs pull), or use the URL of the download',
    );
  }
}
