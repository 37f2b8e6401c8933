// examples/chat/context_choice.js — the choice of the context size: from the default size up to the trained one, each with the
// memory that it needs here. This file is loaded with the settings.

import { CONTEXT_USUAL, reachableBytes, sizesOf } from './context_sizes.js';
import { formatBytes, formatNumber } from './dom.js';
import { readDevice } from './model_header.js';
import { MEMORY_SHARE_MAX } from './model_verdict.js';
import { contextWanted } from './settings.js';

/** @import { Engine } from 'wick-llm' */
/** @import { Size } from './context_sizes.js' */

/**
 * @param {Engine} engine
 * @returns {Promise<{sizes: Size[], trained: number}>} the sizes; none if the context cannot be
 * larger than it is
 */
async function readSizes(engine) {
  const [info, kv] = await Promise.all([engine.info(), engine.kvStats()]);
  const trained = info.shape?.contextTrained ?? 0;
  if (!info.plan || trained <= CONTEXT_USUAL) return { sizes: [], trained };
  const { memoryGb } = await readDevice(info.memory.mostBytes);
  const deviceBytes = memoryGb && memoryGb * 1e9 * MEMORY_SHARE_MAX;
  const model = {
    trained,
    now: info.contextSize,
    bytesPerToken: kv.pageBytes / kv.pageTokens,
    totalBytes: info.plan.totalBytes,
  };
  return { sizes: sizesOf(model, reachableBytes(info.memory, deviceBytes)), trained };
}

/** @param {Size} size */
function wordsOf({ tokens, moreBytes, fits }) {
  const name = `${formatNumber(tokens)} tokens`;
  if (Math.abs(moreBytes) < 1e5) return `${name} (current)`;
  const cost = `about ${formatBytes(Math.abs(moreBytes))} of memory`;
  if (!fits) return `${name}: ${cost} more, too much here`;
  return `${name}: ${cost} ${moreBytes > 0 ? 'more' : 'less'}`;
}

/**
 * @param {HTMLSelectElement} field
 * @param {HTMLElement} hint
 * @param {Engine | undefined} engine that answers now
 */
export async function fillSizes(field, hint, engine) {
  const { sizes, trained } = engine ? await readSizes(engine) : { sizes: [], trained: 0 };
  const wanted = contextWanted() ?? CONTEXT_USUAL;
  const options = sizes.map((size) => {
    const value = size.tokens === CONTEXT_USUAL ? '' : String(size.tokens);
    const option = new Option(wordsOf(size), value);
    option.disabled = !size.fits && size.tokens !== wanted;
    return option;
  });
  const isKnown = wanted === CONTEXT_USUAL || sizes.some(({ tokens }) => tokens === wanted);
  if (options.length === 0)
    options.push(new Option(`At most ${formatNumber(CONTEXT_USUAL)} tokens`, ''));
  if (!isKnown) options.push(new Option(`${formatNumber(wanted)} tokens`, String(wanted)));
  field.replaceChildren(...options);
  field.value = wanted === CONTEXT_USUAL ? '' : String(wanted);
  const limit = `This model was trained with a context of ${formatNumber(trained)} tokens.`;
  const choice =
    'Changing the context reloads the model. The choice is saved with the conversation.';
  hint.textContent = [trained > 0 && limit, sizes.length > 0 && choice].filter(Boolean).join(' ');
}
