// examples/design/tokens.mjs — reads the design system's tokens from its stylesheet, and computes the contrast of colours.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const stylesheet = fileURLToPath(new URL('../shared/look.css', import.meta.url));

/** Text colours and their backgrounds. Each pair has a contrast of at least 4.5 (WCAG 2.2, 1.4.3), light and dark. */
export const pairs = [
  ['text', 'back'],
  ['text', 'panel'],
  ['text', 'mine'],
  ['text', 'code'],
  ['soft', 'back'],
  ['soft', 'panel'],
  ['soft', 'mine'],
  ['accent', 'back'],
  ['accent', 'panel'],
  ['accent-text', 'accent'],
  ['bad', 'bad-back'],
];

/**
 * @param {string} css
 * @param {RegExp} selector of the rule's start
 * @returns {[string, string][]} pairs of a name, without `--`, and a value
 */
function propertiesOf(css, selector) {
  const start = css.search(selector);
  if (start < 0) throw new Error(`look.css has no rule ${selector}`);
  const rule = css.slice(start, css.indexOf('}', start));
  return [...rule.matchAll(/--([\w-]+): ([^;]+);/g)].map(([, name, value]) => [name, value]);
}

/** Reads the scales (`text-small`, `space-1` ...) and the colours of both themes. */
export function readTokens() {
  const css = readFileSync(stylesheet, 'utf8');
  return {
    scales: propertiesOf(css, /^:root \{\n {2}--/m),
    light: Object.fromEntries(propertiesOf(css, /^:root,\n\[data-theme="light"\] \{/m)),
    dark: Object.fromEntries(propertiesOf(css, /^\[data-theme="dark"\] \{/m)),
    system: Object.fromEntries(propertiesOf(css, /:root:not\(\[data-theme="light"\]\) \{/)),
  };
}

/** @param {string} colour as #rrggbb @returns {number} relative luminance, 0 to 1 (WCAG 2.2) */
function luminance(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** @param {string} one @param {string} other @returns {number} their contrast, from 1 to 21 */
export function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}
