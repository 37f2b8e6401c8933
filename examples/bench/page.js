// examples/bench/page.js — the page's form, plots and tables; saves, links and reads
// results.

import { keepPage } from '../chat/offline.js';
import { packFragment, unpackFragment } from '../shared/fragment.js';
import { readReport } from './import.js';
import { measure } from './measure.js';
import { makePlots } from './plots.js';
import { describeEnvironment, opRows, speedRows, toJson, toMarkdown } from './report.js';

/** @typedef {import('./measure.js').Plan} Plan */
/** @typedef {import('./measure.js').Result} Result */

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);

/** The maximum size of a result file. */
const FILE_BYTES_MAX = 4 << 20;

const plots = makePlots(byId);

/** @type {AbortController | undefined} */
let running;
let texts = { markdown: '', json: '' };

/** @param {string} field @returns {number[]} */
function numbersOf(field) {
  const text = String(byId(field).value);
  const numbers = text
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(Number);
  if (numbers.length > 0 && numbers.every((n) => Number.isInteger(n) && n > 0)) return numbers;
  throw new Error(`${field}: enter whole numbers above 0, not '${text}'`);
}

/** @param {string[]} names of several files @returns {boolean} whether they are the parts of one split model */
function areParts(names) {
  const parts = names.map((name) => /^(.*)-\d{5}-of-(\d{5})\.gguf$/i.exec(name));
  return parts.every((part) => part?.[1] === parts[0]?.[1] && Number(part?.[2]) === names.length);
}

/** @returns {Pick<Plan, 'model' | 'source'>} */
function chosenModel() {
  const kind = byId('model').value;
  if (kind === 'built-in') return { model: 'built-in', source: undefined };
  if (kind === 'url') {
    const url = byId('url').value;
    if (!url) throw new Error('enter the URL of a GGUF file');
    return { model: url, source: { url } };
  }
  const files = /** @type {File[]} */ ([...byId('file').files]);
  if (files.length === 0) throw new Error('choose a file');
  const names = files.map(({ name }) => name).sort();
  if (files.length > 1 && !areParts(names)) {
    throw new Error('choose one file, or all parts of a split model (…-00001-of-00003.gguf)');
  }
  return { model: names.join(', '), source: { file: files } };
}

/** @returns {Plan} */
function readPlan() {
  return {
    ...chosenModel(),
    threads: numbersOf('threads'),
    prompts: numbersOf('prompts'),
    tokens: Number(byId('tokens').value),
    repetitions: Number(byId('repetitions').value),
  };
}

/** @param {string} id @param {string[][]} rows */
function fillTable(id, [head, ...rows]) {
  /** @param {string} tag @param {string[]} texts */
  const line = (tag, texts) => {
    const row = document.createElement('tr');
    for (const text of texts)
      row.append(Object.assign(document.createElement(tag), { textContent: text }));
    return row;
  };
  const top = document.createElement('thead');
  top.append(line('th', head));
  const body = document.createElement('tbody');
  body.append(...rows.map((row) => line('td', row)));
  byId(id).replaceChildren(top, body);
}

/** @param {Result} result @param {Awaited<ReturnType<typeof describeEnvironment>>} environment */
function showResult(result, environment) {
  fillTable('speeds', speedRows(result.runs));
  byId('ops-part').hidden = !result.metrics;
  if (result.metrics) {
    byId('ops-of').textContent =
      `Ops of the forward pass, ${result.metricsThreads} thread(s), since the last warm-up; the clock resolution is ` +
      `${result.metrics.timer_grain_us} µs.`;
    fillTable('ops', opRows(result.metrics));
  }
  const facts = Object.entries(environment).flatMap(([name, value]) => [
    Object.assign(document.createElement('dt'), { textContent: name }),
    Object.assign(document.createElement('dd'), { textContent: String(value) }),
  ]);
  byId('environment').replaceChildren(...facts);
  texts = { markdown: toMarkdown(result, environment), json: toJson(result, environment) };
  URL.revokeObjectURL(byId('download').href);
  byId('download').href = URL.createObjectURL(new Blob([texts.json], { type: 'application/json' }));
  byId('results').hidden = false;
}

/** @param {boolean} isRunning */
function setRunning(isRunning) {
  byId('fields').disabled = isRunning;
  const [shown, hidden] = isRunning ? [byId('stop'), byId('run')] : [byId('run'), byId('stop')];
  shown.hidden = false;
  if (document.activeElement === hidden) shown.focus(); // otherwise the focus would be lost
  hidden.hidden = true;
  byId('progress').hidden = !isRunning;
}

/** @param {unknown} error */
const wordsOf = (error) => (error instanceof Error ? error.message : String(error));

/** @param {unknown} error */
function showProblem(error) {
  byId('problem').textContent = wordsOf(error);
  byId('problem').hidden = false;
}

