// Provides the text on which real models are measured: half of it is a licence, half is Python source.

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { root } from '../../tests/support/locate.mjs';

/** Needs `tools/setup.sh smollm2`. @param {number} bytes up to 20,000 @returns {string} */
export function measuredText(bytes) {
  const sources = ['.toolchain/models/apache-2.0.txt', 'tools/text/reference.py'];
  return sources
    .map((path) => readFileSync(resolve(root, path), 'utf8').slice(0, bytes / 2))
    .join('\n');
}
