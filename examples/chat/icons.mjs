// examples/chat/icons.mjs — makes the PNG icons of the installed page from icon.svg. A maskable icon
// has a background, and its drawing is inside the circle that is always visible.

import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { initWasm, Resvg } from '@resvg/resvg-wasm';

const here = dirname(fileURLToPath(import.meta.url));

const SIZES = [192, 512];
const BACKGROUND = '#23211d';
/** The drawing's share of the width. The visible circle has 80% of it and contains the drawing's corners. */
const DRAWN = 0.64;

/** @type {Promise<void> | undefined} */
let ready;

/** @returns {Promise<void>} settles when icons can be drawn */
function prepare() {
  const require = createRequire(import.meta.url);
  ready ??= initWasm(readFileSync(require.resolve('@resvg/resvg-wasm/index_bg.wasm')));
  return ready;
}

/** @param {string} svg with a view box of 32 by 32 */
function maskable(svg) {
  const margin = (32 * (1 - DRAWN)) / 2;
  const drawing = svg.replace(/^<svg[^>]*>/, '').replace(/<\/svg>\s*$/, '');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" fill="${BACKGROUND}"/>
    <g transform="translate(${margin} ${margin}) scale(${DRAWN})">${drawing}</g></svg>`;
}

/** @param {string} svg @param {number} width */
const draw = (svg, width) =>
  new Resvg(svg, { fitTo: { mode: 'width', value: width } }).render().asPng();

/** @param {string} folder of the page @returns {Promise<string[]>} the files' names */
export async function writeIcons(folder) {
  await prepare();
  const svg = readFileSync(resolve(here, 'icon.svg'), 'utf8');
  const kinds = { icon: svg, 'icon-maskable': maskable(svg) };
  const names = [];
  for (const [kind, drawing] of Object.entries(kinds)) {
    for (const size of SIZES) {
      const name = `${kind}-${size}.png`;
      writeFileSync(resolve(folder, name), draw(drawing, size));
      names.push(name);
    }
  }
  return names;
}
