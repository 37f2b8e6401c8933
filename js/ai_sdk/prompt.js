// js/ai_sdk/prompt.js — converts the AI SDK's prompts and settings to a chat completion request. A
// setting that the engine does not support causes a warning, or an error if it would change the
// answer.

import { WickError } from '../index.js';

/** @import { ChatCompletionRequest as Request, ChatMessage } from '../index.js' */
/** @import { LanguageModelV4CallOptions as CallOptions } from '@ai-sdk/provider' */
/** @import { LanguageModelV4FilePart as FilePart } from '@ai-sdk/provider' */
/** @import { LanguageModelV4FunctionTool as FunctionTool } from '@ai-sdk/provider' */
/** @import { LanguageModelV4Message as Message } from '@ai-sdk/provider' */
/** @import { LanguageModelV4ToolResultOutput as ToolOutput, SharedV4Warning as Warning } from '@ai-sdk/provider' */

/** @param {string} feature @param {string} [details] @returns {Warning} */
export const unsupported = (feature, details) =>
  details === undefined
    ? { type: 'unsupported', feature }
    : { type: 'unsupported', feature, details };

/** @param {unknown} value @returns {string} a string unchanged, anything else as JSON */
export const textOfJson = (value) =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? '');

/** @param {FilePart} part @param {string} [allowed] the supported kinds, for an error message @returns {string} */
function textOfFile({ data, mediaType }, allowed = 'text, images and audio are') {
  if (data.type === 'text') return data.text;
  const isText = /^text\b|^application\/(json|xml)\b/.test(mediaType);
  if (!isText || data.type !== 'data') {
    throw new WickError(
      'UNSUPPORTED',
      `A file of type ${mediaType} is in the prompt: only ${allowed} supported`,
    );
  }
  const bytes =
    typeof data.data === 'string'
      ? Uint8Array.from(atob(data.data), (letter) => letter.charCodeAt(0))
      : data.data;
  return new TextDecoder().decode(bytes);
}

/** @param {ToolOutput} output @returns {ChatMessage['content']} */
function contentOfOutput(output) {
  switch (output.type) {
    case 'text':
    case 'error-text':
      return output.value;
    case 'json':
    case 'error-json':
      return textOfJson(output.value);
    case 'execution-denied':
      return output.reason ?? 'The user refused to run this tool.';
    case 'content':
      return contentOf(
        /** @type {any[]} */ (output.value).filter(
          ({ type }) => type === 'text' || type === 'file',
        ),
      );
  }
}

/** @param {Extract<Message, {role: 'assistant'}>} message @returns {ChatMessage[]} */
function assistantMessages({ content }) {
  /** @type {ChatMessage} */
  const message = { role: 'assistant', content: '' };
  /** @type {NonNullable<ChatMessage['tool_calls']>} */
  const calls = [];
  /** @type {ChatMessage[]} */
  const results = [];
  for (const part of content) {
    if (part.type === 'text') message.content += part.text;
    else if (part.type === 'file') message.content += textOfFile(part, 'text is');
    else if (part.type === 'reasoning') {
      message.reasoning_content = (message.reasoning_content ?? '') + part.text;
    } else if (part.type === 'tool-call') {
      const called = { name: part.toolName, arguments: textOfJson(part.input) };
      calls.push({ id: part.toolCallId, type: 'function', function: called });
    } else if (part.type === 'tool-result') results.push(toolMessage(part));
  }
  if (calls.length > 0) message.tool_calls = calls;
  return [message, ...results];
}

/** @param {{toolCallId: string, toolName: string, output: ToolOutput}} result @returns {ChatMessage} */
const toolMessage = ({ toolCallId, toolName, output }) => ({
  role: 'tool',
  tool_call_id: toolCallId,
  name: toolName,
  content: contentOfOutput(output),
});

/**
 * @param {FilePart} part
 * @returns {import('../index.js').ChatMediaPart | undefined} undefined if it is neither an image
 * nor audio
 */
function mediaOf({ data, mediaType }) {
  const kind = /^(image|audio)\b/.exec(mediaType)?.[1];
  if (kind === undefined || (data.type !== 'data' && data.type !== 'url')) return undefined;
  const given = data.type === 'url' ? data.url : data.data;
  const isBase64 = data.type === 'data' && typeof given === 'string';
  const from = isBase64 ? `data:${mediaType};base64,${given}` : given;
  return kind === 'image' ? { type: 'image', image: from } : { type: 'audio', audio: from };
}

