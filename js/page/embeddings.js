// js/page/embeddings.js — converts texts to vectors and documents to scores, and implements OpenAI's
// embeddings.

import { argumentError } from '../base/errors.js';
import { checkNames } from '../base/option_names.js';
import { adaptersOf } from './adapters.js';
import { checkCount, checkNumber, checkText, shown, U32_MAX } from './option_checks.js';

/** @import { EngineConnection } from '../connection/engine_connection.js' */
/** @import { NativeEmbed } from '../wasm/engine_records.js' */
/** @import { Embedded } from '../wasm/native_engine.js' */

/** 'model' is the pooling that the file specifies. */
const poolings = ['model', 'none', 'mean', 'cls', 'last', 'rank'];

/** @param {unknown} list @returns {boolean} */
const areTokens = (list) =>
  (Array.isArray(list) || ArrayBuffer.isView(list)) &&
  /** @type {number[]} */ (list).length > 0 &&
  Array.from(/** @type {number[]} */ (list)).every((id) => Number.isInteger(id));

/** @param {string} name @param {unknown} texts @param {string} prefix @returns {(string | number[])[]} */
function textsOf(name, texts, prefix) {
  const list = typeof texts === 'string' || areTokens(texts) ? [texts] : texts;
  if (!Array.isArray(list) || list.length === 0) {
    throw argumentError(`${name} must be a string or an array of strings, not ${shown(texts)}`);
  }
  return list.map((text, index) => {
    if (typeof text === 'string') return prefix + text;
    if (areTokens(text)) return Array.from(text);
    throw argumentError(`${name}[${index}] must be a string or token ids, not ${shown(text)}`);
  });
}

/** @param {string} name @param {unknown} value @returns {boolean} */
function checkFlag(name, value) {
  if (typeof value === 'boolean') return value;
  throw argumentError(`${name} must be true or false, not ${shown(value)}`);
}

/**
 * @param {EngineConnection} connection
 * @param {unknown} texts
 * @param {import('../index.js').EmbedOptions} options
 * @returns {Promise<Embedded[]>}
 */
async function embedAll(connection, texts, options) {
  checkNames(options, [
    'pooling',
    'normalize',
    'dimensions',
    'prefix',
    'truncate',
    'adapters',
    'signal',
  ]);
  const { pooling = 'model', normalize = true, dimensions, prefix = '' } = options;
  if (!poolings.includes(pooling)) {
    throw argumentError(`pooling must be one of ${poolings.join(', ')}, not ${shown(pooling)}`);
  }
  /** @type {NativeEmbed} */
  const request = {
    texts: textsOf('texts', texts, checkText('prefix', prefix)),
    pooling,
    normalize: checkFlag('normalize', normalize),
    truncate: checkFlag('truncate', options.truncate ?? false),
    adapters: adaptersOf(options.adapters),
    dimensions:
      dimensions === undefined
        ? 0
        : checkNumber('dimensions', dimensions, { min: 1, max: U32_MAX, whole: true }),
  };
  return connection.call('embed', [request], options.signal);
}

/**
 * @param {EngineConnection} connection
 * @param {string | ArrayLike<number> | (string | ArrayLike<number>)[]} texts
 * @param {import('../index.js').EmbedOptions} options
 */
export async function embed(connection, texts, options) {
  return (await embedAll(connection, texts, options)).map(({ vector }) => vector);
}

/**
 * @param {EngineConnection} connection
 * @param {string} query
 * @param {string[]} documents
 * @param {import('../index.js').RerankOptions} options
 * @returns {Promise<import('../index.js').Ranking>}
 */
export async function rerank(connection, query, documents, options) {
  const { topN, truncate = false, signal } = checkNames(options, ['topN', 'truncate', 'signal']);
  if (!Array.isArray(documents) || documents.length === 0) {
    throw argumentError(`documents must be an array of strings, not ${shown(documents)}`);
  }
  const asked = checkText('query', query);
  /** @type {NativeEmbed} */
  const request = {
    texts: documents.map((one, index) => [asked, checkText(`documents[${index}]`, one)]),
    pooling: 'rank',
    normalize: false,
    truncate: checkFlag('truncate', truncate),
    dimensions: 0,
  };
  const count = topN === undefined ? documents.length : checkCount('topN', topN);
  /** @type {Embedded[]} */
  const found = await connection.call('embed', [request], signal);
  const results = found
    .map(({ vector }, index) => ({ index, score: vector[0], probability: probabilityOf(vector) }))
    .sort((a, b) => b.score - a.score || a.index - b.index);
  return { results: results.slice(0, count), tokens: sumTokens(found) };
}

/**
 * Some rerankers return the probabilities of their labels (Qwen3-Reranker), others logits.
 * @param {Float32Array} scores the outputs of a head; the first one is used
 */
function probabilityOf(scores) {
  const isWhole = scores.every((score) => score >= 0 && score <= 1);
  const sum = scores.reduce((total, score) => total + score, 0);
  if (scores.length > 1 && isWhole && Math.abs(sum - 1) < 1e-3) return scores[0];
  return Math.fround(1 / (1 + Math.exp(-scores[0])));
}

/** @param {Embedded[]} found */
const sumTokens = (found) => found.reduce((sum, { tokens }) => sum + tokens, 0);

/** @param {Float32Array<ArrayBuffer>} vector @returns {string} */
function base64Of(vector) {
  const bytes = new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/**
 * OpenAI's embeddings, with the API of openai-node.
 * @param {EngineConnection} connection
 * @param {string} model its name in responses
 * @param {import('../index.js').EmbeddingRequest} body
 * @param {{signal?: AbortSignal | null}} [call]
 * @returns {Promise<import('../index.js').EmbeddingList>}
 */
export async function createEmbeddings(connection, model, body, call = {}) {
  const names = /** @type {const} */ (['input', 'dimensions', 'encoding_format', 'signal']);
  checkNames(body, [...names], ['model', 'user']);
  const { input, dimensions, encoding_format: format = 'float' } = body;
  if (format !== 'float' && format !== 'base64') {
    throw argumentError(`encoding_format must be float or base64, not ${shown(format)}`);
  }
  const found = await embedAll(connection, textsOf('input', input, ''), {
    dimensions: dimensions ?? undefined,
    signal: call.signal ?? body.signal,
  });
  const tokens = sumTokens(found);
  return {
    object: 'list',
    model: body.model ?? model,
    data: found.map(({ vector }, index) => ({
      object: 'embedding',
      index,
      embedding: format === 'float' ? Array.from(vector) : base64Of(vector),
    })),
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  };
}
