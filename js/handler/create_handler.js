// js/handler/create_handler.js — createHandler: the routes and what they have in common.

import { pathAliases } from '../base/option_table.js';
import { chat } from './chat_route.js';
import { completion } from './completion_route.js';
import { Cors } from './cors.js';
import { embeddings, nativeEmbedding, rerank } from './embedding_route.js';
import { streamResponseOf } from './event_stream.js';
import { checkBody } from './fields.js';
import { handlerOptionsOf } from './handler_options.js';
import { clientGone, errorResponseOf, HttpError, httpErrorOf, refusal } from './http_errors.js';
import { HttpMetrics, labelled } from './http_metrics.js';
import { Keys } from './keys.js';
import { messageCount, messages } from './messages_route.js';
import { infill, nativeCompletion } from './native_route.js';
import { randomName } from './random_name.js';
import { readBody } from './request_body.js';
import { RequestRecord } from './request_record.js';
import { responses } from './responses_route.js';
import { detokenize, propsOf, template, tokenize } from './token_routes.js';

/** @typedef {import('../index.js').Engine} Engine */
/** @typedef {import('./event_stream.js').Chunks} Chunks */

/**
 * The parameters of a text route in addition to the body. It may add headers to the response.
 * @typedef {{signal: AbortSignal, salt: string | undefined, model: string, headers: Headers,
 *   adapters?: import('../index.js').AdapterUse[] | undefined}} Asked
 */

/**
 * @typedef {object} TextRoute
 * @property {Record<string, import('./fields.js').Check>} fields of its body
 * @property {(engine: Engine, body: Record<string, any>, asked: Asked) => Promise<object | Chunks>} answer
 * returns the response to a checked body, or with `stream: true` its chunks
 * @property {(error: HttpError) => object} [errorOf] returns the body of an error, by default in
 * OpenAI's format
 */

/** @type {Record<string, TextRoute>} */
const textRoutes = {
  ...{ '/v1/chat/completions': chat, '/v1/completions': completion, '/v1/responses': responses },
  ...{ '/v1/embeddings': embeddings, '/v1/rerank': rerank },
  ...{ '/v1/messages': messages, '/v1/messages/count_tokens': messageCount },
  ...{ '/completion': nativeCompletion, '/infill': infill, '/embedding': nativeEmbedding },
  ...{ '/tokenize': tokenize, '/detokenize': detokenize, '/apply-template': template },
};

const MODELS = '/v1/models';

/** The routes whose streams report usage if the client requests it. */
const usageRoutes = ['/v1/chat/completions', '/v1/completions'];

/**
 * Requests the usage of a stream for the log record.
 * @param {Record<string, any>} body @param {string} route
 * @returns {boolean} whether the client did not request it
 */
function askForUsage(body, route) {
  const { stream, stream_options: options } = body;
  const isFree = (options ?? undefined) === undefined || typeof options === 'object';
  if (stream !== true || !usageRoutes.includes(route) || !isFree) return false;
  if ((options?.include_usage ?? false) !== false) return false;
  body.stream_options = { ...options, include_usage: true };
  return true;
}

/** Clients join a base URL that ends with a slash and a path that begins with one. @param {string} url */
function pathOf(url) {
  const path = new URL(url).pathname.replace(/\/+/g, '/').replace(/(.)\/$/, '$1');
  return Object.hasOwn(pathAliases, path) ? pathAliases[path] : path;
}

class Handler {
  #engine;
  #options;
  #keys;
  #metricsKeys;
  #cors;
  #metrics = new HttpMetrics();
  #generations = 0;
  #created = Math.floor(Date.now() / 1000);
  /** @type {string | undefined} */
  #model;

  /** @param {Engine} engine @param {ReturnType<typeof handlerOptionsOf>} options */
  constructor(engine, options) {
    this.#engine = engine;
    this.#options = options;
    this.#model = options.model;
    this.#keys = new Keys(options.keys);
    this.#metricsKeys = new Keys(options.metricsKeys);
    this.#cors = new Cors(options.origins);
  }

  /** @param {Request} request @returns {Promise<Response>} */
  async handle(request) {
    const pathname = pathOf(request.url);
    const route = this.#routeOf(pathname);
    const record = new RequestRecord();
    /** @type {Response | undefined} */
    let response;
    let isOver = false;
    const { onRequest, instance } = this.#options;
    const report = () => {
      if (!isOver || !response) return;
      const of = { model: this.#model, instance };
      onRequest?.(record.fields(request, route ?? 'none', response, of));
    };
    const end = () => {
      isOver = true;
      report();
    };
    try {
      response = await this.#answer(request, pathname, route, { record, end });
    } catch (error) {
      const reported = request.signal.aborted ? clientGone() : error;
      response = this.#refusalOf(reported, record, textRoutes[route ?? '']);
    }
    response.headers.set('X-Request-Id', `req-${randomName()}`);
    this.#cors.addTo(request, response.headers);
    this.#metrics.count(route ?? 'none', response.status);
    if (record.isStreamed) report();
    else end();
    return response;
  }

  /** @param {string} pathname @returns {string | undefined} */
  #routeOf(pathname) {
    if (pathname.startsWith(`${MODELS}/`)) return `${MODELS}/`;
    const own = ['/health', '/metrics', '/props', MODELS];
    const isKnown = own.includes(pathname) || Object.hasOwn(textRoutes, pathname);
    return isKnown ? pathname : undefined;
  }

