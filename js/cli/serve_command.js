// js/cli/serve_command.js — `wick serve MODEL`: serves a model over HTTP with OpenAI's API.

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import process from 'node:process';
import { serveOptions } from '../base/option_table.js';
import { loadAdapters } from './adapters.js';
import { EXIT_FILE, EXIT_USAGE, Exit } from './exit.js';
import { listen } from './http_server.js';
import { imageDecoder } from './image_decoder.js';
import { sourceOf } from './model_names.js';
import { withPage } from './try_page.js';

/** @import { Argument } from './exit.js' */

const optionLines = serveOptions
  .map(([option, , value, about]) => `  ${`${option} ${value}`.padEnd(18)}  ${about}`)
  .join('\n');

const USAGE = 'usage: wick serve MODEL [options]';
const HELP = `${USAGE}
serves a model over HTTP with OpenAI's interface, and a page for a first try at /
  --port N            listen on port N (default 8080, 0 = any free port)
  --host NAME         listen on the address NAME (default 127.0.0.1: this machine only)
${optionLines}
  --chat-template FILE  use the Jinja template in FILE, the built-in chatml, or the model's template of that name
                        (default: the model's template)
  --lora FILE[:SCALE]   load an adapter and apply it by default; repeat for several adapters
  --draft FILE        propose tokens with a smaller model that has the same vocabulary
  --mmproj FILE       encode images and audio of messages with this file, which comes with the model
                      (in Node, images other than PPM need the package sharp: npm install sharp)
  --max-tiles N       cut an image into at most N pictures, its overview included (default: no limit)
  --max-image-tokens N  make images smaller until they take at most N tokens (default: no limit)
  --ctx N             limit prompt and answer to N tokens (default: the model's limit, at most 4096)
  --kv TYPE           store keys and values as f16, f32, q8 or q4 (default f16)
  --threads N         compute with N threads (default: half of the processors, at most 8)
  --no-log            write no line of JSON to standard error for each request
`;

const NO_LOG = '--no-log';
/**
 * A value of --chat-template that may be the name of one of the model's templates; other values are
 * files.
 */
const TEMPLATE_NAME = /^[\w-]+$/;
const PORT = 8080;
/** The body limit with images and recordings. */
const MEDIA_BODY_BYTES = 32 << 20;
const HOST = '127.0.0.1';
const PORT_MAX = 65_535;

const options = [
  ...['--port', '--host', ...serveOptions.map(([option]) => option)],
  ...['--ctx', '--kv', '--threads', '--chat-template', '--lora', '--draft'],
  ...['--mmproj', '--max-tiles', '--max-image-tokens'],
];

/** @param {string} problem */
const misused = (problem) => new Exit(EXIT_USAGE, `${problem} (${USAGE})`);

/** @param {Argument[]} found */
function readArguments(found) {
  /** @type {Map<string, string[]>} */
  const given = new Map(options.map((name) => [name, []]));
  /** @type {string[]} */
  const models = [];
  for (const one of found) {
    if ('positional' in one) models.push(one.positional);
    else if (one.option === NO_LOG) given.set(NO_LOG, ['']);
    else if (!given.has(one.option)) throw misused(`unknown option ${one.option}`);
    else if (!one.value) throw misused(`${one.option} needs a value`);
    else given.get(one.option)?.push(one.value);
  }
  if (models.length === 0) throw misused('MODEL is missing');
  if (models.length > 1) throw misused(`unexpected argument '${models[1]}'`);
  return { given, model: models[0] };
}

/** @param {Map<string, string[]>} given @param {string} option @param {number} max @param {number} [min] */
function numberOf(given, option, max, min = 0) {
  const text = given.get(option)?.at(-1);
  if (text === undefined) return undefined;
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw misused(`${option} must be a whole number from ${min} to ${max}, not '${text}'`);
}

const COUNT_MAX = 2 ** 31;

/** @param {Map<string, string[]>} given @returns {Record<string, any>} the options of createHandler */
function handlerOptionsOf(given) {
  const keys = given.get('--key') ?? [];
  const origins = given.get('--cors') ?? [];
  const metricsKey =
    given.get('--metrics-key')?.at(-1) ?? (keys.length === 1 ? keys[0] : undefined);
  const queueLimit = numberOf(given, '--queue', COUNT_MAX, 1);
  const model = given.get('--name')?.at(-1);
  return {
    ...(keys.length > 0 && { keys }),
    ...(metricsKey !== undefined && { metricsKey }),
    ...(origins.length > 0 && { cors: origins }),
    ...(queueLimit !== undefined && { queueLimit }),
    ...(model !== undefined && { model }),
    ...(!given.has(NO_LOG) && {
      onRequest: (/** @type {object} */ record) => {
        process.stderr.write(`${JSON.stringify(record)}\n`);
      },
    }),
    onError: (/** @type {any} */ error) => {
      process.stderr.write(`wick: ${error?.code ?? error?.name}: ${error?.message}\n`);
    },
  };
}

