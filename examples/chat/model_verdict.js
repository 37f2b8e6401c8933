// examples/chat/model_verdict.js — describes a model before its weights are downloaded: its kind, its requirements, its likely
// speed here, and whether it is worth the download.

import { formatNumber, roundBytes } from './dom.js';

/**
 * @typedef {{architecture: string | null, name: string | null, parameters?: number, types: Record<string, {bytes: number}>,
 *   contextTrained?: number, contextTokens?: number, needBytes?: number, fileBytes?: number, activeBytes?: number,
 *   hasTemplate: boolean, error?: string}} Facts
 */
/**
 * `limitBytes` is the memory that an engine can reserve, `memoryGb` the memory that the device
 * reports, `freeBytes` the free storage of the browser.
 * @typedef {{limitBytes: number, isPhone?: boolean, memoryGb?: number, freeBytes?: number}} Device
 */
/**
 * A measurement on this device: the bytes of a model's weights and its tokens per second.
 * @typedef {{bytes: number, tokensPerSecond: number}} Measured
 */
/** @typedef {{fits: 'yes' | 'tight' | 'no', verdict: string, facts: [name: string, text: string][]}} Verdict */

/** The usable share of a device's memory: more would leave too little for everything else. */
export const MEMORY_SHARE_MAX = 0.6;
/**
 * Phones end a page that uses more memory than this, without an error: 1.4 to 3 GB, depending on the
 * phone and on other apps.
 */
export const PHONE_BYTES = { safe: 1.4e9, most: 3e9 };
/** If only the browser's limit is known, it is uncertain whether a device has more memory than this. */
const UNKNOWN_BYTES = 2 ** 32;
/** The approximate reading speed of a person. */
const READING_PER_SECOND = 6;
/** The speed of a model that is smaller by more than this factor is only a rough guide. */
const LIKE = 8;

/**
 * @param {number} value
 * @returns {string} the number with one significant digit, because it is an estimate
 */
export const roughly = (value) => String(Number(value.toPrecision(1)));

/** @param {Facts['types']} types @returns {string} the types, the most frequent first */
export function quantisationOf(types) {
  const all = Object.entries(types).sort(([, a], [, b]) => b.bytes - a.bytes);
  const sum = all.reduce((bytes, [, one]) => bytes + one.bytes, 0);
  const shares = all.filter(([, { bytes }]) => bytes >= sum / 20);
  if (shares.length === 1) return shares[0][0];
  return shares
    .map(([type, { bytes }]) => `${type} ${Math.round((100 * bytes) / sum)} %`)
    .join(', ');
}

/**
 * Estimates the speed: each token reads all active weights once, so the time per token grows with them.
 * @param {number} bytes of a model's weights that a token reads
 * @param {Measured[]} measured
 * @returns {{tokensPerSecond: number, isRough: boolean} | undefined} undefined if nothing was measured
 */
export function expectSpeed(bytes, measured) {
  const distance = (/** @type {Measured} */ one) => Math.abs(Math.log(one.bytes / bytes));
  const [nearest] = [...measured].sort((a, b) => distance(a) - distance(b));
  if (!nearest || bytes <= 0) return undefined;
  const tokensPerSecond = (nearest.tokensPerSecond * nearest.bytes) / bytes;
  return { tokensPerSecond, isRough: distance(nearest) > Math.log(LIKE) };
}

/** @param {ReturnType<typeof expectSpeed>} speed */
function speedInWords(speed) {
  if (!speed) return 'not measured yet: ask the loaded model something first';
  const { tokensPerSecond, isRough } = speed;
  const words = `about ${roughly(tokensPerSecond)} tokens/s`;
  return isRough
    ? `${words}, estimated from a much smaller model on this machine`
    : `${words}, as measured on this machine`;
}

const PHONE_WORDS = `phones close a page that takes more than ${roundBytes(PHONE_BYTES.safe)} to ${roundBytes(PHONE_BYTES.most)}`;