  /** @param {unknown} error @param {RequestRecord} record @param {TextRoute} [route] @returns {Response} */
  #refusalOf(error, record, route) {
    const reported = httpErrorOf(error, route?.fields);
    record.isStreamed = false;
    record.fail(reported);
    if (reported.status >= 500 && reported.status !== 501) this.#options.onError(error);
    return errorResponseOf(reported, route?.errorOf);
  }

  /**
   * @param {Request} request
   * @param {string} pathname
   * @param {string | undefined} route
   * @param {{record: RequestRecord, end: () => void}} followed
   * @returns {Promise<Response>}
   */
  async #answer(request, pathname, route, followed) {
    if (route === undefined) throw refusal('no_route', [pathname.slice(0, 200)]);
    const { method, headers } = request;
    const isText = Object.hasOwn(textRoutes, route);
    const methods = isText ? ['POST', 'OPTIONS'] : ['GET', 'HEAD', 'OPTIONS'];
    const allow = { Allow: methods.join(', ') };
    if (method === 'OPTIONS') return new Response(null, { status: 204, headers: allow });
    if (!methods.includes(method)) {
      throw refusal('wrong_method', [method, pathname], { headers: allow });
    }
    if (route === '/health') return this.#health();
    if (route === '/metrics') return this.#metricsPage(headers);
    const salt = await this.#keys.saltFor(headers);
    if (isText) return this.#text(request, route, salt, followed);
    if (route === '/props') {
      return Response.json(await propsOf(this.#engine, await this.#modelName()));
    }
    return this.#models(pathname);
  }

  /** Returns status 200 while the engine answers calls. */
  async #health() {
    await this.#engine.info();
    return Response.json({ status: 'ok' });
  }

  /** @param {Headers} headers */
  async #metricsPage(headers) {
    const { keys, metricsKeys } = this.#options;
    if (keys.length > 0 && metricsKeys.length === 0) {
      const message = '/metrics counts the requests of all keys: set a separate metricsKey';
      throw new HttpError(403, 'metrics_closed', message);
    }
    await this.#metricsKeys.saltFor(headers);
    const pages = [this.#metrics.text(this.#generations)];
    pages.push(await this.#engine.stats({ format: 'prometheus' }));
    try {
      pages.push(await this.#engine.metrics({ format: 'prometheus' }));
    } catch (error) {
      if (/** @type {any} */ (error)?.code !== 'NODATA') throw error; // NODATA: the engine was created without `metrics`
    }
    const type = { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' };
    return new Response(labelled(pages.join(''), this.#options.instance), { headers: type });
  }

  async #modelName() {
    if (this.#model === undefined) {
      const { name, architecture } = await this.#engine.info();
      this.#model = name ?? architecture ?? 'model';
    }
    return this.#model;
  }

  /** @param {string} pathname */
  async #models(pathname) {
    const id = await this.#modelName();
    const model = { id, object: 'model', created: this.#created, owned_by: 'wick-llm' };
    if (pathname === MODELS) return Response.json({ object: 'list', data: [model] });
    const asked = pathname.slice(MODELS.length + 1);
    if (asked === id || asked === encodeURIComponent(id) || asked === encodeURI(id)) {
      return Response.json(model);
    }
    throw refusal('other_model', [id], { param: 'model' });
  }

  /**
   * @param {Request} request @param {string} path @param {string | undefined} salt
   * @param {{record: RequestRecord, end: () => void}} followed
   */
  async #text(request, path, salt, followed) {
    const { queueLimit, onRequest } = this.#options;
    const { record } = followed;
    const body = await readBody(request, this.#options);
    const hidesUsage = onRequest !== undefined && askForUsage(body, path);
    if (this.#generations >= queueLimit) throw refusal('full_queue', [queueLimit]);
    this.#generations++;
    const { signal } = request;
    const end = this.#endsOnce(followed.end);
    signal.addEventListener('abort', end);
    try {
      const headers = new Headers();
      const { adapters } = this.#options;
      const asked = { signal, salt, headers, adapters, model: await this.#modelName() };
      const route = textRoutes[path];
      checkBody(body, route.fields);
      const answer = await route.answer(this.#engine, body, asked);
      if ('leave' in answer) {
        const onError = (/** @type {any} */ error) => {
          record.fail(httpErrorOf(error));
          this.#options.onError(error);
        };
        const chunks = onRequest ? record.follow(answer, hidesUsage) : answer;
        return await streamResponseOf(chunks, { signal, end, headers, onError });
      }
      record.see(answer);
      end();
      return Response.json(answer, { headers });
    } catch (error) {
      end();
      throw error;
    }
  }

  /**
   * @param {() => void} hear called once
   * @returns {() => void} counts the request as ended; later calls do nothing
   */
  #endsOnce(hear) {
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#generations--;
      hear();
    };
  }
}

/**
 * @param {Engine} engine
 * @param {import('../openai.js').HandlerOptions} [options]
 * @returns {(request: Request) => Promise<Response>}
 */
export function createHandler(engine, options = {}) {
  if (typeof engine?.generate !== 'function') {
    throw new TypeError('createHandler needs an engine from createEngine');
  }
  const handler = new Handler(engine, handlerOptionsOf(options));
  return (request) => handler.handle(request);
}
