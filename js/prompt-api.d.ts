// The public types of wick-llm/prompt-api. They match @types/dom-chromium-ai, whose names are global, without the
// members specific to Chrome's model.

type Engine = import('./index.js').Engine;
type EngineOptions = import('./index.js').EngineOptions;
type Progress = import('./index.js').Progress;

/**
 * An engine, options of createEngine, or a function that creates one. The engine is loaded with the
 * first session.
 */
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

/**
 * The value of an image is a Blob, bytes, ImageBitmap, ImageData, a canvas, image, video or VideoFrame; the value of
 * `audio` is a Blob, bytes or an AudioBuffer. The session's `expectedInputs` must include the type,
 * and the engine needs an mmproj file.
 */
export interface MessagePart {
  type: 'text' | 'tool-call' | 'tool-response' | 'image' | 'audio';
  value: unknown;
}

export interface Message {
  role: 'system' | 'user' | 'assistant';
  content: string | MessagePart[];
  /** For the last message, from the assistant: the answer begins with this message. */
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
  /** Without it, and with the `tool-call` type in expectedOutputs, prompt() returns the calls to the page. */
  // biome-ignore lint/suspicious/noExplicitAny: the type that the schema describes, which is unknown here
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
  samplingMode?: SamplingMode;
  /**
   * These two need `extensions` and cannot be combined with samplingMode. Without `extensions` they
   * have no effect, as in pages.
   */
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
  /** A JSON schema or a RegExp that the answer always matches. */
  responseConstraint?: Record<string, unknown> | RegExp;
  omitResponseConstraintInput?: boolean;
  thinking?: Thinking;
  signal?: AbortSignal;
}

export interface LanguageModel extends EventTarget {
  /**
   * @example
   * const session = await defineLanguageModel(engine).create({ samplingMode: 'most-predictable' });
   * const responseConstraint = /yes|no/;
   * console.log(await session.prompt('Is Paris in France?', { responseConstraint }));
   * //=> yes
   */
  prompt(input: Prompt, options?: PromptOptions): Promise<string>;
  /**
   * @example
   * const session = await defineLanguageModel(engine).create({ samplingMode: 'most-predictable' });
   * let text = '';
   * for await (const piece of session.promptStreaming('What is 2 + 2?')) text += piece;
   * console.log(text);
   * //=> The answer to this classic math problem is 4.
   */
  promptStreaming(input: Prompt, options?: PromptOptions): ReadableStream<string>;
  /**
   * @example
   * const session = await defineLanguageModel(engine).create();
   * await session.append('My name is Ada.');
   * console.log(session.contextUsage > 0);
   * //=> true
   */
  append(input: Prompt, options?: { signal?: AbortSignal }): Promise<undefined>;
  /**
   * @example
   * const session = await defineLanguageModel(engine).create();
   * console.log(await session.measureContextUsage('What is 2 + 2?'));
   * //=> 38
   */
  measureContextUsage(input: Prompt, options?: PromptOptions): Promise<number>;
  readonly contextUsage: number;
  readonly contextWindow: number;
  oncontextoverflow: ((event: Event) => unknown) | null;
  readonly samplingMode: SamplingMode | null;
  /**
   * @example
   * const session = await defineLanguageModel(engine).create();
   * await session.append('My name is Ada.');
   * const copy = await session.clone();
   * console.log(copy.contextUsage === session.contextUsage);
   * //=> true
   */
  clone(options?: { signal?: AbortSignal }): Promise<LanguageModel>;
  /**
   * @example
   * const session = await defineLanguageModel(engine).create();
   * session.destroy();
   * await session.prompt('Hello!').catch((error) => console.log(error.name));
   * //=> AbortError
   */
  destroy(): void;
  /** Older names. */
  measureInputUsage(input: Prompt, options?: PromptOptions): Promise<number>;
  readonly inputUsage: number;
  readonly inputQuota: number;
  onquotaoverflow: ((event: Event) => unknown) | null;
  /** Undefined without `extensions`. */
  readonly topK: number;
  readonly temperature: number;
}

