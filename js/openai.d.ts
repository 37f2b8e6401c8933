// The public types of wick-llm/openai.

type Engine = import('./index.js').Engine;

export interface HandlerOptions {
  /**
   * The keys that clients may send as `Authorization: Bearer KEY`. Each key is a tenant: requests with
   * different keys share no prefix of a prompt. Without keys everybody may ask, as one tenant.
   */
  keys?: string | string[];
  /**
   * The key of /metrics, which counts the requests of all tenants. Without it /metrics is open where
   * there are no keys, and closed where there are.
   */
  metricsKey?: string;
  /** Generations that may run or wait together, 256 by default; one more is refused with 429. */
  queueLimit?: number;
  /** Bytes of a request's body, 1 MiB by default; more are refused with 413. */
  bodyBytesMax?: number;
  /** The origins whose pages may read the answers, or `'*'`; none by default. */
  cors?: string | string[];
  /** The model's name in the answers; by default the file's. Requests may name any model. */
  model?: string;
  /** Called with each error that becomes an answer of status 500 or above, for the server's log. */
  onError?: (error: unknown) => void;
}

/**
 * Answers OpenAI's requests from an engine. It never rejects: errors are answers in OpenAI's shape.
 * Whoever serves the answer cancels its body, or aborts the request's signal, when the client is gone.
 * Throws a TypeError where an option is wrong.
 */
export function createHandler(
  engine: Engine,
  options?: HandlerOptions,
): (request: Request) => Promise<Response>;
