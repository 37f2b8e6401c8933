// Takes screenshots of the pages for visual review, in `make test-all`.

import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { isFull } from './level.mjs';
import { root } from './locate.mjs';

const folder = resolve(root, 'build/screenshots');

/**
 * @param {{screenshot: (options?: any) => Promise<Uint8Array>}} page
 * @param {string} name the file name without its extension
 * @param {import('playwright-core').PageScreenshotOptions} [options]
 */
export async function takePicture(page, name, options) {
  if (!isFull) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(resolve(folder, `${name}.png`), await page.screenshot(options));
}
