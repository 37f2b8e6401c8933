// examples/playground/page.js — the page: the input, its check, its run, and links to it.

import { modelUrl } from 'wick-llm-demo-model';
import { byId } from '../chat/dom.js';
import { models } from '../chat/models.js';
import { keepPage } from '../chat/offline.js';
import { packFragment, unpackFragment } from '../shared/fragment.js';
import { inWords, useModelChoice } from '../shared/model_choice.js';
import { answer } from './answer.js';
import { showFault } from './editor.js';
import { codeOf, findFault } from './rules.js';
import { samples } from './samples.js';

/** @typedef {import('./samples.js').Kind} Kind */
/** @typedef {import('./samples.js').Task} Task */

const CHECK_MS = 400;
/** Tokens with probabilities below these limits are marked. */
const UNSURE = 0.5;
const FORCED = 0.01;

const rule = /** @type {HTMLTextAreaElement} */ (byId('rule'));
const text = /** @type {HTMLTextAreaElement} */ (byId('text'));
const example = /** @type {HTMLSelectElement} */ (byId('example'));

/** @type {Record<Kind, string>} */
const names = {
  schema: 'JSON schema',
  grammar: 'Grammar (GBNF)',
  regex: 'Regular expression',
  choices: 'Choices, one per line',
};

/** @returns {Task} */
const task = () => ({ kind: kind(), rule: rule.value, text: text.value });

/** @returns {Kind} */
const kind = () => /** @type {any} */ (document.querySelector('input[name="kind"]:checked')).value;

/** @param {Task} shown */
function show(shown) {
  /** @type {HTMLInputElement} */ (
    document.querySelector(`input[name="kind"][value="${shown.kind}"]`)
  ).checked = true;
  rule.value = shown.rule;
  text.value = shown.text;
  byId('rule-label').textContent = names[shown.kind];
  checkSoon();
}

function fillExamples() {
  const own = samples.filter((one) => one.kind === kind());
  example.replaceChildren(
    new Option('choose one', ''),
    ...own.map(({ name }) => new Option(name, name)),
  );
}

/** @param {string} words */
function showProblem(words) {
  byId('problem').textContent = words;
  byId('problem').hidden = words === '';
}

// ---- the check ----

/** @type {ReturnType<typeof setTimeout> | undefined} */
let waiting;
/** @type {AbortController | undefined} */
let checking;

function checkSoon() {
  byId('code').textContent = '';
  showFault(undefined); // clears the fault of an earlier rule
  byId('rule-state').textContent = '';
  checking?.abort();
  clearTimeout(waiting);
  waiting = setTimeout(() => check().catch(() => {}), CHECK_MS);
}

/** @returns {Promise<boolean>} whether the rule is supported */
async function check() {
  clearTimeout(waiting);
  const engine = choice.engine();
  if (!engine) return false;
  checking?.abort();
  const own = new AbortController();
  checking = own;
  const fault = await findFault(engine, task(), own.signal);
  if (own.signal.aborted) return false;
  showFault(fault);
  byId('rule-state').textContent = fault ? '' : 'Valid and supported.';
  if (!fault) byId('code').textContent = codeOf(task());
  return fault === undefined;
}

// ---- a run ----

/** @type {AbortController | undefined} */
let running;

/** @param {boolean} isRunning */
function setRunning(isRunning) {
  const isOff = (/** @type {string} */ id, /** @type {boolean} */ off) =>
    byId(id).setAttribute('aria-disabled', String(off));
  isOff('run', isRunning || !choice.engine());
  isOff('stop', !isRunning);
}

/** @param {{text: string, probability: number}} token */
function tokenElement({ text: letters, probability }) {
  const span = document.createElement('span');
  span.textContent = letters;
  span.title = `${(probability * 100).toPrecision(2)} %`;
  span.className = probability < FORCED ? 'forced' : probability < UNSURE ? 'unsure' : '';
  return span;
}

/** @param {Task} asked @param {string} written */
function showWhole(asked, written) {
  if (asked.kind !== 'schema' || byId('output').querySelector('span')) return;
  try {
    byId('output').textContent = JSON.stringify(JSON.parse(written), null, 2);
  } catch {
    // the output was cut off
  }
}

