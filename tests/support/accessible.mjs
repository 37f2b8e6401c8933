// The findings of axe-core in a page against WCAG 2.1 A and AA, by day and by night: a part of
// `make test-all`.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isFull } from './level.mjs';

/** @typedef {import('playwright-core').Page} Page */

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** WCAG 2.1, levels A and AA. */
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'];

/** @param {Page} page @returns {Promise<string[]>} the faults, and their places */
export async function violations(page) {
  if (!isFull) return [];
  // colours fade in: what counts is how they end
  await page.evaluate(`for (const one of document.getAnimations())
    if (one.effect.getComputedTiming().endTime < Infinity) one.finish()`);
  await page.evaluate(axe);
  const { violations: found, passes } = /** @type {any} */ (
    await page.evaluate(`axe.run(document, ${JSON.stringify({ runOnly: tags })})`)
  );
  assert.ok(passes.length > 10, 'the rules were applied');
  return found.flatMap((/** @type {any} */ { id, nodes }) =>
    nodes.map((/** @type {any} */ one) => `${id}: ${one.html} ${one.failureSummary}`),
  );
}

/** @param {Page} page */
export async function assertAccessible(page) {
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page), [], colorScheme);
  }
}

/** Runs in a page of any browser: the findings in both colour schemes. */
export const findViolations = `
  const problems = [];
  if (!globalThis.axe) { ${axe} }
  const root = document.documentElement;
  for (const theme of ['light', 'dark']) {
    root.dataset.theme = theme;
    for (const motion of document.getAnimations())
      if (motion.effect.getComputedTiming().endTime < Infinity) motion.finish();
    const { violations, passes } = await globalThis.axe.run(document,
      { runOnly: ${JSON.stringify(tags)} });
    if (passes.length < 10) problems.push('few rules');
    for (const { id, nodes } of violations) problems.push(...nodes.map(({ html }) => theme + ' ' + id + ': ' + html));
  }
  return problems;`;
