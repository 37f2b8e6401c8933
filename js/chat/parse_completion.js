// js/chat/parse_completion.js — chat.completions.parse: parses and validates an answer that is constrained to a JSON
// schema. The schema is a Standard Schema that provides its JSON schema (standardschema.dev), or the result of
// OpenAI's helpers.

import { WickError } from '../index.js';

/** @import { ChatCompletion, ChatCompletions, StandardSchema } from '../index.js' */
/**
 * How an answer is requested and parsed.
 * @typedef {{format: any, read: (text: string) => unknown}} Reading
 */

const TARGET = 'draft-2020-12';

/**
 * @param {string} text
 * @returns {unknown} the parsed value; the text may have been cut by a stop string
 */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new WickError('INVALID', `The answer is not JSON: ${error}`, { text });
  }
}

/** @param {StandardSchema} schema @returns {Reading} */
function readingOf(schema) {
  const { validate, jsonSchema, vendor } = schema['~standard'];
  if (typeof validate !== 'function') throw new WickError('ARG', 'schema: has no validate()');
  if (!jsonSchema) {
    throw new WickError(
      'ARG',
      `The schema of ${vendor} does not provide a JSON schema: pass a response_format`,
    );
  }
  return {
    format: {
      type: 'json_schema',
      json_schema: { name: 'answer', schema: jsonSchema.input({ target: TARGET }) },
    },
    async read(text) {
      const result = await validate(parsed(text));
      if (!result.issues) return result.value;
      const [{ path = [], message }] = result.issues;
      const at = path.map((part) => (typeof part === 'object' ? part.key : part)).join('.');
      const words = `The answer does not match the schema: ${at ? `${at}: ` : ''}${message}`;
      throw new WickError('INVALID', words, { text, issues: result.issues });
    },
  };
}

/** @param {any} format @returns {Reading} */
function readingOfFormat(format) {
  if (format?.['~standard']) return readingOf(format);
  const type = format?.type ?? 'text';
  if (type === 'text') throw new WickError('ARG', 'parse needs a schema as its response_format');
  // from zodResponseFormat and similar helpers
  return { format, read: format.$parseRaw ?? parsed };
}

/**
 * @param {any} body
 * @returns {string} the start of the answer that the prompt already contains: the content of a last
 * message with `prefix`
 */
function begunOf(body) {
  const { prefix, content } = body?.messages?.at?.(-1) ?? {};
  if (prefix !== true) return '';
  const parts = Array.isArray(content) ? content : [{ text: content }];
  return parts.map(({ text }) => text ?? '').join('');
}

/**
 * @param {ChatCompletions} completions
 * @param {any} body
 * @param {import('../index.js').ChatCallOptions} [options]
 */
export async function parseCompletion(completions, body, options) {
  if (body?.stream)
    throw new WickError('ARG', 'parse does not support streaming: stream must be false');
  const { format, read } = readingOfFormat(body?.response_format);
  const wanted = { ...body, response_format: format, stream: /** @type {const} */ (false) };
  const reply = await completions.create(
    /** @type {import('../index.js').ChatCompletionRequest & {stream: false}} */ (wanted),
    options,
  );
  for (const { message, finish_reason: reason } of reply.choices) {
    const own = /** @type {any} */ (message);
    if (reason === 'length') {
      const words = 'The answer is incomplete: it reached max_tokens or the end of the context';
      throw new WickError('INCOMPLETE', words, { text: message.content });
    }
    own.parsed = reason === 'tool_calls' ? null : await read(begunOf(body) + message.content);
    for (const { function: called } of own.tool_calls ?? []) {
      called.parsed_arguments = JSON.parse(called.arguments);
    }
  }
  return reply;
}