async function run() {
  const engine = choice.engine();
  if (!engine || running) return;
  const own = new AbortController();
  running = own;
  setRunning(true);
  showProblem('');
  byId('output').replaceChildren();
  byId('facts').textContent = '';
  byId('state').textContent = 'Reading …';
  let written = '';
  let count = 0;
  const asked = task();
  const start = performance.now();
  let first = 0;
  const seconds = () => (performance.now() - first) / 1000;
  const hasTokens = /** @type {HTMLInputElement} */ (byId('tokens')).checked;
  byId('legend').hidden = !hasTokens;
  try {
    if (!(await check())) {
      byId('state').textContent = '';
      return;
    }
    const ending = await answer(engine, asked, hasTokens, own.signal, (piece) => {
      if (!first) byId('state').textContent = 'Writing …';
      first ||= performance.now();
      written += piece.text;
      count += piece.tokens.length;
      if (piece.tokens.length > 0) byId('output').append(...piece.tokens.map(tokenElement));
      else byId('output').append(piece.text);
      byId('facts').textContent =
        `${count || `${written.length} characters`}${count ? ' tokens' : ''}, ${seconds().toFixed(1)} s`;
    });
    showWhole(asked, written);
    const rate = ending.tokens > 1 ? (ending.tokens - 1) / Math.max(seconds(), 1e-3) : 0;
    byId('facts').textContent =
      `${ending.promptTokens} tokens prefilled in ${((first - start) / 1000).toFixed(2)} s; ` +
      `${ending.tokens} written${rate ? `, ${rate.toFixed(rate < 10 ? 1 : 0)} per second` : ''}.`;
    byId('state').textContent = ending.finish === 'length' ? '' : 'Done';
    if (ending.finish === 'length')
      showProblem(
        `The output is incomplete: after ${ending.tokens} tokens it reached the limit of 1,024 tokens or the end of the context.`,
      );
  } catch (error) {
    byId('state').textContent = own.signal.aborted ? 'Stopped' : '';
    if (!own.signal.aborted) showProblem(inWords(error));
  } finally {
    running = undefined;
    setRunning(false);
  }
}

// ---- the link ----

async function share() {
  try {
    const link = new URL(location.href);
    link.hash = await packFragment(task());
    history.replaceState(null, '', link);
    await navigator.clipboard.writeText(link.href);
    byId('state').textContent = 'Copied';
  } catch (error) {
    byId('state').textContent = `Not copied, but the page's URL is the link: ${inWords(error)}`;
  }
}

/** @returns {Promise<boolean>} whether the URL contains a task */
async function readLink() {
  const packed = location.hash.slice(1);
  if (!packed) return false;
  try {
    const found = await unpackFragment(packed);
    const isTask =
      Object.hasOwn(names, found?.kind) &&
      typeof found.rule === 'string' &&
      typeof found.text === 'string';
    if (!isTask) throw new Error('it belongs to a different page');
    show(found);
    fillExamples();
    return true;
  } catch (error) {
    showProblem(`The link cannot be read: ${inWords(error)}`);
    return false;
  }
}

// ---- the page ----

const offers = models.map(({ name, note, url, isBuiltIn }) => ({
  name,
  note,
  // the service worker caches the built-in model with the page
  source: isBuiltIn ? { url: modelUrl.href, cache: false } : { url },
}));

const choice = useModelChoice({
  key: 'wick-playground-model',
  offers,
  begin: true,
  onEngine: () => {
    setTimeout(() => {
      setRunning(false);
      checkSoon();
    });
  },
});

for (const radio of document.querySelectorAll('input[name="kind"]')) {
  radio.addEventListener('change', () => {
    fillExamples();
    const first = samples.find((one) => one.kind === kind());
    if (first) show(first);
  });
}
example.addEventListener('change', () => {
  const found = samples.find(({ name }) => name === example.value);
  if (found) show(found);
});
rule.addEventListener('input', checkSoon);
text.addEventListener('input', () => {
  byId('code').textContent = codeOf(task());
});
byId('run').addEventListener('click', run);
byId('stop').addEventListener('click', () => running?.abort());
byId('share').addEventListener('click', share);
globalThis.addEventListener('hashchange', () => readLink());
globalThis.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) run();
});

fillExamples();
if (!(await readLink())) show(samples[0]);
choice.start();
keepPage();