/**
 * @param {Extract<Message, {role: 'user'}>['content']} parts
 * @returns {ChatMessage['content']} a string, or parts if it has media
 */
function contentOf(parts) {
  const found = parts.map((part) => {
    if (part.type === 'text') return { type: /** @type {const} */ ('text'), text: part.text };
    return mediaOf(part) ?? { type: /** @type {const} */ ('text'), text: textOfFile(part) };
  });
  const texts = found.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  return texts.length === found.length ? texts.join('') : found;
}

/** @param {Message} message @returns {ChatMessage[]} */
function messagesOf(message) {
  switch (message.role) {
    case 'system':
      return [{ role: 'system', content: message.content }];
    case 'user':
      return [{ role: 'user', content: contentOf(message.content) }];
    case 'assistant':
      return assistantMessages(message);
    case 'tool':
      return message.content.flatMap((part) =>
        part.type === 'tool-result' ? [toolMessage(part)] : [],
      );
  }
}

/**
 * Converts a conversation. If the last message is the assistant's, the reply continues it. With a
 * schema, the reply is a separate message, because the SDK parses only the reply.
 * @param {CallOptions} options
 * @returns {ChatMessage[]}
 */
function conversationOf({ prompt, responseFormat }) {
  const messages = prompt.flatMap(messagesOf);
  const last = messages.at(-1);
  if (responseFormat?.type === 'json') return messages;
  if (messages.length > 1 && last?.role === 'assistant' && last.content && !last.tool_calls) {
    last.prefix = true;
  }
  return messages;
}

/** @param {CallOptions} options @param {Warning[]} warnings @returns {Partial<Request>} */
function toolsOf({ tools = [], toolChoice }, warnings) {
  /** @type {FunctionTool[]} */
  const functions = [];
  for (const tool of tools) {
    if (tool.type === 'function') functions.push(tool);
    else warnings.push(unsupported(`tool ${tool.id}`, 'only functions can be called'));
  }
  if (functions.length === 0) return {};
  const named = toolChoice?.type === 'tool' ? toolChoice.toolName : undefined;
  const choice =
    named === undefined
      ? (toolChoice?.type ?? 'auto')
      : { type: 'function', function: { name: named } };
  return {
    tools: functions.map(({ name, description, inputSchema, strict }) => ({
      type: 'function',
      function: {
        name,
        ...(description === undefined ? {} : { description }),
        parameters: inputSchema,
        ...(strict === undefined ? {} : { strict }),
      },
    })),
    tool_choice: /** @type {any} */ (choice),
  };
}

/** With tools the model either calls one or writes text that matches the schema. @param {CallOptions} options @returns {Partial<Request>} */
function formatOf({ responseFormat }) {
  if (responseFormat?.type !== 'json') return {};
  const { schema, name = 'answer' } = responseFormat;
  if (!schema) return { response_format: { type: 'json_object' } };
  const json_schema = { name, schema: /** @type {Record<string, unknown>} */ (schema) };
  return { response_format: { type: 'json_schema', json_schema } };
}

/**
 * @param {CallOptions} options
 * @returns {{body: Request, warnings: Warning[]}}
 */
export function requestOf(options) {
  /** @type {Warning[]} */
  const warnings = [];
  const tools = toolsOf(options, warnings);
  const { reasoning = 'provider-default' } = options;
  const fields = /** @type {Partial<Request>} */ (options.providerOptions?.wick ?? {});
  if ((fields.n ?? 1) !== 1)
    throw new WickError('ARG', 'n must be 1: each call returns one answer');
  const body = {
    messages: conversationOf(options),
    max_tokens: options.maxOutputTokens ?? null,
    temperature: options.temperature ?? null,
    top_p: options.topP ?? null,
    top_k: options.topK ?? null,
    presence_penalty: options.presencePenalty ?? null,
    frequency_penalty: options.frequencyPenalty ?? null,
    stop: options.stopSequences ?? null,
    seed: options.seed ?? null,
    reasoning_effort: reasoning === 'provider-default' ? null : reasoning,
    ...tools,
    ...formatOf(options),
    ...fields,
  };
  return { body, warnings };
}
