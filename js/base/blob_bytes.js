// js/base/blob_bytes.js — reads the bytes of a Blob.

/** @param {Blob} blob @returns {Promise<ArrayBuffer>} */
export function bytesOfBlob(blob) {
  if (typeof blob.arrayBuffer === 'function') return blob.arrayBuffer();
  // jsdom's Blob has no arrayBuffer
  const reader = new FileReader();
  return new Promise((settle, fail) => {
    reader.onload = () => settle(/** @type {ArrayBuffer} */ (reader.result));
    reader.onerror = () => fail(reader.error);
    reader.readAsArrayBuffer(blob);
  });
}