export interface LanguageModelClass {
  /**
   * @example
   * console.log(await defineLanguageModel(engine).availability());
   * //=> available
   */
  availability(options?: CoreOptions): Promise<Availability>;
  /**
   * @example
   * const initialPrompts = [{ role: 'system', content: 'Answer briefly.' }];
   * const session = await defineLanguageModel(engine).create({ initialPrompts });
   * console.log(session.contextWindow);
   * //=> 2048
   */
  create(options?: CreateOptions): Promise<LanguageModel>;
  /**
   * Only with `extensions`.
   *
   * @example
   * console.log(await defineLanguageModel(engine, { extensions: true }).params());
   * //=> {
   * //=>   defaultTopK: 40,
   * //=>   maxTopK: 128,
   * //=>   defaultTemperature: 0.8,
   * //=>   maxTemperature: 2
   * //=> }
   */
  params(): Promise<{
    defaultTopK: number;
    maxTopK: number;
    defaultTemperature: number;
    maxTemperature: number;
  }>;
}

export interface LanguageModelSettings {
  /** Enables features that browsers offer only to extensions: topK, temperature and params(). */
  extensions?: boolean;
}

/**
 * Returns a separate LanguageModel, which is not installed globally.
 *
 * @example
 * const LanguageModel = defineLanguageModel(engine);
 * const session = await LanguageModel.create({ samplingMode: 'most-predictable' });
 * console.log(await session.prompt('What is 2 + 2?'));
 * //=> The answer to this classic math problem is 4.
 */
export function defineLanguageModel(
  source: ModelSource,
  options?: LanguageModelSettings,
): LanguageModelClass;

/**
 * Makes LanguageModel global if the browser does not have it, or in any case with `replace`.
 * Returns the global class: the browser's, if it was kept.
 *
 * @example
 * installLanguageModel(engine);
 * const session = await LanguageModel.create({ samplingMode: 'most-predictable' });
 * console.log(await session.prompt('What is 2 + 2?'));
 * //=> The answer to this classic math problem is 4.
 */
export function installLanguageModel(
  source: ModelSource,
  options?: LanguageModelSettings & { replace?: boolean },
): LanguageModelClass;

/** The options that Google's polyfill passes to its backends. */
export interface PolyfillContent {
  role: 'system' | 'user' | 'model';
  /** `data` of an image or a recording is base64. */
  parts: { text?: string; inlineData?: { mimeType?: string; data?: string } }[];
}

/**
 * A backend as defined by prompt-api-polyfill/backends/base.js of GoogleChromeLabs/web-ai-demos.
 */
export interface PolyfillBackend {
  modelName: string;
  createSession(options: object, session: object, monitor?: EventTarget): Promise<Engine>;
  generateContent(contents: PolyfillContent[]): Promise<{ text: string; usage: number }>;
  generateContentStream(
    contents: PolyfillContent[],
  ): Promise<AsyncIterable<{ text(): string; usageMetadata: { totalTokenCount: number } }>>;
  countTokens(contents: PolyfillContent[]): Promise<number>;
  convertSchema(schema: object): object;
}

export interface PolyfillBackendClass {
  new (config?: object): PolyfillBackend;
  availability(options?: CoreOptions): 'available' | 'unavailable';
  convertSchema(schema: object): object;
}

/**
 * Returns a class for the list of backends of Google's polyfill. Without a source, the polyfill's configuration
 * specifies the model (`url` or `model`), along with other options of createEngine.
 *
 * @example
 * const Backend = definePolyfillBackend(engine);
 * console.log(Backend.availability());
 * //=> available
 */
export function definePolyfillBackend(source?: ModelSource): PolyfillBackendClass;

type CallId = { callID: string } | { callId: string };

export class LanguageModelToolCall {
  /**
   * @example
   * const { callID, name } = new LanguageModelToolCall({ callID: '1', name: 'time' });
   * console.log(callID, name);
   * //=> 1 time
   */
  constructor(init: CallId & { name: string; arguments?: object });
  readonly callID: string;
  /** The same class, under an older name. */
  readonly callId: string;
  readonly name: string;
  readonly arguments: Record<string, unknown>;
}

export class LanguageModelToolSuccess {
  /**
   * @example
   * const result = [{ type: 'text', value: 'It is 10:24.' }];
   * console.log(new LanguageModelToolSuccess({ callID: '1', name: 'time', result }).callID);
   * //=> 1
   */
  constructor(
    init: CallId & { name: string; result: { type: 'text' | 'object'; value: unknown }[] },
  );
  readonly callID: string;
  readonly callId: string;
}

export class LanguageModelToolError {
  /**
   * @example
   * const errorMessage = 'There is no such city.';
   * console.log(new LanguageModelToolError({ callID: '1', name: 'time', errorMessage }).callID);
   * //=> 1
   */
  constructor(init: CallId & { name: string; errorMessage: string });
  readonly callID: string;
  readonly callId: string;
}
