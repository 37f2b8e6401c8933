// The public types of wick-llm/prompt-api. They are those of @types/dom-chromium-ai, whose names are global, without
// what only Chrome's own model has.

type Engine = import('./index.js').Engine;
type EngineOptions = import('./index.js').EngineOptions;
type Progress = import('./index.js').Progress;

/** An engine, options of createEngine, or a function that makes one; loaded with the first session. */
export type ModelSource =
  | Engine
  | EngineOptions
  | ((how: { onProgress: (progress: Progress) => void }) => Engine | Promise<Engine>);

export type Availability = 'unavailable' | 'downloadable' | 'downloading' | 'available';

export type SamplingMode =
  | 'most-predictable'
  | 'predictable'
  | 'slightly-predictable'
  | 'balanced'
  | 'slightly-creative'
  | 'creative'
  | 'most-creative';

export interface MessagePart {
  type: 'text' | 'tool-call' | 'tool-response' | 'image' | 'audio';
  value: unknown;
}

export interface Message {
  role: 'system' | 'user' | 'assistant';
  content: string | MessagePart[];
  /** In a last message of the assistant: the answer begins with it. */
  prefix?: boolean;
}

export type Prompt = string | Message[];

export interface Expected {
  type: 'text' | 'image' | 'audio' | 'tool-call' | 'tool-response';
  languages?: string[];
}

export interface Tool {
  name: string;
  description: string;
  inputSchema: object;
  /** Without it, and with the type `tool-call` among expectedOutputs, prompt() gives the calls to the page. */
  // biome-ignore lint/suspicious/noExplicitAny: what the schema describes, which types do not know
  execute?: (input: any) => Promise<string> | string;
}

export interface Thinking {
  /** `none` by default. */
  effort?: 'none' | 'low' | 'medium' | 'high';
}

export interface CoreOptions {
  expectedInputs?: Expected[];
  expectedOutputs?: Expected[];
  tools?: Tool[];
  /** Not with topK and temperature. */
  samplingMode?: SamplingMode;
  topK?: number;
  temperature?: number;
  thinking?: Thinking;
}

export interface CreateOptions extends CoreOptions {
  signal?: AbortSignal;
  monitor?: (monitor: EventTarget & { ondownloadprogress: unknown }) => void;
  initialPrompts?: Message[];
}

export interface PromptOptions {
  /** A JSON schema or a RegExp: the answer always is of it. */
  responseConstraint?: Record<string, unknown> | RegExp;
  omitResponseConstraintInput?: boolean;
  thinking?: Thinking;
  signal?: AbortSignal;
}

export interface LanguageModel extends EventTarget {
  prompt(input: Prompt, options?: PromptOptions): Promise<string>;
  promptStreaming(input: Prompt, options?: PromptOptions): ReadableStream<string>;
  append(input: Prompt, options?: { signal?: AbortSignal }): Promise<undefined>;
  measureContextUsage(input: Prompt, options?: PromptOptions): Promise<number>;
  readonly contextUsage: number;
  readonly contextWindow: number;
  oncontextoverflow: ((event: Event) => unknown) | null;
  readonly samplingMode: SamplingMode | null;
  clone(options?: { signal?: AbortSignal }): Promise<LanguageModel>;
  destroy(): void;
  /** The names that Chrome's extensions have. */
  measureInputUsage(input: Prompt, options?: PromptOptions): Promise<number>;
  readonly inputUsage: number;
  readonly inputQuota: number;
  onquotaoverflow: ((event: Event) => unknown) | null;
  readonly topK: number;
  readonly temperature: number;
}

export interface LanguageModelClass {
  availability(options?: CoreOptions): Promise<Availability>;
  create(options?: CreateOptions): Promise<LanguageModel>;
  params(): Promise<{
    defaultTopK: number;
    maxTopK: number;
    defaultTemperature: number;
    maxTemperature: number;
  }>;
}

/** A LanguageModel of its own, which is not put anywhere. */
export function defineLanguageModel(source: ModelSource): LanguageModelClass;

/**
 * Makes LanguageModel global where the browser has none, or in any case with `replace`. Gives the class that is there
 * then: the browser's, if it was kept.
 */
export function installLanguageModel(
  source: ModelSource,
  options?: { replace?: boolean },
): LanguageModelClass;

export class LanguageModelToolCall {
  constructor(init: { callId: string; name: string; arguments?: object });
  readonly callId: string;
  readonly name: string;
  readonly arguments: Record<string, unknown>;
}

export class LanguageModelToolSuccess {
  constructor(init: {
    callId: string;
    name: string;
    result: { type: 'text' | 'object'; value: unknown }[];
  });
}

export class LanguageModelToolError {
  constructor(init: { callId: string; name: string; errorMessage: string });
}
