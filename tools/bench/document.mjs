// Reads and writes docs/benchmarks.md. Each command has a section there, between two markers, and
// rewrites only that section.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { root } from '../../tests/support/locate.mjs';

export const benchmarksFile = resolve(root, 'docs/benchmarks.md');

/**
 * @param {string} document
 * @param {string} name
 * @param {string} text Markdown
 * @returns {string} the document with this section replaced, or added at the end
 */
export function withSection(document, name, text) {
  const begin = `<!-- ${name}: begin -->`;
  const end = `<!-- ${name}: end -->`;
  const section = `${begin}\n${text.trim()}\n${end}`;
  const from = document.indexOf(begin);
  const to = document.indexOf(end);
  if (from < 0 || to < from) return `${document.trimEnd()}\n\n${section}\n`;
  return document.slice(0, from) + section + document.slice(to + end.length);
}

/** @param {string} name @returns {string} the section of docs/benchmarks.md, without its markers */
export function readSection(name) {
  const [, after = ''] = readFileSync(benchmarksFile, 'utf8').split(`<!-- ${name}: begin -->\n`);
  return after.slice(0, Math.max(0, after.indexOf(`<!-- ${name}: end -->`)));
}

/** @param {string} name @param {string} text */
export function writeSection(name, text) {
  const before = existsSync(benchmarksFile)
    ? readFileSync(benchmarksFile, 'utf8')
    : '# Benchmarks\n';
  writeFileSync(benchmarksFile, withSection(before, name, text));
}

/** @param {ReturnType<typeof import('./environment.mjs').describeEnvironment>} environment */
export function environmentLine(environment) {
  const { cores, node, commit, date, load_average } = environment;
  const cpu = environment.cpu.replace(/\((R|TM)\)|\b(Processor|CPU)\b|@/g, '').replace(/\s+/g, ' ');
  return `${cpu.trim()}, ${cores} cores, Node ${node}, commit ${commit}, ${date.slice(0, 10)}, load ${load_average}`;
}
