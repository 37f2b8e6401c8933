// js/bytes/checked_read.js — reads a stream and checks the position of the bytes that arrive.

import { WickError } from '../base/errors.js';

/** @import { ByteStream } from './model_sources.js' */

/**
 * Returns the next bytes of a stream. Throws if they do not follow the previous bytes, so a model is never
 * fed bytes from the wrong position.
 * @param {ByteStream} stream
 * @returns {Promise<Uint8Array | null>}
 */
export async function readNext(stream) {
  const expected = stream.position;
  const bytes = await stream.read();
  const start = stream.position - (bytes?.byteLength ?? 0);
  if (start === expected) return bytes;
  throw new WickError('IO', `source: returned bytes from ${start} instead of ${expected}`);
}

/** @param {ByteStream} stream that was opened for `offset` @param {number} offset */
export function checkStart({ position }, offset) {
  if (position <= offset) return;
  throw new WickError(
    'IO',
    `source: begins at byte ${position}, after the requested byte ${offset}`,
  );
}