/** @param {Facts} facts @param {Device} device @returns {[Verdict['fits'], string]} */
function memoryVerdict({ error, needBytes }, { limitBytes, isPhone, memoryGb }) {
  if (error) return ['no', `It does not run here: ${error.replace(/\.?$/, '.')}`];
  if (needBytes === undefined) return ['tight', 'How much memory it needs is unknown.'];
  const need = roundBytes(needBytes);
  if (needBytes > limitBytes)
    return [
      'no',
      `It does not fit: it needs ${need}, and a page can have ${roundBytes(limitBytes)}.`,
    ];
  if (isPhone && needBytes > PHONE_BYTES.most)
    return ['no', `It does not fit: it needs ${need}, and ${PHONE_WORDS}.`];
  if (isPhone && needBytes > PHONE_BYTES.safe)
    return ['tight', `It may be too much: it needs ${need}, and ${PHONE_WORDS}.`];
  if (memoryGb !== undefined && needBytes > memoryGb * 1e9 * MEMORY_SHARE_MAX)
    return ['tight', `It may be too much: it needs ${need} of this device's ${memoryGb} GB.`];
  if (memoryGb === undefined && needBytes > UNKNOWN_BYTES)
    return [
      'tight',
      `It may be too much: it needs ${need}, and this browser does not report how much this device has.`,
    ];
  return ['yes', `It fits: it needs ${need}.`];
}

/** @param {Facts} facts @param {Device} device @param {Measured[]} measured @returns {Verdict} */
export function judge(facts, device, measured) {
  const [fits, memory] = memoryVerdict(facts, device);
  const { fileBytes, activeBytes, parameters, contextTokens, contextTrained } = facts;
  const speed = activeBytes ? expectSpeed(activeBytes, measured) : undefined;
  const words = [memory];
  if (fits !== 'no' && speed) {
    const { tokensPerSecond, isRough } = speed;
    if (tokensPerSecond >= READING_PER_SECOND) words.push('It writes as fast as you read.');
    else if (!isRough) words.push('It writes more slowly than you read.');
    else words.push('It may write more slowly than you read.');
  }
  if (fits !== 'no' && fileBytes && device.freeBytes !== undefined && fileBytes > device.freeBytes)
    words.push(
      `There is not enough storage to save its ${roundBytes(fileBytes)}: ${roundBytes(device.freeBytes)} is free.`,
    );
  if (!facts.hasTemplate && fits !== 'no')
    words.push(
      'It has no chat template: it continues your text, or uses a template that you choose.',
    );
  /** @type {[string, string][]} */
  const rows = [
    [
      'Architecture',
      [
        facts.architecture ?? 'unknown',
        parameters ? `${roughParameters(parameters)} parameters` : '',
      ]
        .filter(Boolean)
        .join(', '),
    ],
    ['Quantisation', quantisationOf(facts.types) || 'unknown'],
    ['Download', fileBytes ? roundBytes(fileBytes) : 'unknown'],
    [
      'Context',
      contextTokens && contextTrained
        ? `${formatNumber(contextTokens)} tokens here, trained for ${formatNumber(contextTrained)}`
        : 'unknown',
    ],
    [
      'Memory',
      facts.needBytes === undefined
        ? 'unknown'
        : `${roundBytes(facts.needBytes)} of ${memoryOf(device)}`,
    ],
    ['Speed', speedInWords(speed)],
  ];
  return { fits, verdict: words.join(' '), facts: rows };
}

/** @param {Device} device */
function memoryOf({ limitBytes, isPhone, memoryGb }) {
  if (isPhone)
    return `the ${roundBytes(PHONE_BYTES.safe)} to ${roundBytes(PHONE_BYTES.most)} that a phone gives a page`;
  const limit = `${roundBytes(limitBytes)} that a page can have`;
  return memoryGb === undefined
    ? limit
    : `${limit}; the device has ${memoryGb} GB${memoryGb >= 8 ? ' or more' : ''}`;
}

/** @param {number} parameters */
const roughParameters = (parameters) =>
  parameters >= 1e9 ? `${(parameters / 1e9).toFixed(1)} B` : `${Math.round(parameters / 1e6)} M`;
