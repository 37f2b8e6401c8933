// The public types of wick-llm/openai.

type AdapterUse = import('./index.js').AdapterUse;
type Engine = import('./index.js').Engine;

/** A finished request, with OpenTelemetry's names where they exist. Durations are in seconds. */
export interface RequestRecord {
  /** When it ended, as ISO 8601. */
  time: string;
  /** `error` for answers of status 500 or above and streams that failed. */
  level: 'info' | 'error';
  'event.name': 'http.request';
  /** The option `instance`. */
  'service.instance.id'?: string;
  /** The answer's header `X-Request-Id`. */
  request_id: string;
  'http.request.method': string;
  /** A route of the handler, such as `/v1/chat/completions`; `none` for other paths. */
  'http.route': string;
  'http.response.status_code': number;
  'http.server.request.duration': number;
  'gen_ai.operation.name'?: string;
  'gen_ai.response.model'?: string;
  'gen_ai.response.id'?: string;
  /** Missing if the client disconnected before the end. */
  'gen_ai.usage.input_tokens'?: number;
  'gen_ai.usage.output_tokens'?: number;
  'gen_ai.usage.cache_read.input_tokens'?: number;
  'gen_ai.response.finish_reasons'?: string[];
  'gen_ai.server.time_to_first_token'?: number;
  /** The code of the error, or `client_gone` for a stream whose client disconnected. */
  'error.type'?: string;
}

export interface HandlerOptions {
  /**
   * The keys that clients may send as `Authorization: Bearer KEY`. Each key is a tenant: requests with
   * different keys share no prefix of a prompt. Without keys anyone may send requests, as one tenant.
   */
  keys?: string | string[];
  /**
   * The key of /metrics, which counts the requests of all tenants. Without it, /metrics is open if
   * there are no keys, and closed otherwise.
   */
  metricsKey?: string;
  /**
   * Generations that may run or wait together, 256 by default; further ones are refused with 429.
   */
  queueLimit?: number;
  /** Bytes of a request's body, 1 MiB by default; more are refused with 413. */
  bodyBytesMax?: number;
  /** Time limit for a body in milliseconds, 60,000 by default; a slower one is refused with 408. */
  bodyTimeout?: number;
  /**
   * Items of a field that is a list, such as the texts of `input` and `documents`, and `messages`: 2,048 by default.
   * More are refused with 400 and the code `array_above_max_length`. The token ids of one text count as one.
   */
  itemsMax?: number;
  /** The origins whose pages may read the answers, or `'*'`; none by default. */
  cors?: string | string[];
  /** The model's name in the answers; by default the file's. Requests may name any model. */
  model?: string;
  /** The adapters (engine.adapters) of requests without the field `lora`; none by default. */
  adapters?: AdapterUse[];
  /** A name for this server, as the label `wick_instance` of each sample of /metrics and in records of requests. */
  instance?: string;
  /** Called with each request that ended, for the server's log: `(record) => console.error(JSON.stringify(record))`. */
  onRequest?: (record: RequestRecord) => void;
  /** Called with each error that becomes an answer of status 500 or above, for the server's log. */
  onError?: (error: unknown) => void;
}

/**
 * Creates a function that answers requests of OpenAI's interface. The function never rejects:
 * errors become answers in OpenAI's shape. The server must cancel the answer's body, or abort the
 * request's signal, when the client disconnects. createHandler throws a TypeError if an option is
 * not valid.
 *
 * @example
 * const handle = createHandler(engine, { keys: 'secret' });
 * const request = (headers) =>
 *   new Request('http://localhost/v1/completions', {
 *     method: 'POST',
 *     headers: { 'Content-Type': 'application/json', ...headers },
 *     body: JSON.stringify({ prompt: 'The capital of France is', max_tokens: 2, temperature: 0 }),
 *   });
 * console.log((await handle(request({}))).status);
 * const response = await handle(request({ Authorization: 'Bearer secret' }));
 * console.log(response.status, (await response.json()).choices[0].text);
 * //=> 401
 * //=> 200  Paris.
 */
export function createHandler(
  engine: Engine,
  options?: HandlerOptions,
): (request: Request) => Promise<Response>;
