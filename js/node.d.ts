// The public types of wick-llm/node.

type IncomingMessage = import('node:http').IncomingMessage;
type ServerResponse = import('node:http').ServerResponse;

/**
 * A handler from `createHandler` (wick-llm/openai), or any other function from a Request to a
 * Response.
 */
export type Handle = (request: Request) => Promise<Response>;

/**
 * Creates a listener for `node:http` that is also middleware for Express and Connect:
 * `createServer(nodeListener(handle))`,
 * `app.use(nodeListener(handle))`, `app.use('/ai', nodeListener(handle))`. Path prefixes before
 * `/v1/`, `/health` and `/metrics` are ignored. Other requests are passed to `next` if there is
 * one. The body may already have been parsed, for example by express.json(). The returned promise
 * never rejects.
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
 * A Fastify plugin: `app.register(fastifyPlugin, { handle })`, with a `prefix` if the application has one. It
 * reads bodies itself, so their limit is `bodyBytesMax` of createHandler.
 *
 * @example
 * const app = Fastify();
 * app.register(fastifyPlugin, { handle: createHandler(engine), prefix: '/ai' });
 * await app.listen({ port: 8787 }); // answers POST /ai/v1/chat/completions
 */
export function fastifyPlugin(fastify: object, options: { handle: Handle }): Promise<void>;

/** The part of a Hono context that the handler uses. */
interface HonoContextLike {
  req: { raw: Request };
  env?: unknown;
}

/**
 * Creates a Hono handler: `app.all('/v1/*', honoHandler(handle))`. It runs on all hosts that Hono
 * supports.
 *
 * @example
 * const app = new Hono();
 * app.all('/v1/*', honoHandler(createHandler(engine)));
 * export default app;
 */
export function honoHandler(handle: Handle): (context: HonoContextLike) => Promise<Response>;