/** @param {Map<string, string[]>} given @returns {Record<string, any>} the options of createEngine in addition to the model */
function engineOptionsOf(given) {
  const [k, v = k] = given.get('--kv')?.at(-1)?.split(':') ?? [];
  return {
    contextSize: numberOf(given, '--ctx', COUNT_MAX, 1),
    threads: numberOf(given, '--threads', COUNT_MAX, 1),
    maxTiles: numberOf(given, '--max-tiles', COUNT_MAX, 1),
    maxImageTokens: numberOf(given, '--max-image-tokens', COUNT_MAX, 1),
    kvType: k === undefined ? undefined : { k, v },
  };
}

/** @param {string} path @returns {Promise<string>} */
async function textOf(path) {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new Exit(EXIT_FILE, `cannot read ${path}: ${/** @type {Error} */ (error).message}`);
  }
}

/** @param {Map<string, string[]>} given @returns {Promise<string | undefined>} Jinja, or the name of a template */
async function templateOf(given) {
  const name = given.get('--chat-template')?.at(-1);
  if (name === undefined || name === 'chatml') return name;
  return TEMPLATE_NAME.test(name) && !existsSync(name) ? name : textOf(name);
}

/** @param {import('../index.js').Engine} engine @param {string | undefined} template a name, or none */
async function checkTemplateName(engine, template) {
  if (!TEMPLATE_NAME.test(template ?? '')) return;
  try {
    await engine.applyTemplate([{ role: 'user', content: '' }]);
  } catch (error) {
    const { message } = /** @type {Error} */ (error); // a template may reject this conversation
    if (/has no chat template named/.test(message))
      throw new Exit(EXIT_FILE, `--chat-template: ${message}`);
  }
}

/**
 * @param {import('../index.js').Engine} engine
 * @param {boolean} isGiven whether an option sets a template
 */
async function warnOfTemplate(engine, isGiven) {
  if (isGiven || (await engine.info()).chatTemplate !== null) return;
  process.stderr.write(
    'wick: model has no chat template, so requests to /v1/chat/completions are rejected. Pass --chat-template FILE, or --chat-template chatml\n',
  );
}

/** @param {unknown} error of createHandler @returns {never} */
function failOption(error) {
  if (error instanceof TypeError) throw misused(error.message.replace(/^createHandler: /, ''));
  throw error;
}

/**
 * @param {Argument[]} found
 * @param {URL} home the folder of the package
 * @returns {Promise<undefined>} settles when a signal has ended the server
 */
export async function serveModel(found, home) {
  if (found.some((one) => 'option' in one && ['--help', '-h'].includes(one.option))) {
    process.stdout.write(HELP);
    return;
  }
  const { given, model } = readArguments(found);
  const [host, port] = [given.get('--host')?.at(-1) ?? HOST, numberOf(given, '--port', PORT_MAX)];
  const [ofHandler, ofEngine] = [handlerOptionsOf(given), engineOptionsOf(given)];
  /** @type {typeof import('../index.js')} */
  const { createEngine } = await import(new URL('index.js', home).href);
  /** @type {typeof import('../openai.js')} */
  const { createHandler } = await import(new URL('openai.js', home).href);
  const { source, ready } = sourceOf(model);
  const chatTemplate = await templateOf(given);
  const [draft, mmproj] = [given.get('--draft')?.at(-1), given.get('--mmproj')?.at(-1)];
  const options = {
    ...{ ...source, ...ofEngine },
    ...(chatTemplate !== undefined && { chatTemplate }),
    ...(draft !== undefined && { draft: { file: draft } }),
    ...(mmproj !== undefined && { mmproj: /^hf:/i.test(mmproj) ? mmproj : resolve(mmproj) }),
    ...(mmproj !== undefined && (await imageDecoder())),
  };
  const engine = await createEngine(/** @type {any} */ (options)).finally(ready);
  try {
    await checkTemplateName(engine, chatTemplate);
    const ofAdapters = await loadAdapters(engine, given.get('--lora') ?? []);
    await warnOfTemplate(engine, chatTemplate !== undefined);
    const ofMedia = mmproj === undefined ? {} : { bodyBytesMax: MEDIA_BODY_BYTES };
    const all = { ...ofHandler, ...ofAdapters, ...ofMedia };
    const handle = withPage(handlerOf(createHandler, engine, all));
    const server = await listen(handle, { host, port: port ?? PORT }).catch((error) => {
      throw new Exit(EXIT_FILE, `cannot listen at ${host}: ${error.message}`);
    });
    process.stdout.write(`${server.url}/v1\n`);
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
    await server.close();
  } finally {
    await engine.close();
  }
}

/**
 * @param {typeof import('../openai.js').createHandler} createHandler
 * @param {import('../index.js').Engine} engine
 * @param {import('../openai.js').HandlerOptions} ofHandler
 */
function handlerOf(createHandler, engine, ofHandler) {
  try {
    return createHandler(engine, ofHandler);
  } catch (error) {
    return failOption(error);
  }
}
