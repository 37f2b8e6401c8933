// js/handler/embedding_route.js — POST /v1/embeddings in OpenAI's format, POST /embedding in that of
// llama.cpp's server, and POST /v1/rerank in the formats of Jina and Cohere (documents) and of
// text-embeddings-inference (texts).

import { fieldWords } from '../base/option_table.js';
import { checkTogether, fieldsOf, isOneOf, isText, must, pickFields } from './fields.js';
import { missingField, refusal } from './http_errors.js';
import { inputsOf } from './native_input.js';

/** @typedef {import('./create_handler.js').TextRoute} TextRoute */

const format = must(isOneOf('float', 'base64'), fieldWords.encoding_format);

/** @type {TextRoute} */
export const embeddings = {
  fields: { ...fieldsOf('every', 'embedding'), encoding_format: format },
  async answer(engine, body, { signal, model }) {
    checkTogether(body, 'input');
    const request = /** @type {any} */ (pickFields(body, embeddings.fields));
    const input = await inputsOf(engine, body.input, 'input', signal);
    return engine.embeddings.create({ ...request, input, model }, { signal });
  },
};

/** @type {TextRoute} */
export const nativeEmbedding = {
  fields: fieldsOf('every', 'native_embedding'),
  async answer(engine, { input, content, embd_normalize: norm }, { signal }) {
    if ((input ?? content ?? undefined) === undefined) throw missingField('input');
    if ((input ?? undefined) !== undefined && (content ?? undefined) !== undefined) {
      throw refusal('same_field', ['content', 'input'], { param: 'content' });
    }
    const inputs = await inputsOf(engine, input ?? content, 'input', signal);
    const vectors = await engine.embed(inputs, { normalize: norm !== -1, signal });
    return vectors.map((vector, index) => ({ index, embedding: [Array.from(vector)] }));
  },
};

const documents = must(
  (value) =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((one) => isText(one) || isText(one?.text)),
  fieldWords.strings,
);

/** @param {Record<string, any>} body that was checked @returns {string[]} its documents */
function documentsOf(body) {
  const { texts, documents: own } = body;
  if (texts && own) {
    throw refusal('same_field', ['texts', 'documents'], { param: 'texts' });
  }
  if (!texts) checkTogether(body, 'documents');
  return (texts ?? own).map((/** @type {any} */ one) => (isText(one) ? one : one.text));
}

/** @type {TextRoute} */
export const rerank = {
  fields: { ...fieldsOf('every', 'rerank'), documents, texts: documents },
  async answer(engine, body, { signal, model }) {
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
  },
};
