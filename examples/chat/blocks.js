// examples/chat/blocks.js — formats a file's text as a Markdown block with the file's name.

export const TEXT_BYTES_MAX = 1e6;

/** @param {Blob} file @returns {Promise<string | undefined>} undefined if it is not text, or too long for any model */
export async function textOf(file) {
  if (file.size > TEXT_BYTES_MAX) return undefined;
  const bytes = await file.arrayBuffer();
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined; // bytes that are not UTF-8
  }
}

/** @param {string} text @returns {string} a fence for a block, which the text does not contain */
export function fenceFor(text) {
  let ticks = 3; // a text may have more runs than a call may have arguments
  for (const { length } of text.match(/`{3,}/g) ?? []) ticks = Math.max(ticks, length + 1);
  return '`'.repeat(ticks);
}

/** @param {string} name @param {string} text @returns {string} a block with the name of a file above it */
export function asBlock(name, text) {
  const fence = fenceFor(text);
  const kind = /\.(\w{1,10})$/.exec(name)?.[1] ?? '';
  return `${name.replaceAll(/[\r\n]/g, ' ')}:\n${fence}${kind}\n${text.replace(/\n?$/, '\n')}${fence}`;
}
