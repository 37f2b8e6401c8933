// examples/chat/file_type.js — detects the type of a file by its first bytes.

/** @param {Blob} file @param {string} letters ASCII text @returns {Promise<boolean>} false if it cannot be read */
export async function beginsWith(file, letters) {
  const bytes = await file
    .slice(0, letters.length)
    .arrayBuffer()
    .catch(() => []);
  return String.fromCharCode(...new Uint8Array(bytes)) === letters;
}

/** The architecture is near the start of a file's header. */
const HEADER_BYTES = 1 << 16;

/** @param {File} file @returns {Promise<boolean>} whether it has the encoders of a model (an mmproj file) */
export async function isProjector(file) {
  const bytes = new Uint8Array(await file.slice(0, HEADER_BYTES).arrayBuffer());
  const text = new TextDecoder('latin1').decode(bytes);
  return /general\.architecture[\s\S]{12}clip/.test(text);
}

/** @param {File} file @returns {Promise<boolean>} */
export const isModel = async (file) => /\.gguf$/i.test(file.name) || beginsWith(file, 'GGUF');
