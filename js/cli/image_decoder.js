// js/cli/image_decoder.js — decodes the images of `wick serve` in Node, which has no decoder, with the
// package sharp if the user has installed it.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';

/** @returns {Promise<any>} sharp from the current folder or next to this package, or undefined */
async function findSharp() {
  for (const from of [join(process.cwd(), 'package.json'), import.meta.url]) {
    try {
      const path = createRequire(from).resolve('sharp');
      return (await import(pathToFileURL(path).href)).default;
    } catch {
      // not installed there
    }
  }
  return undefined;
}

/** @returns {Promise<{decodeImage?: import('../index.js').DecodeImage}>} an option of createEngine */
export async function imageDecoder() {
  if (typeof globalThis.createImageBitmap === 'function') return {};
  const sharp = await findSharp();
  if (!sharp) {
    return {
      decodeImage() {
        throw new Error('images of this type need sharp: npm install sharp');
      },
    };
  }
  return {
    async decodeImage(blob) {
      const turned = sharp(Buffer.from(await blob.arrayBuffer())).rotate(); // as its EXIF data says
      const pixels = turned.toColourspace('srgb').ensureAlpha().raw({ depth: 'uchar' });
      const { data, info } = await pixels.toBuffer({ resolveWithObject: true });
      return { width: info.width, height: info.height, data };
    },
  };
}
