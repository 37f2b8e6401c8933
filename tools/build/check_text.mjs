// Checks that no file in the repository contains a package registry's URL (lock files included) or an absolute path of a
// machine, that the first line of every C or JavaScript source describes its purpose, and that
// text follows the rules in writing_rules.mjs: documents, comments, errors, help, test titles,
// and strings in JavaScript.
//   node tools/build/check_text.mjs --counts prints the number of violations of each rule, by
//   folder

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { commentsOf, sentencesOf } from './comments.mjs';
import {
  errorsOf,
  helpOf,
  isVerbPhrase,
  literalsOf,
  namelessSentences,
  namesSubject,
  proseOf,
  titlesOf,
  wordRules,
} from './writing_rules.mjs';

/** @typedef {import('./comments.mjs').Found} Found */

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

// Written in two halves, so that this file passes its own check.
const registries = ['registry.' + 'npmjs', 'registry.' + 'yarnpkg', 'files.' + 'pythonhosted'];
registries.push('pypi' + '.org', 'static.' + 'crates', 'proxy.' + 'golang', 'deb.' + 'debian.org');
const machinePaths = /(^|[\s"'`(=:])(\/home\/|\/root\/|\/Users\/|\/wo[r]k\/|\/tmp\/[a-z])/;

const listed = execFileSync('git', ['ls-files', '-z', '--cached'], { cwd: root, encoding: 'utf8' });
const files = listed.split('\0').filter((file) => file && existsSync(join(root, file)));

/** @param {string} file @param {string[]} lines @returns {string[]} */
function faultsOf(file, lines) {
  const found = [];
  const isSource = /\.(c|h|m?js)$/.test(file);
  for (const [index, line] of lines.entries()) {
    const at = `${file}:${index + 1}`;
    const host = registries.find((name) => line.includes(name));
    if (host) found.push(`${at}: contains the registry host ${host}`);
    if (machinePaths.test(line)) found.push(`${at}: contains an absolute path of a machine`);
  }
  const first = lines[0].startsWith('#!') ? lines[1] : lines[0];
  if (isSource && !/^(\/\/|\/\*)/.test(first ?? '')) {
    found.push(`${file}:1: the first line does not describe the file's purpose`);
  }
  return found;
}

/**
 * Files whose errors must begin with their subject. The `wick` command prints `wick: ` before a
 * message.
 */
const withSubjects = /^js\/(?!cli|page\/request_options)|^js\/cli\/model_names\.js/;

/** @param {string} file @param {string} text @returns {Record<'texts' | 'strings' | 'messages' | 'help', Found[]>} the prose in it, by kind */
function readableOf(file, text) {
  if (file.endsWith('.md')) return { texts: proseOf(text), strings: [], messages: [], help: [] };
  const isScript = /^(?:js|examples)\/.*\.m?js$/.test(file);
  const messages = isScript ? errorsOf(text) : [];
  const help = isScript ? helpOf(text) : [];
  const literals = /\.[ch]$/.test(file) && !file.startsWith('tests/') ? sentencesOf(text) : [];
  const isRuleFile = /writing(?:_rules|\.test)\.mjs$/.test(file);
  const strings = /\.m?js$/.test(file) && !isRuleFile ? literalsOf(text) : [];
  const titles = /^tests\/.*\.mjs$/.test(file) ? titlesOf(text) : [];
  const texts = [...commentsOf(file, text), ...literals, ...titles, ...messages, ...help];
  return { texts, strings, messages, help };
}

/**
 * @param {string} file
 * @param {string} text
 * @returns {{rule: string, line: number, fault: string, isEnforced: boolean}[]} the lines that
 * violate a rule
 */
function writingFaultsOf(file, text) {
  const { texts, strings, messages, help } = readableOf(file, text);
  const isEnforced = true;
  return [
    ...[...texts, ...strings].flatMap(({ line, text: words }) =>
      wordRules
        .filter(({ pattern }) => pattern.test(words))
        .map(({ name, instead }) => ({
          ...{ rule: name, line, isEnforced },
          fault: `"${name}": write ${instead}`,
        })),
    ),
    ...texts.flatMap(({ line, text: words }) =>
      namelessSentences(words).map((sentence) => ({
        ...{ rule: 'subject', line, isEnforced },
        fault: `sentence without a named subject: ${sentence.slice(0, 40)}`,
      })),
    ),
    ...messages
      .filter((one) => !namesSubject(one.text))
      .map(({ line }) => ({
        ...{ rule: 'error format', line, isEnforced: withSubjects.test(file) },
        fault: 'error does not begin with its subject and a colon',
      })),
    ...help
      .filter((one) => !isVerbPhrase(one.text))
      .map(({ line }) => ({
        ...{ rule: 'help format', line, isEnforced },
        fault: '--help line is not a verb phrase',
      })),
  ];
}

/** @param {string} file @returns {string} the folder under which its violations are counted */
const countedAs = (file) =>
  file
    .split('/')
    .slice(0, file.startsWith('docs/') ? -1 : 1)
    .join('/');

/** @type {Map<string, Map<string, number>>} */
const counts = new Map();

/** @param {string} file @param {string} text @returns {string[]} */
function checkWriting(file, text) {
  return writingFaultsOf(file, text).flatMap(({ rule, line, fault, isEnforced }) => {
    const folders = counts.get(rule) ?? new Map();
    counts.set(rule, folders);
    folders.set(countedAs(file), (folders.get(countedAs(file)) ?? 0) + 1);
    return isEnforced ? [`${file}:${line}: ${fault}`] : [];
  });
}

const faults = files.flatMap((file) => {
  const bytes = readFileSync(join(root, file));
  if (bytes.subarray(0, 8000).includes(0)) return []; // not text
  const text = bytes.toString('utf8');
  return [...faultsOf(file, text.split('\n')), ...checkWriting(file, text)];
});
if (process.argv.includes('--counts')) {
  let all = 0;
  for (const [rule, folders] of [...counts].sort()) {
    const sum = [...folders.values()].reduce((total, count) => total + count, 0);
    all += sum;
    const each = [...folders].sort().map(([folder, count]) => `${folder} ${count}`);
    console.log(`${String(sum).padStart(6)}  ${rule}: ${each.join(', ')}`);
  }
  console.log(`${String(all).padStart(6)}  in all`);
}
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exit(1);
