// js/handler/completion_route.js — POST /v1/completions: continues prompts, each with one or several choices.

import { samplerOptions } from '../base/sampler_fields.js';
import { adaptersOf, lora } from './adapter_fields.js';
import { FINGERPRINT } from './chat_route.js';
import { Choice, merged } from './choice.js';
import { echoOf } from './echo.js';
import {
  checkBody,
  checkTogether,
  commonFields,
  fieldsOf,
  isObject,
  missing,
  pickFields,
  withAliases,
} from './fields.js';
import { refusal } from './http_errors.js';
import { saltWithin } from './keys.js';
import { inputsOf } from './native_input.js';
import { randomName } from './random_name.js';

/** @typedef {import('../index.js').Engine} Engine */
/** @typedef {import('../index.js').TokenDetail} TokenDetail */
/** @typedef {import('./event_stream.js').Chunks} Chunks */
/** @typedef {import('./echo.js').Echo} Echo */

/** OpenAI's default for max_tokens. */
const MAX_TOKENS = 16;
/** The maximum number of choices of all prompts of a request together. */
const CHOICES_MAX = 16;

/** @type {Record<string, import('./fields.js').Check>} */
const fields = withAliases({
  ...commonFields,
  ...fieldsOf('every', 'completion'), // control tokens in a prompt always keep their meaning
  lora,
});
export const completionFields = new Set(Object.keys(fields));

/**
 * Maps the fields that are passed on to the options of engine.generate.
 * @type {Record<string, string>}
 */
const optionNames = {
  ...{ stop: 'stop', logit_bias: 'logitBias', logprobs: 'logprobs' },
  ...{ grammar: 'grammar', regex: 'regex', choices: 'choices', json_schema: 'jsonSchema' },
  ...Object.fromEntries(samplerOptions),
};

/** The generation for `max_tokens: 0`: the choice has only the echo. @type {any} */
const nothing = {
  [Symbol.asyncIterator]: async function* () {},
  result: { finishReason: 'length' },
};

/**
 * @param {Engine} engine
 * @param {string | number[]} prompt
 * @param {Record<string, any>} options
 * @param {{n: number, seed: number | undefined, echo: Echo | undefined}} `seed`: the seed of the
 * first choice; later choices use consecutive seeds
 * @returns {Choice[]}
 */
function choicesOf(engine, prompt, options, { n, seed, echo }) {
  if (options.maxTokens === 0) return Array.from({ length: n }, () => new Choice(nothing, echo));
  if (options.logprobs === undefined) {
    return engine.generateMany(prompt, { ...options, seed, n }).map((one) => new Choice(one, echo));
  }
  // generateMany does not report which choice a token belongs to, so each choice is a request
  return Array.from({ length: n }, (_, index) => {
    const onToken = (/** @type {TokenDetail} */ token) => void choice.tokens.push(token);
    const own = seed === undefined || seed === -1 ? undefined : seed + index; // -1: a random seed
    const choice = new Choice(engine.generate(prompt, { ...options, seed: own, onToken }), echo);
    return choice;
  });
}

/** @param {Echo | undefined} echo the echo of a choice that generated nothing */
const usageOf = (echo) => {
  return { promptTokens: echo?.promptTokens ?? 0, cachedTokens: 0, completionTokens: 0 };
};

/** The choices of a request, and the shape of their chunks. */
class Completion {
  #head;
  #alternatives;

  /**
   * @param {Choice[][]} prompts the choices of each prompt
   * @param {object} head
   * @param {number | undefined} alternatives
   */
  constructor(prompts, head, alternatives) {
    this.prompts = prompts;
    this.choices = prompts.flat();
    this.#head = head;
    this.#alternatives = alternatives;
  }

  leave() {
    for (const choice of this.choices) choice.leave();
  }

