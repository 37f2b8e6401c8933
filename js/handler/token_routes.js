// js/handler/token_routes.js — the routes of llama.cpp's server that count tokens and render prompts:
// POST /tokenize, /detokenize and /apply-template, GET /props. vLLM's names for the first two are also accepted.

import { fieldWords } from '../base/option_table.js';
import { checkMessages, checkTools } from './chat_route.js';
import { fieldsOf, must } from './fields.js';
import { missingField, refusal } from './http_errors.js';

/** @typedef {import('../index.js').Engine} Engine */
/** @typedef {import('./create_handler.js').TextRoute} TextRoute */

const conversation = { messages: checkMessages, tools: checkTools };

/** @param {Engine} engine @param {Record<string, any>} body @param {AbortSignal} signal @returns {Promise<number[]>} */
function tokensOf(engine, body, signal) {
  const { messages, tools, chat_template_kwargs: variables } = body;
  if (messages) return engine.tokenize(messages, { tools, variables, signal });
  // llama.cpp's server adds no special tokens by default, but vLLM does
  const addSpecial = body.add_special ?? body.add_special_tokens ?? body.prompt !== undefined;
  const parseSpecial = body.parse_special ?? true;
  return engine.tokenize(body.content ?? body.prompt, { addSpecial, parseSpecial, signal });
}

/** @param {Record<string, any>} body @param {string[]} names */
function checkOne(body, names) {
  if (names.some((name) => (body[name] ?? undefined) !== undefined)) return;
  throw missingField(names[0]);
}

/** @param {Uint8Array} bytes of a token @returns {string | number[]} the bytes if they are not UTF-8 */
function pieceOf(bytes) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return Array.from(bytes);
  }
}

/** @type {TextRoute} */
export const tokenize = {
  fields: { ...fieldsOf('tokenize'), ...conversation },
  async answer(engine, body, { signal }) {
    checkOne(body, ['content', 'prompt', 'messages']);
    const tokens = await tokensOf(engine, body, signal);
    const { contextSize } = await engine.info();
    const counted = { count: tokens.length, max_model_len: contextSize };
    if (!body.with_pieces) return { tokens, ...counted };
    const ids = [...new Set(tokens)]; // each id only once, because a text may repeat tokens many times
    const pieces = await engine.tokenBytes(ids, { signal });
    const known = new Map(ids.map((id, index) => [id, pieceOf(pieces[index])]));
    return { tokens: tokens.map((id) => ({ id, piece: known.get(id) })), ...counted };
  },
};

const tokens = must(
  (value) => Array.isArray(value) && value.every((id) => Number.isSafeInteger(id) && id >= 0),
  fieldWords.ids,
);

/** @type {TextRoute} */
export const detokenize = {
  fields: { ...fieldsOf('detokenize'), tokens },
  async answer(engine, body, { signal }) {
    checkOne(body, ['tokens']);
    const { tokenizer } = await engine.info();
    const vocab = tokenizer?.vocab ?? 0;
    const wrong = body.tokens.findIndex((/** @type {number} */ id) => id >= vocab);
    if (wrong >= 0) {
      const at = `tokens[${wrong}]`;
      throw refusal('high_id', [at, vocab, body.tokens[wrong]], { param: at });
    }
    const content = await engine.detokenize(body.tokens, { special: true, signal });
    return { content, prompt: content };
  },
};

/** @type {TextRoute} */
export const template = {
  fields: { ...fieldsOf('template'), ...conversation },
  async answer(engine, body, { signal }) {
    checkOne(body, ['messages']);
    const { tools, chat_template_kwargs: own, add_generation_prompt: addGenerationPrompt } = body;
    const variables = { ...(tools?.length > 0 && { tools }), ...own };
    const options = { addGenerationPrompt: addGenerationPrompt ?? true, variables, signal };
    return { prompt: await engine.applyTemplate(body.messages, options) };
  },
};

/** @param {Engine} engine @param {string} model the model's name @returns {Promise<object>} */
export async function propsOf(engine, model) {
  const { contextSize, chatTemplate, tokenizer, media } = await engine.info();
  return {
    default_generation_settings: { n_ctx: contextSize },
    model_alias: model,
    chat_template: chatTemplate ?? '',
    bos_token: tokenizer?.bos?.text ?? '',
    eos_token: tokenizer?.eos?.text ?? '',
    modalities: { vision: media.includes('image'), audio: media.includes('audio') },
  };
}
