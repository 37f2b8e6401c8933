// js/handler/embedding_route.js — POST /v1/embeddings in OpenAI's shape, and POST /v1/rerank in Jina's and Cohere's.

import {
  boolean,
  checkFields,
  checkTogether,
  idleFields,
  must,
  pickFields,
  text,
  whole,
} from './fields.js';

/** @typedef {import('../index.js').Engine} Engine */

/** @param {unknown} value @returns {boolean} */
const isText = (value) => typeof value === 'string';

/** @type {Record<string, import('./fields.js').Check>} */
const fields = {
  ...idleFields,
  input: () => {}, // the engine checks it
  dimensions: whole(1),
  encoding_format: must((value) => value === 'float' || value === 'base64', 'float or base64'),
};
export const embeddingFields = new Set(Object.keys(fields));

/**
 * @param {Engine} engine
 * @param {Record<string, any>} body
 * @param {import('./create_handler.js').Asked} asked
 */
export async function answerEmbedding(engine, body, { signal, model }) {
  checkFields(body, fields);
  checkTogether(body, 'input');
  const request = /** @type {any} */ (pickFields(body, fields));
  return engine.embeddings.create({ ...request, model }, { signal });
}

/** @type {Record<string, import('./fields.js').Check>} */
const rankFields = {
  ...idleFields,
  query: text,
  documents: must(
    (value) =>
      Array.isArray(value) &&
      value.length > 0 &&
      value.every((one) => isText(one) || isText(one?.text)),
    'an array of strings',
  ),
  top_n: whole(1),
  return_documents: boolean,
  raw_scores: boolean, // as of text-embeddings-inference
};
export const rerankFields = new Set(Object.keys(rankFields));

/**
 * @param {Engine} engine
 * @param {Record<string, any>} body
 * @param {import('./create_handler.js').Asked} asked
 */
export async function answerRerank(engine, body, { signal, model }) {
  checkFields(body, rankFields);
  checkTogether(body, 'query');
  checkTogether(body, 'documents');
  /** @type {string[]} */
  const documents = body.documents.map((/** @type {any} */ one) => (isText(one) ? one : one.text));
  const options = { topN: body.top_n ?? documents.length, signal };
  const { results, tokens } = await engine.rerank(body.query, documents, options);
  return {
    model,
    object: 'list',
    results: results.map(({ index, score, probability }) => ({
      index,
      relevance_score: body.raw_scores ? score : probability,
      ...(body.return_documents && { document: { text: documents[index] } }),
    })),
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  };
}
