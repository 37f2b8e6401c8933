// Checks pages with axe-core against WCAG 2.1 A and AA, in the light and the dark theme. Only
// `make test-all` runs these checks.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isFull } from './level.mjs';

/** @typedef {import('playwright-core').Page} Page */

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** WCAG 2.1, levels A and AA. */
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'];

/**
 * The rules that compare colours. All others have the same results in both themes, and take most of
 * the time.
 */
const colourRules = ['color-contrast', 'link-in-text-block'];

/**
 * Returns an expression to evaluate in a page: the number of passed rules, and violations with their
 * elements. Animations are finished first, because colours fade in. Details of passed rules are omitted because
 * they take as long as the rules.
 * @param {string[]} [rules] default: all
 */
const auditBy = (rules) => `(async () => {
  for (const motion of document.getAnimations())
    if (motion.effect.getComputedTiming().endTime < Infinity) motion.finish();
  const { violations, passes } = await globalThis.axe.run(document, {
    runOnly: ${JSON.stringify(rules ? { type: 'rule', values: rules } : tags)},
    resultTypes: ['violations'],
  });
  const problems = violations.flatMap(({ id, nodes }) =>
    nodes.map((one) => id + ': ' + one.html + ' ' + one.failureSummary));
  return { passed: passes.length, problems };
})()`;

const isLoaded = 'globalThis.axe !== undefined';

/** @param {Page} page @param {string[]} [rules] default: all @returns {Promise<string[]>} violations with their elements */
async function audit(page, rules) {
  if (!(await page.evaluate(isLoaded))) await page.evaluate(axe);
  const { passed, problems } = /** @type {any} */ (await page.evaluate(auditBy(rules)));
  assert.ok(passed > (rules ? 0 : 10), 'the rules must be applied');
  return problems;
}

/**
 * @param {Page} page
 * @param {'light' | 'dark'} [colorScheme] the page's theme; in the dark theme only colours are
 * checked
 * @returns {Promise<string[]>} violations with their elements
 */
export const violations = async (page, colorScheme = 'light') =>
  isFull ? audit(page, colorScheme === 'dark' ? colourRules : undefined) : [];

/** Checks both themes. @param {Page} page */
export async function assertAccessible(page) {
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page, colorScheme), [], colorScheme);
  }
}

/** Runs in a page of any browser and returns the violations in both colour schemes. */
export const findViolations = `
  if (!(${isLoaded})) { ${axe} }
  const root = document.documentElement;
  root.dataset.theme = 'light';
  const light = await ${auditBy()};
  root.dataset.theme = 'dark';
  const dark = await ${auditBy(colourRules)};
  return [...light.problems, ...dark.problems.map((one) => 'dark ' + one),
    ...(light.passed > 10 && dark.passed > 0 ? [] : ['few rules'])];`;