  /** @param {number} index @param {string} text @param {string | null} finish */
  shapeOf(index, text, finish) {
    const logprobs =
      this.#alternatives === undefined
        ? null
        : this.choices[index].takeLogprobs(text, finish !== null, this.#alternatives);
    const { stop } = (finish && this.choices[index].generation.result) || {};
    const ended = { finish_reason: finish, ...(stop !== undefined && { stop_reason: stop }) };
    return { index, text, logprobs, ...ended };
  }

  /** @param {object[]} choices @param {object} [more] */
  bodyOf(choices, more) {
    return Object.assign({}, this.#head, { choices }, more);
  }

  /** @returns {object} the usage, once all choices have ended */
  get usage() {
    let [promptTokens, cachedTokens, completionTokens] = [0, 0, 0];
    for (const choices of this.prompts) {
      for (const [index, { generation, echo }] of choices.entries()) {
        const usage = generation.result?.usage ?? usageOf(echo);
        completionTokens += usage.completionTokens;
        if (index > 0) continue; // the choices of a prompt share its tokens
        promptTokens += usage.promptTokens;
        cachedTokens += usage.cachedTokens;
      }
    }
    return {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
      prompt_tokens_details: { cached_tokens: cachedTokens },
    };
  }
}

/** @param {Completion} completion @returns {Promise<object>} the whole response */
async function collect(completion) {
  const read = completion.choices.map(async (choice, index) => {
    let text = '';
    for (let next = await choice.next(); !next.done; next = await choice.next()) text += next.value;
    const shape = completion.shapeOf(index, text, choice.finish);
    return choice.echo ? { ...shape, text: choice.echo.text + text } : shape;
  });
  try {
    return completion.bodyOf(await Promise.all(read), { usage: completion.usage });
  } catch (error) {
    completion.leave();
    throw error;
  }
}

/** @param {Completion} completion @param {boolean} wantsUsage @returns {AsyncGenerator<object, void, void>} */
async function* chunksOf(completion, wantsUsage) {
  for await (const { index, text } of merged(completion.choices)) {
    const finish = typeof text === 'string' ? null : completion.choices[index].finish;
    const choice = completion.shapeOf(index, text ?? '', finish);
    yield completion.bodyOf([choice], wantsUsage ? { usage: null } : {});
  }
  if (wantsUsage) yield completion.bodyOf([], { usage: completion.usage });
}

/**
 * @param {Record<string, any>} body that was checked
 * @param {Record<string, import('./fields.js').Check>} known the fields of the route
 * @param {import('./create_handler.js').Asked} asked
 * @param {number} [maxTokens] used if the body has no limit; undefined: none
 * @returns {Record<string, any>} options of engine.generate
 */
export function optionsOf(body, known, { signal, salt }, maxTokens) {
  /** @type {Record<string, any>} */
  const options = {
    maxTokens: body.max_tokens ?? maxTokens,
    signal,
    salt: saltWithin(salt, body.salt),
  };
  for (const [name, value] of Object.entries(pickFields(body, known))) {
    if (Object.hasOwn(optionNames, name)) options[optionNames[name]] = value;
  }
  return options;
}

/** @param {Record<string, any>} body */
function checkChoices({ echo, stream, max_tokens: maxTokens, best_of: bestOf, n }) {
  if ((bestOf ?? n ?? 1) !== (n ?? 1)) missing()(bestOf, 'best_of');
  if (echo && stream) throw refusal('echo_stream', [], { param: 'echo' });
  if (!echo && maxTokens === 0) throw refusal('no_echo', [], { param: 'max_tokens' });
}

/**
 * @param {Engine} engine
 * @param {Record<string, any>} body
 * @param {import('./create_handler.js').Asked} asked
 * @returns {Promise<object | Chunks>} a completion, or with `stream: true` its chunks
 */
export async function answerCompletion(engine, body, asked) {
  checkBody(body, fields);
  if (body.n_probs) body.logprobs ??= body.n_probs;
  checkTogether(body, 'prompt');
  checkChoices(body);
  const prompts = await inputsOf(engine, body.prompt, 'prompt', asked.signal);
  const n = body.n ?? 1;
  if (prompts.length * n > CHOICES_MAX) {
    const param = prompts.length > 1 ? 'prompt' : 'n';
    throw refusal('choices', [CHOICES_MAX], { param });
  }
  const options = optionsOf(body, fields, asked, MAX_TOKENS);
  options.adapters = await adaptersOf(engine, body.lora, asked.adapters);
  const head = {
    id: `cmpl-${randomName()}`,
    object: 'text_completion',
    created: Math.floor(Date.now() / 1000),
    model: asked.model,
    system_fingerprint: FINGERPRINT,
  };
  const echoes = body.echo
    ? await Promise.all(prompts.map((prompt) => echoOf(engine, prompt, options)))
    : [];
  const choices = prompts.map((prompt, index) =>
    choicesOf(engine, prompt, options, { n, seed: body.seed ?? undefined, echo: echoes[index] }),
  );
  const completion = new Completion(choices, head, body.logprobs ?? undefined);
  if (!body.stream) return collect(completion);
  const wantsUsage = isObject(body.stream_options) && body.stream_options.include_usage === true;
  const chunks = chunksOf(completion, wantsUsage);
  return { leading: 0, next: () => chunks.next(), leave: () => completion.leave() };
}
