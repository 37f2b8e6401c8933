import type { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest, Engine } from 'wick-llm';

/** The URL of the word list of the training text, to be fetched and passed to readWords. */
export const wordsUrl: URL;
/** The words with their normal spelling, by their lower-case form. */
export type Words = ReadonlyMap<string, string>;
/** `held`: a sentence with an invented word was generated again with a grammar of known words, or replaced by a refusal. */
export type Chunk = ChatCompletionChunk & { held?: 'again' | 'refused' };
/** Throws a TypeError if it is not a word list, or is incomplete. */
export function readWords(text: string): Words;
/**
 * Returns a GBNF grammar that allows these words in their normal forms, with any digits and
 * punctuation between them.
 */
export function wordGrammar(words: Iterable<string>): string;
/** Sends the request again, not streamed. */
export type Ask = (body: ChatCompletionRequest & { stream?: false }) => Promise<ChatCompletion>;
/** Returns the same answer in whole sentences, with only known words and words from the conversation. */
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
