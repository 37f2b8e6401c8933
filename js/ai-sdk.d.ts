// The public types of wick-llm/ai-sdk: a provider for version 7 of the AI SDK (its specification v4).

import type {
  EmbeddingModelV4,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  ProviderV4,
  RerankingModelV4,
} from '@ai-sdk/provider';

type Engine = import('./index.js').Engine;

/** An engine, or a function that returns one. The function is called once, for the first request. */
export type EngineSource = Engine | Promise<Engine> | (() => Engine | Promise<Engine>);

export interface WickProvider extends ProviderV4 {
  /** The engine's model. The id is only a name for logs, because an engine has one model. */
  (modelId?: string): LanguageModelV4;
  /**
   * @example
   * const model = createWick(engine).languageModel('smollm2');
   * const { text } = await generateText({ model, prompt: 'Hello!', maxOutputTokens: 4, temperature: 0 });
   * console.log(text);
   * //=> Hello!
   */
  languageModel(modelId?: string): LanguageModelV4;
  /**
   * @example
   * const model = createWick(engine).embeddingModel();
   * const { embedding } = await embed({ model, value: 'a small cat' });
   * console.log(embedding.length);
   * //=> 576
   */
  embeddingModel(modelId?: string): EmbeddingModelV4;
  /**
   * @example
   * const model = createWick(engine).rerankingModel();
   * const documents = ['The sky is blue.', 'Pandas eat bamboo.'];
   * const { ranking } = await rerank({ model, query: 'What do pandas eat?', documents });
   * console.log(ranking[0].document);
   */
  rerankingModel(modelId?: string): RerankingModelV4;
}

/**
 * A call's `providerOptions.wick` accepts other fields of ChatCompletionRequest (`min_p`,
 * `grammar`, `salt`, ...). For embeddings it accepts `prefix`, which is prepended to each input.
 *
 * @example
 * const wick = createWick(engine);
 * const { text } = await generateText({
 *   model: wick(),
 *   prompt: 'What is 2 + 2?',
 *   temperature: 0,
 * });
 * console.log(text);
 * //=> The answer to this classic math problem is 4.
 */
export function createWick(engine: EngineSource): WickProvider;

/** The fields of useChat's messages that the transport uses. */
interface Message {
  id: string;
  role: 'system' | 'user' | 'assistant';
  parts: { type: string }[];
}

export interface WickChatTransportOptions
  extends Omit<LanguageModelV4CallOptions, 'prompt' | 'abortSignal' | 'includeRawChunks'> {
  /** The function that createWick returns. */
  model: LanguageModelV4;
  /** The system prompt. */
  system?: string;
}

/** A ChatTransport of the AI SDK, so that useChat works in a page without a server. */
export class WickChatTransport {
  constructor(options: WickChatTransportOptions);
  /**
   * @example
   * const transport = new WickChatTransport({ model: createWick(engine)(), temperature: 0 });
   * const parts = [{ type: 'text', text: 'What is 2 + 2?' }];
   * const messages = [{ id: '1', role: 'user', parts }];
   * const stream = await transport.sendMessages({ messages, abortSignal: undefined });
   * let text = '';
   * for await (const part of stream) if (part.type === 'text-delta') text += part.delta;
   * console.log(text);
   * //=> The answer to this classic math problem is 4.
   */
  sendMessages(options: {
    messages: Message[];
    abortSignal: AbortSignal | undefined;
    [more: string]: unknown;
    // biome-ignore lint/suspicious/noExplicitAny: UIMessageChunk, whose package (ai) is not needed for the rest
  }): Promise<ReadableStream<any>>;
  /**
   * Resolves to null, because there is nothing to reconnect to.
   *
   * @example
   * const transport = new WickChatTransport({ model: createWick(engine)() });
   * console.log(await transport.reconnectToStream({ chatId: '1' }));
   * //=> null
   */
  reconnectToStream(options: unknown): Promise<null>;
}
