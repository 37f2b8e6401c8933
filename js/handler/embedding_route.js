// js/handler/embedding_route.js — POST /v1/embeddings in OpenAI's format, POST /embedding in that of
// llama.cpp's server, and POST /v1/rerank in the formats of Jina and Cohere (documents) and of
// text-embeddings-inference (texts).

import { fieldWords } from '../base/option_table.js';
import { checkFields, checkTogether, fieldsOf, isText, must, pickFields } from './fields.js';
import { missingField, refusal } from './http_errors.js';
import { inputsOf } from './native_input.js';

/** @typedef {import('../index.js').Engine} Engine */

/** @type {Record<string, import('./fields.js').Check>} */
const fields = {
  ...fieldsOf('every', 'embedding'), // native_input.js checks the input
  encoding_format: must(
    (value) => value === 'float' || value === 'base64',
    fieldWords.encoding_format,
  ),
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
  const input = await inputsOf(engine, body.input, 'input', signal);
  return engine.embeddings.create({ ...request, input, model }, { signal });
}

const nativeFields = fieldsOf('every', 'native_embedding');
export const nativeEmbeddingFields = new Set(Object.keys(nativeFields));

/**
 * @param {Engine} engine
 * @param {Record<string, any>} body
 * @param {import('./create_handler.js').Asked} asked
 */
export async function answerNativeEmbedding(engine, body, { signal }) {
  checkFields(body, nativeFields);
  const { input, content, embd_normalize: norm } = body;
  if ((input ?? content ?? undefined) === undefined) {
    throw missingField('input');
  }
  if ((input ?? undefined) !== undefined && (content ?? undefined) !== undefined) {
    throw refusal('same_field', ['content', 'input'], { param: 'content' });
  }
  const inputs = await inputsOf(engine, input ?? content, 'input', signal);
  const vectors = await engine.embed(inputs, { normalize: norm !== -1, signal });
  return vectors.map((vector, index) => ({ index, embedding: [Array.from(vector)] }));
}

const documents = must(
  (value) =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((one) => isText(one) || isText(one?.text)),
  fieldWords.strings,
);

/** @type {Record<string, import('./fields.js').Check>} */
const rankFields = {
  ...fieldsOf('every', 'rerank'),
  ...{ documents, texts: documents },
};
export const rerankFields = new Set(Object.keys(rankFields));

/** @param {Record<string, any>} body that was checked @returns {string[]} its documents */
function documentsOf(body) {
  const { texts, documents: own } = body;
  if (texts && own) {
    throw refusal('same_field', ['texts', 'documents'], { param: 'texts' });
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
