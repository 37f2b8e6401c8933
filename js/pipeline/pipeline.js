// js/pipeline/pipeline.js — pipeline(task, model, options), with the tasks, results and option names of transformers.js.

import { createEngine, WickError } from '../index.js';
import { imageTextToText, speechRecognition } from './media.js';
import { textGeneration } from './text_generation.js';
import { featureExtraction, textClassification } from './vectors.js';

/** @import { Engine, EngineOptions } from '../index.js' */
/** @import { PipelineOptions } from '../pipeline.js' */

/** @type {Record<string, (engine: Engine) => (input: any, ...more: any[]) => Promise<any>>} */
const tasks = {
  'text-generation': textGeneration,
  'feature-extraction': featureExtraction,
  'text-classification': textClassification,
  'sentiment-analysis': textClassification,
  'image-text-to-text': imageTextToText,
  'automatic-speech-recognition': speechRecognition,
};

/**
 * Options of transformers.js that concern its own files and how they are run. They have no effect.
 */
const withoutEffect = [
  ...['dtype', 'device', 'revision', 'cache_dir', 'local_files_only', 'subfolder', 'config'],
  ...['model_file_name', 'use_external_data_format', 'session_options'],
];

/** @param {unknown} model @returns {Partial<EngineOptions>} */
function sourceOf(model) {
  if (model instanceof URL) return { url: model };
  if (typeof model === 'string') {
    const isAddress = /^[a-z][a-z\d+.-]+:/i.test(model);
    const hasFiles = /** @type {any} */ (globalThis).process?.versions?.node !== undefined;
    return isAddress || !hasFiles ? { url: model } : { file: model };
  }
  if (typeof model === 'object' && model !== null) return model;
  throw new WickError('ARG', 'A pipeline needs a model: a URL, a path, options or an engine');
}

/** @param {unknown} model @param {PipelineOptions['progress_callback']} tell @returns {EngineOptions['onProgress']} */
function progressOf(model, tell) {
  if ((tell ?? undefined) === undefined) return undefined;
  if (typeof tell !== 'function')
    throw new WickError('ARG', 'progress_callback must be a function');
  const name = typeof model === 'string' || model instanceof URL ? String(model) : 'model';
  const file = name.split('/').at(-1) ?? name;
  let last = 0;
  tell({ status: 'initiate', name, file });
  tell({ status: 'download', name, file });
  return ({ loaded, total = 0, phase }) => {
    const progress = total > 0 ? (100 * loaded) / total : 0;
    if (loaded > last) tell({ status: 'progress', name, file, progress, loaded, total });
    last = loaded;
    if (phase === 'ready') tell({ status: 'done', name, file });
  };
}

/** @param {unknown} model @param {PipelineOptions} options @returns {Promise<Engine>} */
async function openEngine(model, { progress_callback: tell, ...options }) {
  const source = sourceOf(model);
  if ('createSession' in source) return /** @type {any} */ (source);
  for (const name of withoutEffect) delete (/** @type {any} */ (options)[name]);
  const onProgress = progressOf(model, tell);
  const progressOption = onProgress ? { onProgress } : {};
  return createEngine(/** @type {EngineOptions} */ ({ ...options, ...source, ...progressOption }));
}

/** Returns the tokenizer functions that users of transformers.js call. @param {Engine} engine */
const tokenizerOf = (engine) => ({
  encode: (/** @type {string} */ text) => engine.tokenize(text),
  decode: (/** @type {ArrayLike<number>} */ tokens, { skip_special_tokens: skips = false } = {}) =>
    engine.detokenize(tokens, { special: !skips }),
  apply_chat_template: (
    /** @type {import('../index.js').ChatMessage[]} */ messages,
    { tokenize = true, add_generation_prompt: addGenerationPrompt = false, ...variables } = {},
  ) => {
    if (tokenize) throw new WickError('UNSUPPORTED', 'apply_chat_template needs tokenize: false');
    return engine.applyTemplate(messages, { addGenerationPrompt, variables });
  },
});

/**
 * @param {string} task
 * @param {unknown} model
 * @param {PipelineOptions} [options]
 * @returns {Promise<any>} a function of the task's inputs and options
 */
export async function pipeline(task, model, options = {}) {
  if (!Object.hasOwn(tasks, task)) {
    const known = Object.keys(tasks).join(', ');
    throw new WickError('UNSUPPORTED', `Unknown pipeline task ${task}; the tasks are ${known}`);
  }
  const engine = await openEngine(model, options);
  const dispose = () => engine.close();
  options.progress_callback?.({ status: 'ready', task, model: String(model) });
  return Object.assign(tasks[task](engine), {
    ...{ task, engine, dispose, tokenizer: tokenizerOf(engine) },
    [Symbol.asyncDispose]: dispose,
  });
}
