// The public types of wick-llm/pipeline: the tasks, results and option names of transformers.js.

type Engine = import('./index.js').Engine;
type EngineOptions = import('./index.js').EngineOptions;
type ChatMessage = import('./index.js').ChatMessage;
type ChatTool = import('./index.js').ChatTool;
type ModelSource = import('./index.js').ModelSource;

export type ProgressInfo =
  | { status: 'initiate' | 'download' | 'done'; name: string; file: string }
  | {
      status: 'progress';
      name: string;
      file: string;
      /** Percent, 0 to 100. */
      progress: number;
      loaded: number;
      total: number;
    }
  | { status: 'ready'; task: string; model: string };

/** Also the options of createEngine. */
export interface PipelineOptions extends Omit<EngineOptions, keyof ModelSource | 'onProgress'> {
  progress_callback?: (info: ProgressInfo) => void;
  /**
   * The following options of transformers.js have no effect: a GGUF file has a fixed data type, and
   * Wick chooses where to run.
   */
  dtype?: unknown;
  device?: unknown;
  revision?: string;
  cache_dir?: string;
  local_files_only?: boolean;
  subfolder?: string;
  config?: unknown;
  model_file_name?: string;
  use_external_data_format?: unknown;
  session_options?: unknown;
}

export interface TextStreamerOptions {
  /** If true, the prompt is not streamed. False by default. */
  skip_prompt?: boolean;
  /** Control tokens are never part of the text. */
  skip_special_tokens?: boolean;
  /** Called with each piece of text, which is printed by default. */
  callback_function?: (text: string) => void;
  /** Not supported. */
  token_callback_function?: never;
  decode_kwargs?: object;
}

export class TextStreamer {
  constructor(tokenizer: unknown, options?: TextStreamerOptions);
  readonly skip_prompt: boolean;
  /**
   * Called with each piece of text.
   *
   * @example
   * const generator = await pipeline('text-generation', engine);
   * const streamer = new TextStreamer(generator.tokenizer, {
   *   skip_prompt: true,
   *   callback_function: (text) => console.log(text),
   * });
   * await generator('The capital of France is', { max_new_tokens: 2, streamer });
   * //=>  Paris
   * //=> .
   */
  on_text(text: string): void;
  /**
   * @example
   * class Line extends TextStreamer {
   *   text = '';
   *   on_text(text) {
   *     this.text += text;
   *   }
   *   end() {
   *     console.log(this.text);
   *   }
   * }
   * const generator = await pipeline('text-generation', engine);
   * const streamer = new Line(generator.tokenizer, { skip_prompt: true });
   * await generator('The capital of France is', { max_new_tokens: 2, streamer });
   * //=>  Paris.
   */
  end(): void;
}

export class InterruptableStoppingCriteria {
  readonly interrupted: boolean;
  /**
   * Stops the generation after the next piece.
   *
   * @example
   * const generator = await pipeline('text-generation', engine);
   * const stopping_criteria = new InterruptableStoppingCriteria();
   * stopping_criteria.interrupt();
   * const [{ generated_text }] = await generator('Once upon', { stopping_criteria });
   * console.log(generated_text);
   * //=> Once upon the
   */
  interrupt(): void;
  /**
   * @example
   * const criteria = new InterruptableStoppingCriteria();
   * criteria.interrupt();
   * criteria.reset();
   * console.log(criteria.interrupted);
   * //=> false
   */
  reset(): void;
}

export interface GenerationOptions {
  /** Limit on the number of generated tokens, 256 by default. */
  max_new_tokens?: number;
  /** Limit on the tokens of prompt and output together. */
  max_length?: number;
  /** False by default: decoding is greedy. */
  do_sample?: boolean;
  /** The following options need `do_sample`. `temperature` and `top_p` are 1 by default, `top_k` is 50. */
  temperature?: number;
  top_k?: number;
  top_p?: number;
  min_p?: number;
  typical_p?: number;
  repetition_penalty?: number;
  num_return_sequences?: number;
  stop_strings?: string | string[];
  streamer?: TextStreamer;
  stopping_criteria?: InterruptableStoppingCriteria | InterruptableStoppingCriteria[];
  /** For string inputs: false returns only the continuation. True by default. */
  return_full_text?: boolean;
  add_special_tokens?: boolean;
  /** For chats: the tools that the model may call, and template variables. */
  tools?: ChatTool[];
  tokenizer_encode_kwargs?: Record<string, unknown>;
  seed?: number;
  signal?: AbortSignal | null;
}

export interface ExtractionOptions {
  /** `none` by default: a vector for each token. */
  pooling?: 'none' | 'mean' | 'cls' | 'first_token' | 'last_token' | 'eos';
  /** False by default. */
  normalize?: boolean;
  quantize?: false;
  signal?: AbortSignal | null;
}

export interface ClassificationOptions {
  /** The number of labels to return, 1 by default; null returns all. */
  top_k?: number | null;
  signal?: AbortSignal | null;
}

