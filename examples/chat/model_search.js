// examples/chat/model_search.js — finds the model that a user enters: searches the hub, lists the
// files of a repository, and reads and checks a file's header. This file is loaded when something
// is typed or chosen.

import { formatBytes, formatNumber, make, makeButton, makeLine } from './dom.js';
import { hubAddress, hubNameOf, mirrored } from './hub.js';
import { encoderBytes, listHubFiles, searchHub } from './hub_search.js';
import { examine, readDevice } from './model_header.js';
import { judge } from './model_verdict.js';
import { nameOfUrl } from './models.js';
import { chat } from './open_chat.js';
import { specOf } from './specs.js';
import { keepSpeed, readBytesOf, speedsHere } from './speeds.js';

/** @import { Verdict } from './model_verdict.js' */
/**
 * `text` is the typed name. `mmproj`: whether its repository has encoders for images or audio.
 * @typedef {{text: string, url: string, fits: Verdict['fits'], mmproj?: boolean}} Judged
 */
/** @typedef {{elements: HTMLElement[], file?: Judged}} Found */

const NO_ADDRESS = 'This is not a URL. A URL looks like https://example.org/model.gguf.';

/** The number of tokens that are generated to measure the speed of this machine. */
const MEASURED_TOKENS = 32;
const MEASURED_PRIORITY = -20;

/** @param {[text: string, note: string, action: () => void][]} rows */
function listOf(rows) {
  const items = rows.map(([text, note, action]) => {
    const button = makeButton(`${text} `, action, 'row');
    button.append(make('small', {}, note));
    return make('li', {}, button);
  });
  return make('ul', {}, ...items);
}

/** @param {string} text @param {(text: string) => void} pick @param {AbortSignal} signal */
async function showSearch(text, pick, signal) {
  const all = await searchHub(text, signal);
  if (all.length === 0) return [makeLine('No GGUF model on the hub matches.')];
  return [
    listOf(
      all.map(({ name, downloads, isGated }) => [
        name,
        `${formatNumber(downloads)} downloads${isGated ? ', requires a login' : ''}`,
        () => pick(name),
      ]),
    ),
  ];
}

/** @param {{name: string, revision: string, type?: string}} spec @param {(text: string) => void} pick @param {AbortSignal} signal */
async function showRepository({ name, revision, type }, pick, signal) {
  const all = await listHubFiles(name, revision, signal);
  const wanted = type
    ? all.filter(({ path }) => path.toLowerCase().includes(type.toLowerCase()))
    : all;
  if (wanted.length === 1 && type) {
    queueMicrotask(() => pick(wanted[0].url));
    return [];
  }
  if (wanted.length === 0)
    return [makeLine(`${name} has no GGUF file${type ? ` of type ${type}` : ''}.`)];
  return [
    listOf(wanted.map(({ path, bytes, url }) => [path, formatBytes(bytes), () => pick(url)])),
  ];
}

/** @param {Verdict} verdict @param {string} name */
function cardOf({ fits, verdict, facts }, name) {
  const list = facts.flatMap(([term, text]) => [make('dt', {}, term), make('dd', {}, text)]);
  return make(
    'section',
    { className: `verdict ${fits}`, ariaLabel: `Details of ${name}` },
    ...[makeLine(name, 'name'), makeLine(verdict, 'says'), make('dl', {}, ...list)],
  );
}

/**
 * Measures the speed of this machine with a few tokens of the loaded model, if no answer has shown
 * it yet.
 */
async function measureSpeed() {
  const { engine, running } = chat;
  if (!engine || running || speedsHere().length > 0) return;
  const options = { maxTokens: MEASURED_TOKENS, priority: MEASURED_PRIORITY, ignoreEnd: true };
  const written = engine.generate('Once upon a time', options);
  await written.text();
  keepSpeed(await readBytesOf(engine), written.result?.timings.decodeTokensPerSecond ?? 0);
}

/**
 * @param {string} url of a model
 * @param {AbortSignal} signal
 * @returns {Promise<number>} the size of the encoders in its repository; 0 if it has none
 */
async function encodersNextTo(url, signal) {
  const [, name, revision = 'main'] =
    /^hf:([^/]+\/[^/@]+)(?:@([^/]+))?\//.exec(hubNameOf(url) ?? '') ?? [];
  return name ? encoderBytes(name, revision, signal) : 0;
}

/** @param {string} text @param {string} url @param {AbortSignal} signal @returns {Promise<Found>} */
async function showFile(text, url, signal) {
  const [{ facts, limitBytes }, encoders] = await Promise.all([
    examine({ url: mirrored(url) }, signal),
    encodersNextTo(url, signal).catch(() => 0), // the model is shown without them
  ]);
  await measureSpeed().catch(() => {}); // if a different model was loaded, no speed is shown
  const verdict = judge(facts, await readDevice(limitBytes), speedsHere());
  const { fits } = verdict;
  if (encoders > 0)
    verdict.facts.push([
      'Reads',
      `images or audio, with another ${formatBytes(encoders)} of encoders`,
    ]);
  const file = { text, url, fits, mmproj: encoders > 0 };
  return { elements: [cardOf(verdict, nameOfUrl(url))], file };
}

/**
 * @param {string} text as typed
 * @param {(text: string) => void} pick called with one of the listed files
 * @param {AbortSignal} signal
 * @returns {Promise<Found>}
 */
export async function lookFor(text, pick, signal) {
  const wanted = specOf(mirrored(text.trim()), hubAddress(), document.baseURI);
  if (wanted.kind === 'none') return { elements: [makeLine(wanted.why ?? NO_ADDRESS, 'says bad')] };
  if (wanted.kind === 'search') return { elements: await showSearch(wanted.text, pick, signal) };
  if (wanted.kind === 'repository') return { elements: await showRepository(wanted, pick, signal) };
  return showFile(text, wanted.url, signal);
}
