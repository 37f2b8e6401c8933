// The public types of wick-llm/openai.

type AdapterUse = import('./index.js').AdapterUse;
type Engine = import('./index.js').Engine;

/**
 * A finished request. Field names follow OpenTelemetry where it defines them; durations are in
 * seconds.
 */
export interface RequestRecord {
  /** The time when it ended, in ISO 8601 format. */
  time: string;
  /** `error` for responses with status 500 or above and for failed streams. */
  level: 'info' | 'error';
  'event.name': 'http.request';
  /** The `instance` option. */
  'service.instance.id'?: string;
  /** The response header `X-Request-Id`. */
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
   * different keys do not share prompt prefixes. Without keys, anyone may send requests, all as one
   * tenant.
   */
  keys?: string | string[];
  /**
   * The key for /metrics, which counts the requests of all tenants. Without it, /metrics is open if
   * there are no keys, and closed otherwise.
   */
  metricsKey?: string;
  /**
   * Limit on running and waiting generations together, 256 by default; further ones are rejected
   * with 429.
   */
  queueLimit?: number;
  /**
   * Limit on the size of a request's body in bytes, 1 MiB by default; larger ones are rejected with
   * 413.
   */
  bodyBytesMax?: number;
  /**
   * Time limit for a body in milliseconds, 60,000 by default; a slower one is rejected with 408.
   */
  bodyTimeout?: number;
  /**
   * Limit on the number of items in a list field such as `input`, `documents` or `messages`, 2,048 by default.
   * Longer lists are rejected with 400 and the code `array_above_max_length`. The token ids of one input count as
   * one item.
   */
  itemsMax?: number;
  /** The origins whose pages may read the responses, or `'*'`; none by default. */
  cors?: string | string[];
  /**
   * The model's name in responses; by default the name from the file. Requests may specify any
   * model.
   */
  model?: string;
  /** The adapters (engine.adapters) of requests without a `lora` field; none by default. */
  adapters?: AdapterUse[];
  /**
   * A name for this server, used as the `wick_instance` label of each sample of /metrics and in
   * request records.
   */
  instance?: string;
  /** Called for each finished request, for the server's log: `(record) => console.error(JSON.stringify(record))`. */
  onRequest?: (record: RequestRecord) => void;
  /**
   * Called with each error that causes a response with status 500 or above, for the server's log.
   */
  onError?: (error: unknown) => void;
}

/**
 * Creates a function that answers requests to OpenAI's API. The function never rejects: errors
 * become responses in OpenAI's format. The server must cancel the response body, or abort the
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
