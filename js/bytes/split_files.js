// js/bytes/split_files.js — the files of a split model, such as model-00001-of-00003.gguf.

import { WickError } from '../base/errors.js';

const SPLIT_NAME = /-(\d{5})-of-(\d{5})(\.gguf)/i;

/**
 * Returns the names of all files of a split model, given the name of any one of them. For other models,
 * returns only that name.
 * @param {string} name a path or a URL
 * @returns {string[]}
 */
export function splitNames(name) {
  const found = SPLIT_NAME.exec(name);
  const count = Number(found?.[2] ?? 1);
  if (!found || count < 1) return [name];
  return Array.from({ length: count }, (_, index) => {
    const number = String(index + 1).padStart(5, '0');
    return name.replace(SPLIT_NAME, `-${number}-of-$2$3`);
  });
}

/** @param {number} file @param {number} files */
export function fileIsMissing(file, files) {
  return new WickError(
    'ARG',
    `The model is split: file ${file + 1} is needed, but only ${files} given. Pass all of them, or one ` +
      'whose name ends in -00001-of-00003.gguf or similar',
  );
}

/** @param {string[]} names @param {number} file */
export function nameOfFile(names, file) {
  if (file >= names.length) throw fileIsMissing(file, names.length);
  return names[file];
}
