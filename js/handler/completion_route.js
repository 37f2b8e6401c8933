// js/handler/completion_route.js — POST /v1/completions: continues prompts, each with one or several choices.

import { samplerOptions } from '../base/sampler_fields.js';
import { adaptersOf, lora } from './adapter_fields.js';
import { FINGERPRINT } from './chat_route.js';
import { Choice, choiceOf, chunksFrom, collect, merged } from './choice.js';
import { echoOf } from './echo.js';
import {
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
/** @typedef {import('./create_handler.js').TextRoute} TextRoute */
/** @typedef {import('./echo.js').Echo} Echo */

/** OpenAI's default for max_tokens. */
const MAX_TOKENS = 16;
/** The maximum number of choices of all prompts of a request together. */
const CHOICES_MAX = 16;

const fields = withAliases({
  ...commonFields,
  ...fieldsOf('every', 'completion'), // control tokens in a prompt always keep their meaning
  lora,
});

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
    const own = seed === undefined || seed === -1 ? undefined : seed + index; // -1: a random seed
    return choiceOf(engine, prompt, { ...options, seed: own }, echo);
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
async function wholeOf(completion) {
  const choices = await collect(completion.choices, (text, index) => {
    const { echo, finish } = completion.choices[index];
    const shape = completion.shapeOf(index, text, finish);
    return echo ? { ...shape, text: echo.text + text } : shape;
  });
  return completion.bodyOf(choices, { usage: completion.usage });
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
 * @param {import('./create_handler.js').Asked} asked
 * @param {number} [maxTokens] used if the body has no limit; undefined: none
 * @returns {Record<string, any>} options of engine.generate
 */
export function optionsOf(body, { signal, salt }, maxTokens) {
  /** @type {Record<string, any>} */
  const options = {
    maxTokens: body.max_tokens ?? maxTokens,
    signal,
    salt: saltWithin(salt, body.salt),
  };
  for (const [name, value] of Object.entries(pickFields(body, optionNames))) {
    options[optionNames[name]] = value;
  }
  return options;
}

/** @param {Record<string, any>} body */
function checkChoices({ echo, stream, max_tokens: maxTokens, best_of: bestOf, n }) {
  if ((bestOf ?? n ?? 1) !== (n ?? 1)) missing()(bestOf, 'best_of');
  if (echo && stream) throw refusal('echo_stream', [], { param: 'echo' });
  if (!echo && maxTokens === 0) throw refusal('no_echo', [], { param: 'max_tokens' });
}

/** @type {TextRoute['answer']} */
async function answerCompletion(engine, body, asked) {
  if (body.n_probs) body.logprobs ??= body.n_probs;
  checkTogether(body, 'prompt');
  checkChoices(body);
  const prompts = await inputsOf(engine, body.prompt, 'prompt', asked.signal);
  const n = body.n ?? 1;
  if (prompts.length * n > CHOICES_MAX) {
    const param = prompts.length > 1 ? 'prompt' : 'n';
    throw refusal('choices', [CHOICES_MAX], { param });
  }
  const options = optionsOf(body, asked, MAX_TOKENS);
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
  const made = new Completion(choices, head, body.logprobs ?? undefined);
  if (!body.stream) return wholeOf(made);
  const wantsUsage = isObject(body.stream_options) && body.stream_options.include_usage === true;
  return chunksFrom(made.choices, chunksOf(made, wantsUsage));
}

/** @type {TextRoute} */
export const completion = { fields, answer: answerCompletion };