/** Empty plots show nothing, so they wait for the first result. */
function showPlots() {
  byId('plots').hidden = false;
  plots.clear();
}

/** @param {Result} result */
function listenerFor(result) {
  showPlots();
  return {
    /** @param {string} text @param {number} share */
    onState: (text, share) => {
      byId('state').textContent = text;
      byId('progress').value = share;
    },
    onRepetition: () => {
      plots.time.clear();
      plots.time.add('this repetition', 0, 0);
    },
    /** @param {number} seconds @param {number} tokens */
    onToken: (seconds, tokens) => plots.time.add('this repetition', seconds, tokens),
    /** @param {import('./measure.js').Sample} sample */
    onSample: (sample) => {
      const run = /** @type {import('./measure.js').Run} */ (result.runs.at(-1));
      plots.addSample(run, run.samples.length, sample);
      fillTable('speeds', speedRows(result.runs));
    },
  };
}

async function run() {
  byId('problem').hidden = true;
  byId('results').hidden = true;
  byId('origin').hidden = true;
  const own = new AbortController();
  running = own;
  setRunning(true);
  /** @type {Result} */
  const result = { runs: [], info: undefined, metrics: undefined, metricsThreads: 0 };
  let state = 'Done';
  try {
    const plan = readPlan();
    try {
      await measure(plan, listenerFor(result), own.signal, result);
    } catch (error) {
      state = own.signal.aborted ? 'Stopped' : 'Failed';
      if (!own.signal.aborted) throw error;
    } finally {
      result.runs = result.runs.filter(({ samples }) => samples.length > 0);
      if (result.runs.length > 0) showResult(result, await describeEnvironment(plan, result));
    }
  } catch (error) {
    state = '';
    showProblem(error);
  } finally {
    running = undefined;
    setRunning(false);
    byId('state').textContent = state;
  }
}

/**
 * Shows a result from another time or machine.
 * @param {any} saved
 * @param {string} from
 */
function showSaved(saved, from) {
  const { result, environment } = readReport(saved);
  byId('problem').hidden = true;
  showPlots();
  for (const run of result.runs)
    for (const [index, sample] of run.samples.entries()) plots.addSample(run, index + 1, sample);
  showResult(result, environment);
  fillTable('speeds', speedRows(result.runs));
  byId('origin').textContent = `This result is ${from}. It was not measured now.`;
  byId('origin').hidden = false;
}

async function importFile() {
  const [file] = byId('import').files;
  byId('import').value = ''; // the same file may be chosen again
  if (!file || running) return;
  try {
    if (file.size > FILE_BYTES_MAX) throw new Error('it is too large');
    showSaved(JSON.parse(await file.text()), `from the file ${file.name}`);
  } catch (error) {
    showProblem(`${file.name} is not a result from this page: ${wordsOf(error)}`);
  }
}

async function importLink() {
  const packed = location.hash.slice(1);
  if (!packed || packed === 'results' || running) return;
  try {
    showSaved(await unpackFragment(packed), 'from a link');
  } catch (error) {
    showProblem(`The link is not a result from this page: ${wordsOf(error)}`);
  }
}

async function share() {
  try {
    const link = new URL(location.href);
    link.hash = await packFragment(JSON.parse(texts.json));
    history.replaceState(null, '', link);
    await copy(link.href);
  } catch (error) {
    byId('copied').textContent = `Not copied: ${wordsOf(error)}`;
  }
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    byId('copied').textContent = 'Copied';
  } catch (error) {
    byId('copied').textContent = `Not copied: ${error}`;
  }
}

function showFields() {
  byId('url-field').hidden = byId('model').value !== 'url';
  byId('file-field').hidden = byId('model').value !== 'file';
}

/** Half of the logical processors, because two of them often share one core. */
const most = Math.max(
  Math.min(2, navigator.hardwareConcurrency),
  Math.min(8, navigator.hardwareConcurrency >> 1),
);
byId('threads').value = crossOriginIsolated && most > 1 ? `1, ${most}` : '1';
byId('model').addEventListener('change', showFields);
byId('form').addEventListener('submit', (/** @type {Event} */ event) => {
  event.preventDefault();
  if (!running) run();
});
byId('stop').addEventListener('click', () => running?.abort());
byId('copy-markdown').addEventListener('click', () => copy(texts.markdown));
byId('copy-json').addEventListener('click', () => copy(texts.json));
byId('copy-link').addEventListener('click', share);
byId('import').addEventListener('change', importFile);
globalThis.addEventListener('hashchange', importLink);
// so that a table that is wider than the page can be scrolled with the keyboard, too
for (const wide of document.querySelectorAll('.scroll')) wide.setAttribute('tabindex', '0');
showFields();
importLink();
keepPage();
