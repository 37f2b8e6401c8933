// js/handler/embedding_route.js — POST /v1/embeddings in OpenAI's format, and POST /v1/rerank in
// the formats of Jina and Cohere (documents) and of text-embeddings-inference (texts).

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
import { invalidField } from './http_errors.js';

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

const documents = must(
  (value) =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((one) => isText(one) || isText(one?.text)),
  'an array of strings',
);

/** @type {Record<string, import('./fields.js').Check>} */
const rankFields = {
  ...idleFields,
  ...{ query: text, documents, top_n: whole(1), return_documents: boolean },
  // fields of text-embeddings-inference
  ...{ texts: documents, return_text: boolean, raw_scores: boolean },
};
export const rerankFields = new Set(Object.keys(rankFields));

/** @param {Record<string, any>} body that was checked @returns {string[]} its documents */
function documentsOf(body) {
  const { texts, documents: own } = body;
  if (texts && own) {
    throw invalidField('texts', 'texts and documents are the same field: send one');
  }
  if (!texts) checkTogether(body, 'documents');
  return (texts ?? own).map((/** @type {any} */ one) => (isText(one) ? one : one.text));
}

/**
 * @param {Engine} engine
 * @param {Record<string, any>} body
 * @param {import('./create_handler.js').Asked} asked
 */
export async function answerRerank(engine, body, { signal, model }) {
  checkFields(body, rankFields);
  checkTogether(body, 'query');
  const given = documentsOf(body);
  const options = { topN: body.top_n ?? given.length, signal };
  const { results, tokens } = await engine.rerank(body.query, given, options);
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  const scored = results.map(({ index, score, probability }) => ({
    ...{ index, text: given[index] },
    score: body.raw_scores ? score : probability,
  }));
  if (body.texts) {
    const list = scored.map(({ text: own, ...one }) =>
      body.return_text ? { ...one, text: own } : one,
    );
    return Object.assign(list, { usage }); // for the record only: JSON omits members of arrays
  }
  return {
    model,
    object: 'list',
    results: scored.map(({ index, score, text: own }) => ({
      ...{ index, relevance_score: score },
      ...(body.return_documents && { document: { text: own } }),
    })),
    usage,
  };
}
