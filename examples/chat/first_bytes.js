// examples/chat/first_bytes.js — what a file is by its first bytes.

/** @param {File} file @param {string} letters of ASCII @returns {Promise<boolean>} */
export async function beginsWith(file, letters) {
  const start = new Uint8Array(await file.slice(0, letters.length).arrayBuffer());
  return String.fromCharCode(...start) === letters;
}

/** @param {File} file @returns {Promise<boolean>} */
export const isModel = async (file) => /\.gguf$/i.test(file.name) || beginsWith(file, 'GGUF');
