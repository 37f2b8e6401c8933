// Describes where and when figures were measured.

import { execFileSync } from 'node:child_process';
import { cpus, loadavg, release } from 'node:os';
import { root } from '../../tests/support/locate.mjs';

/** @returns {string} */
function commit() {
  const git = (/** @type {string[]} */ ...words) =>
    execFileSync('git', words, { cwd: root, encoding: 'utf8' }).trim();
  try {
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--short', 'src') ? '+' : '');
  } catch {
    return 'unknown'; // not a clone
  }
}

export function describeEnvironment() {
  return {
    cpu: cpus()[0].model.trim(),
    cores: cpus().length,
    system: `Linux ${release()}`,
    node: process.version,
    commit: commit(),
    date: new Date().toISOString(),
    load_average: Number(loadavg()[0].toFixed(2)),
  };
}
