// Creates PNG files from pixels.

import { deflateSync } from 'node:zlib';

/** @param {string} name @param {Buffer} bytes */
function chunk(name, bytes) {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(bytes.length);
  head.write(name, 4);
  let crc = 0xffffffff;
  for (const byte of [...head.subarray(4), ...bytes]) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  const tail = Buffer.alloc(4);
  tail.writeUInt32BE((crc ^ 0xffffffff) >>> 0);
  return Buffer.concat([head, bytes, tail]);
}

/**
 * @param {{width: number, height: number, bits: number, colour: number}} head colour type: 0 grey, 2 RGB
 * @param {Buffer} rows each row starts with its filter byte
 * @returns {Buffer}
 */
export function pngOfRows({ width, height, bits, colour }, rows) {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width);
  head.writeUInt32BE(height, 4);
  head.set([bits, colour, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10]),
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** @param {{width: number, height: number, data: Uint8Array}} pixels three bytes per pixel @returns {Buffer} */
export function pngOf({ width, height, data }) {
  const rows = Buffer.alloc(height * (width * 3 + 1));
  for (let y = 0; y < height; y++) {
    rows.set(data.subarray(y * width * 3, (y + 1) * width * 3), y * (width * 3 + 1) + 1);
  }
  return pngOfRows({ width, height, bits: 8, colour: 2 }, rows);
}
