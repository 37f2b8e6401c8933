// The public types of wick-llm/ai-sdk: a provider for version 7 of the AI SDK (its specification v4).

import type {
  EmbeddingModelV4,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  ProviderV4,
  RerankingModelV4,
} from '@ai-sdk/provider';

type Engine = import('./index.js').Engine;

/** An engine, or a function that returns one, which is called once, at the first request. */
export type EngineSource = Engine | Promise<Engine> | (() => Engine | Promise<Engine>);

export interface WickProvider extends ProviderV4 {
  /** The engine's model. The id is only a name for logs, because an engine has one model. */
  (modelId?: string): LanguageModelV4;
  languageModel(modelId?: string): LanguageModelV4;
  embeddingModel(modelId?: string): EmbeddingModelV4;
  rerankingModel(modelId?: string): RerankingModelV4;
}

/**
 * `providerOptions.wick` of a call may have other fields of ChatCompletionRequest (`min_p`,
 * `grammar`, `salt`, ...), and for an embedding `prefix`, which is put before each text.
 */
export function createWick(engine: EngineSource): WickProvider;

/** The parts of useChat's messages that are read. */
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
  sendMessages(options: {
    messages: Message[];
    abortSignal: AbortSignal | undefined;
    [more: string]: unknown;
    // biome-ignore lint/suspicious/noExplicitAny: UIMessageChunk, whose package (ai) is not needed for the rest
  }): Promise<ReadableStream<any>>;
  /** Resolves to null, because there is nothing to reconnect to. */
  reconnectToStream(options: unknown): Promise<null>;
}
