// The public types of wick-llm/node.

type IncomingMessage = import('node:http').IncomingMessage;
type ServerResponse = import('node:http').ServerResponse;

/** A handler of `createHandler` (wick-llm/openai), or another function from a Request to its Response. */
export type Handle = (request: Request) => Promise<Response>;

/**
 * Creates a listener of `node:http` that is also a middleware of Express and Connect:
 * `createServer(nodeListener(handle))`,
 * `app.use(nodeListener(handle))`, `app.use('/ai', nodeListener(handle))`. Path prefixes before
 * `/v1/`, `/health` and `/metrics` are ignored. Other requests are passed to `next` if there is
 * one. The body may have been parsed before, as express.json() does. The returned promise never
 * rejects.
 *
 * @example
 * const server = createServer(nodeListener(createHandler(engine)));
 * await new Promise((settle) => server.listen(0, settle));
 * const response = await fetch(`http://127.0.0.1:${server.address().port}/health`);
 * console.log(response.status, await response.json());
 * server.close();
 * //=> 200 { status: 'ok' }
 */
export function nodeListener(
  handle: Handle,
): (incoming: IncomingMessage, outgoing: ServerResponse, next?: () => void) => Promise<void>;

/**
 * A plugin of Fastify: `app.register(fastifyPlugin, { handle })`, with a `prefix` if the application has one. It
 * reads bodies itself: `bodyBytesMax` of createHandler is their limit.
 *
 * @example
 * const app = Fastify();
 * app.register(fastifyPlugin, { handle: createHandler(engine), prefix: '/ai' });
 * await app.listen({ port: 8787 }); // answers POST /ai/v1/chat/completions
 */
export function fastifyPlugin(fastify: object, options: { handle: Handle }): Promise<void>;

/** The part of a context of Hono that the handler uses. */
interface HonoContextLike {
  req: { raw: Request };
  env?: unknown;
}

/**
 * Creates a handler of Hono: `app.all('/v1/*', honoHandler(handle))`. It runs on all hosts of Hono.
 *
 * @example
 * const app = new Hono();
 * app.all('/v1/*', honoHandler(createHandler(engine)));
 * export default app;
 */
export function honoHandler(handle: Handle): (context: HonoContextLike) => Promise<Response>;