/** Other options are those of text generation. */
export interface RecognitionOptions
  extends Omit<GenerationOptions, 'return_full_text' | 'add_special_tokens' | 'tools'> {
  /**
   * The maximum length in seconds of a piece of a recording that is transcribed at once; recordings
   * are split where they are quiet. 0, the default: the whole recording.
   */
  chunk_length_s?: number;
  /** `transcribe` by default. */
  task?: 'transcribe' | 'translate';
  /** The language of the speech, such as `French`. */
  language?: string;
  /** The instructions, in place of `task` and `language`: some models need specific wording. */
  prompt?: string;
  /** Not supported. */
  return_timestamps?: false;
  /** Options of transformers.js that have no effect. */
  stride_length_s?: number;
  force_full_sequences?: boolean;
  num_frames?: number;
}

export class Tensor {
  constructor(type: 'float32', data: Float32Array, dims: number[]);
  readonly type: 'float32';
  readonly data: Float32Array;
  readonly dims: number[];
  readonly size: number;
  /**
   * @example
   * const tensor = new Tensor('float32', new Float32Array([1, 2, 3, 4]), [2, 2]);
   * console.log(tensor.tolist());
   * //=> [ [ 1, 2 ], [ 3, 4 ] ]
   */
  // biome-ignore lint/suspicious/noExplicitAny: arrays as deep as there are dimensions
  tolist(): any[];
  [Symbol.iterator](): Generator<Tensor, void, void>;
}

/**
 * @example
 * console.log(cos_sim([1, 0], [1, 1]).toFixed(3));
 * //=> 0.707
 */
export function cos_sim(a: ArrayLike<number>, b: ArrayLike<number>): number;

interface Pipeline {
  readonly task: string;
  readonly engine: Engine;
  /** The same as in transformers.js, but each function returns a promise. */
  readonly tokenizer: {
    encode(text: string): Promise<number[]>;
    decode(tokens: ArrayLike<number>, options?: { skip_special_tokens?: boolean }): Promise<string>;
    apply_chat_template(
      messages: ChatMessage[],
      options: { tokenize: false; add_generation_prompt?: boolean; [variable: string]: unknown },
    ): Promise<string>;
  };
  /** Closes the engine. */
  dispose(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TextGenerationPipeline extends Pipeline {
  (text: string, options?: GenerationOptions): Promise<{ generated_text: string }[]>;
  (chat: ChatMessage[], options?: GenerationOptions): Promise<{ generated_text: ChatMessage[] }[]>;
  (texts: string[], options?: GenerationOptions): Promise<{ generated_text: string }[][]>;
  (
    chats: ChatMessage[][],
    options?: GenerationOptions,
  ): Promise<{ generated_text: ChatMessage[] }[][]>;
}

export interface FeatureExtractionPipeline extends Pipeline {
  /** [texts, width]; with pooling `none` [texts, tokens, width], padded with zeros. */
  (texts: string | string[], options?: ExtractionOptions): Promise<Tensor>;
}

export type Classification = import('./index.js').Classification[0];

export interface TextClassificationPipeline extends Pipeline {
  (
    texts: string | string[],
    options?: { top_k?: 1 } & ClassificationOptions,
  ): Promise<Classification[]>;
  (text: string, options: ClassificationOptions): Promise<Classification[]>;
  (texts: string[], options: ClassificationOptions): Promise<Classification[][]>;
}

/** The same as `image` in a part of a chat message. */
type ImageContent = string | URL | object;
/** The same as `audio` in a part of a chat message, or mono samples at 16 kHz. */
type AudioContent = string | URL | object | Float32Array | Float64Array;

export interface ImageTextToTextPipeline extends Pipeline {
  /** Parts of type image have `image` or `url`. */
  (chat: ChatMessage[], options?: GenerationOptions): Promise<{ generated_text: ChatMessage[] }[]>;
  (
    chats: ChatMessage[][],
    options?: GenerationOptions,
  ): Promise<{ generated_text: ChatMessage[] }[][]>;
  /** The images precede the text. */
  (
    images: ImageContent | ImageContent[],
    text: string,
    options?: GenerationOptions,
  ): Promise<{ input_text: string; generated_text: string }[]>;
  /** The images replace the chat's parts `{ type: 'image' }`, in order. */
  (
    images: ImageContent | ImageContent[],
    chat: ChatMessage[],
    options?: GenerationOptions,
  ): Promise<{ generated_text: ChatMessage[] }[]>;
}

export interface SpeechRecognitionPipeline extends Pipeline {
  (recordings: AudioContent[], options?: RecognitionOptions): Promise<{ text: string }[]>;
  (recording: AudioContent, options?: RecognitionOptions): Promise<{ text: string }>;
}

interface Tasks {
  'text-generation': TextGenerationPipeline;
  'feature-extraction': FeatureExtractionPipeline;
  'text-classification': TextClassificationPipeline;
  'sentiment-analysis': TextClassificationPipeline;
  'image-text-to-text': ImageTextToTextPipeline;
  'automatic-speech-recognition': SpeechRecognitionPipeline;
}

/**
 * The model: the URL of a GGUF file, its path (Node and Deno), options of createEngine, or an
 * engine.
 *
 * @example
 * const generator = await pipeline('text-generation', engine);
 * const [{ generated_text }] = await generator('The capital of France is', { max_new_tokens: 2 });
 * console.log(generated_text);
 * //=> The capital of France is Paris.
 */
export function pipeline<Task extends keyof Tasks>(
  task: Task,
  model: string | URL | EngineOptions | Engine,
  options?: PipelineOptions,
): Promise<Tasks[Task]>;
