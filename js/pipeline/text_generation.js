// js/pipeline/text_generation.js — the text-generation pipeline, for one or several texts or chats.

import { WickError } from '../index.js';
import { settingsOf } from './generation_options.js';

/** @import { ChatMessage, Engine } from '../index.js' */
/** @import { GenerationOptions as Options } from '../pipeline.js' */
/**
 * @typedef {(piece: string) => boolean} Take receives a piece; returns false to stop
 */

/** @param {unknown} input @returns {input is ChatMessage[]} */
export const isChat = (input) =>
  Array.isArray(input) &&
  input.length > 0 &&
  input.every((one) => typeof one === 'object' && one !== null && 'role' in one);

/** @param {Options} options @returns {Take} */
export function takerOf({ streamer, stopping_criteria: criteria }) {
  const all = [criteria ?? []].flat();
  if ((streamer ?? undefined) !== undefined && typeof streamer?.on_text !== 'function') {
    throw new WickError('ARG', 'streamer must be a TextStreamer from wick-llm/pipeline');
  }
  if (!all.every((one) => typeof (/** @type {any} */ (one)?.interrupted) === 'boolean')) {
    const message =
      'stopping_criteria must be an InterruptableStoppingCriteria from wick-llm/pipeline';
    throw new WickError('ARG', message);
  }
  return (piece) => {
    if (piece !== '') streamer?.on_text(piece);
    return !all.some(({ interrupted }) => interrupted);
  };
}

/**
 * @param {Engine} engine
 * @param {ChatMessage[]} messages
 * @param {Options} options
 * @param {Take} take
 * @returns {Promise<ChatMessage[]>} an answer for each sequence
 */
export async function answersOf(engine, messages, options, take) {
  const { tools, tokenizer_encode_kwargs: variables = {}, streamer } = options;
  const toolOptions = tools ? { tools } : {};
  const settings = await settingsOf(options, () =>
    engine.countTokens(messages, { ...toolOptions, variables }),
  );
  const isText = messages.every(({ content }) => !Array.isArray(content));
  if (streamer && !streamer.skip_prompt && isText) {
    take(await engine.applyTemplate(messages, { variables: { ...variables, ...toolOptions } }));
  }
  const body = /** @type {any} */ ({
    ...settings,
    ...toolOptions,
    messages,
    chat_template_kwargs: variables,
  });
  const chunks = await engine.chat.completions.create(
    { ...body, stream: /** @type {const} */ (true) },
    { signal: options.signal ?? null },
  );
  const answers = Array.from({ length: settings.n }, () => ({
    ...{ message: /** @type {ChatMessage} */ ({ role: 'assistant', content: '' }), finish: '' },
    calls: /** @type {NonNullable<ChatMessage['tool_calls']>} */ ([]),
  }));
  for await (const { choices } of chunks) {
    const [{ index, delta, finish_reason }] = choices;
    const answer = answers[index];
    answer.finish = finish_reason ?? answer.finish;
    answer.message.content += delta.content ?? '';
    if (delta.reasoning_content) {
      answer.message.reasoning_content =
        (answer.message.reasoning_content ?? '') + delta.reasoning_content;
    }
    for (const { index: at, id = '', function: part } of delta.tool_calls ?? []) {
      answer.calls[at] ??= { id, type: 'function', function: { name: '', arguments: '' } };
      answer.calls[at].function.name += part.name ?? '';
      answer.calls[at].function.arguments += part.arguments;
    }
    if (!take(delta.content ?? '')) break;
  }
  return answers.map(({ message, calls, finish }) =>
    finish === 'tool_calls' ? { ...message, tool_calls: calls } : message,
  );
}

/**
 * @param {Engine} engine
 * @param {string} prompt
 * @param {Options} options
 * @param {Take} take
 * @returns {Promise<string[]>} a continuation for each sequence
 */
async function continuationsOf(engine, prompt, options, take) {
  const addSpecial = options.add_special_tokens ?? true;
  const tokens = await engine.tokenize(prompt, { addSpecial });
  const { n, ...fields } = await settingsOf(options, async () => tokens.length);
  if (options.streamer && !options.streamer.skip_prompt) take(prompt);
  const settings = {
    ...{ temperature: fields.temperature, topK: fields.top_k, topP: fields.top_p },
    ...{ minP: fields.min_p, typicalP: fields.typical_p ?? 1, maxTokens: fields.max_tokens },
    ...{ repeatPenalty: fields.repeat_penalty ?? 1, penaltyLast: fields.repeat_last_n },
    ...{ stop: fields.stop, seed: fields.seed, signal: options.signal ?? null },
  };
  const generations = engine.generateMany(tokens, { ...settings, n });
  return Promise.all(
    generations.map(async (generation) => {
      let text = '';
      for await (const piece of generation) {
        text += piece;
        if (!take(piece)) break;
      }
      return text;
    }),
  );
}

/**
 * @param {Engine} engine
 * @param {string | ChatMessage[]} input
 * @param {Options} options
 * @returns {Promise<{generated_text: string | ChatMessage[]}[]>}
 */
async function generate(engine, input, options) {
  const take = takerOf(options);
  if (typeof input !== 'string') {
    const answers = await answersOf(engine, input, options, take);
    options.streamer?.end();
    return answers.map((answer) => ({ generated_text: [...input, answer] }));
  }
  const texts = await continuationsOf(engine, input, options, take);
  options.streamer?.end();
  const before = options.return_full_text === false ? '' : input;
  return texts.map((text) => ({ generated_text: before + text }));
}

/** @param {Engine} engine */
export function textGeneration(engine) {
  /** @param {unknown} input @param {Options} [options] */
  return async (input, options = {}) => {
    const isOne = typeof input === 'string' || isChat(input);
    const inputs = isOne ? [input] : input;
    const isKnown =
      Array.isArray(inputs) && inputs.every((one) => typeof one === 'string' || isChat(one));
    if (!isKnown || inputs.length === 0) {
      throw new WickError('ARG', 'inputs must be a string, a chat, or an array of these');
    }
    if (options.streamer && (inputs.length > 1 || (options.num_return_sequences ?? 1) > 1)) {
      throw new WickError('ARG', 'streamer: supports only one output, but the call has several');
    }
    const made = await Promise.all(
      inputs.map((one) => generate(engine, /** @type {any} */ (one), options)),
    );
    return isOne ? made[0] : made;
  };
}
