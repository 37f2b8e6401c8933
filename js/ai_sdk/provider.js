// js/ai_sdk/provider.js — createWick: an engine as a provider of the AI SDK (specification v4 of @ai-sdk/provider).

import { WickError } from '../index.js';
import { WickLanguageModel } from './language_model.js';
import { textOfJson, unsupported } from './prompt.js';

/** @import { EngineSource } from '../ai-sdk.js' */
/** @import { Engine } from '../index.js' */
/** @import { EmbeddingModelV4 as EmbeddingModel, RerankingModelV4 as RerankingModel } from '@ai-sdk/provider' */

const MODEL_ID = 'model';

/** @param {unknown} made @returns {Engine} */
function checkEngine(made) {
  const engine = /** @type {Engine | undefined} */ (made);
  if (engine?.chat?.completions) return engine;
  throw new WickError('ARG', 'createWick needs an engine, or a function that returns one');
}

/** @param {EngineSource} source @returns {() => Promise<Engine>} calls the function only once, unless it fails */
function engineOf(source) {
  if (typeof source !== 'function') {
    if (!('then' in Object(source))) checkEngine(source);
    return async () => checkEngine(await source);
  }
  /** @type {Promise<Engine> | undefined} */
  let engine;
  return () => {
    engine ??= (async () => checkEngine(await source()))();
    engine.catch(() => {
      engine = undefined;
    });
    return engine;
  };
}

/** @param {EngineSource} source */
export function createWick(source) {
  const engine = engineOf(source);
  const languageModel = (modelId = MODEL_ID) => new WickLanguageModel(engine, modelId);
  return Object.assign(languageModel.bind(undefined), {
    specificationVersion: /** @type {const} */ ('v4'),
    languageModel,
    embeddingModel: (modelId = MODEL_ID) => embeddingModel(engine, modelId),
    rerankingModel: (modelId = MODEL_ID) => rerankingModel(engine, modelId),
    imageModel() {
      throw new WickError('UNSUPPORTED', 'imageModel: Wick has no image models');
    },
  });
}

/** @param {() => Promise<Engine>} engine @param {string} modelId @returns {EmbeddingModel} */
function embeddingModel(engine, modelId) {
  return {
    specificationVersion: 'v4',
    provider: 'wick.embedding',
    modelId,
    maxEmbeddingsPerCall: Number.POSITIVE_INFINITY,
    supportsParallelCalls: true,
    async doEmbed({ values, dimensions, abortSignal, providerOptions }) {
      const { prefix = '', ...others } = /** @type {any} */ (providerOptions?.wick ?? {});
      const warnings = Object.keys(others).map((name) =>
        unsupported(`providerOptions.wick.${name}`),
      );
      if (values.length === 0) return { embeddings: [], usage: { tokens: 0 }, warnings };
      const input = values.map((value) => prefix + value);
      const wanted = { input, dimensions: dimensions ?? null };
      const { embeddings } = await engine();
      const { data, usage } = await embeddings.create(wanted, { signal: abortSignal ?? null });
      return {
        embeddings: data.map(({ embedding }) => /** @type {number[]} */ (embedding)),
        usage: { tokens: usage.prompt_tokens },
        warnings,
      };
    },
  };
}

/** @param {() => Promise<Engine>} engine @param {string} modelId @returns {RerankingModel} */
function rerankingModel(engine, modelId) {
  return {
    specificationVersion: 'v4',
    provider: 'wick.reranking',
    modelId,
    async doRerank({ query, documents, topN, abortSignal }) {
      const { values } = documents;
      const texts = documents.type === 'text' ? documents.values : values.map(textOfJson);
      const options = topN === undefined ? {} : { topN };
      const ranker = await engine();
      const { results } = await ranker.rerank(query, texts, {
        ...options,
        signal: abortSignal ?? null,
      });
      const ranking = results.map(({ index, score }) => ({ index, relevanceScore: score }));
      if (documents.type === 'text') return { ranking, warnings: [] };
      const details = 'objects are passed to the model as JSON';
      return {
        ranking,
        warnings: [{ type: 'compatibility', feature: 'object documents', details }],
      };
    },
  };
}
