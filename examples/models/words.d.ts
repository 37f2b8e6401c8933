import type { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest, Engine } from 'wick-llm';

/** The address of the words of the training text, to be fetched and passed to readWords. */
export const wordsUrl: URL;
/** As they are written, each alone in lower case. */
export type Words = ReadonlyMap<string, string>;
/** `held`: a sentence with an invented word was generated again with a grammar of known words, or was refused. */
export type Chunk = ChatCompletionChunk & { held?: 'again' | 'refused' };
/** Throws a TypeError if it is not such a list, or incomplete. */
export function readWords(text: string): Words;
/** GBNF of texts that have these words in their usual forms, and any digits and marks between them. */
export function wordGrammar(words: Iterable<string>): string;
/** Sends the request again, not streamed. */
export type Ask = (body: ChatCompletionRequest & { stream?: false }) => Promise<ChatCompletion>;
/** The same answer in whole sentences, of known words and those of the conversation. */
export function held(
  chunks: AsyncIterable<Chunk>,
  body: ChatCompletionRequest,
  known: Words,
  ask: Ask,
): AsyncGenerator<Chunk>;
/** Sends the request; the pieces of the answer do not contain invented words. */
export function answerInKnownWords(
  engine: Engine,
  body: ChatCompletionRequest,
  known: Words,
): AsyncGenerator<Chunk>;
