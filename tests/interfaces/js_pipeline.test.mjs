// wick-llm/pipeline under Node: the pipelines of transformers.js, with their results and option names.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { settingsOf } from '../../js/pipeline/generation_options.js';
import { textGeneration } from '../../js/pipeline/text_generation.js';
import { locate } from '../support/locate.mjs';
import { dist, hasCode, isAbort, modelPath, openEngine, waitUntil } from '../support/package.mjs';

/** @type {typeof import('../../js/pipeline.js')} */
const { pipeline, TextStreamer, InterruptableStoppingCriteria, Tensor, cos_sim } = await import(
  pathToFileURL(join(dist, 'pipeline.js')).href
);
const shared = locate('shared');
const models = join(shared.path, 'vectors/reference-more/models');

/** @param {import('node:test').TestContext} t */
async function open(t) {
  const engine = await openEngine(t);
  return { engine, generator: await pipeline('text-generation', engine) };
}

describe('text-generation', () => {
  const messages = [
    { role: 'system', content: 'You are Wick, a small and friendly assistant.' },
    { role: 'user', content: 'What is Wick?' },
  ];

  test('a chat returns its messages and the answer', async (t) => {
    const { engine, generator } = await open(t);
    const output = await generator(messages, { max_new_tokens: 60 });
    const expected = await engine.chat.completions.create({
      messages,
      temperature: 0,
      max_tokens: 60,
    });
    const { content } = expected.choices[0].message;
    assert.deepEqual(output, [{ generated_text: [...messages, { role: 'assistant', content }] }]);
    const two = [messages, [{ role: 'user', content: 'Hello' }]];
    const both = await generator(two, { max_new_tokens: 60 });
    assert.deepEqual(both[0], output);
    assert.deepEqual([both.length, both[1][0].generated_text.length], [2, 2]);
  });

  test('output is returned with or without the prompt', async (t) => {
    const { engine, generator } = await open(t);
    const wanted = { temperature: 0, maxTokens: 12, penaltyLast: -1 };
    const text = await engine.generate('Once upon a time', wanted).text();
    const options = { max_new_tokens: 12 };
    const full = await generator('Once upon a time', options);
    assert.deepEqual(full, [{ generated_text: `Once upon a time${text}` }]);
    const rest = await generator('Once upon a time', { ...options, return_full_text: false });
    assert.deepEqual(rest, [{ generated_text: text }]);
    const list = await generator(['Once upon a time', 'Hello'], options);
    assert.deepEqual([list.length, list[0]], [2, full]);
  });

  test('lengths, stop strings, sampling and several sequences are supported', async (t) => {
    const { engine, generator } = await open(t);
    const count = (/** @type {any} */ [{ generated_text: text }]) => engine.countTokens(text);
    const tokens = await engine.countTokens('Once upon a time');
    const all = await count(await generator('Once upon a time', { max_length: tokens + 5 }));
    assert.equal(all, tokens + 5);
    const story = await generator('Once upon a time', { max_new_tokens: 40 });
    const stop = story[0].generated_text.split(' ').at(-2) ?? '';
    const stopped = await generator('Once upon a time', {
      max_new_tokens: 40,
      stop_strings: [stop],
    });
    assert.ok(story[0].generated_text.startsWith(stopped[0].generated_text));
    assert.ok(stopped[0].generated_text.length < story[0].generated_text.length);
    const hot = { do_sample: true, temperature: 1.8, max_new_tokens: 20, num_return_sequences: 3 };
    for (const input of /** @type {any[]} */ (['Once', messages])) {
      const three = await generator(input, { ...hot, seed: 5 });
      const texts = three.map((/** @type {any} */ one) => JSON.stringify(one.generated_text));
      assert.equal(new Set(texts).size, 3);
      assert.deepEqual(await generator(input, { ...hot, seed: 5 }), three);
    }
    // without do_sample a temperature has no effect
    const greedy = await generator('Once upon a time', { max_new_tokens: 40, temperature: 2 });
    assert.deepEqual(greedy, story);
  });

  test('TextStreamer prints without a callback, through the console if there is no standard output', (t) => {
    /** @type {string[]} */
    const printed = [];
    const take = (/** @type {string} */ text) => printed.push(text) > 0;
    const { stdout } = process;
    const write = t.mock.method(stdout, 'write', take);
    new TextStreamer(undefined).on_text('a piece');
    write.mock.restore();
    const log = t.mock.method(console, 'log', take);
    Object.defineProperty(process, 'stdout', { value: undefined, configurable: true });
    new TextStreamer(undefined).on_text('a line');
    Object.defineProperty(process, 'stdout', { value: stdout, configurable: true });
    log.mock.restore();
    assert.deepEqual(printed, ['a piece', 'a line']);
  });

  test('TextStreamer receives pieces as they arrive, with or without the prompt', async (t) => {
    const { engine, generator } = await open(t);
    for (const input of /** @type {any[]} */ ([messages, 'Once upon a time'])) {
      /** @type {string[]} */
      const pieces = [];
      const callback_function = (/** @type {string} */ text) => void pieces.push(text);
      const streamerOf = (skip_prompt = true) =>
        new TextStreamer(generator.tokenizer, { skip_prompt, callback_function });
      const options = { max_new_tokens: 20, return_full_text: false };
      const output = await generator(input, { ...options, streamer: streamerOf() });
      const made = /** @type {any} */ (output[0].generated_text);
      const text = typeof made === 'string' ? made : made.at(-1)?.content;
      assert.ok(pieces.length > 3);
      assert.equal(pieces.join(''), text);
      pieces.length = 0;
      await generator(input, { ...options, streamer: streamerOf(false) });
      const prompt = typeof input === 'string' ? input : await engine.applyTemplate(input);
      assert.equal(pieces.join(''), prompt + text);
    }
    const streamer = new TextStreamer(generator.tokenizer);
    await assert.rejects(generator(['a', 'b'], { streamer }), hasCode('ARG'));
    const tokens = /** @type {any} */ ({ token_callback_function: () => {} });
    assert.throws(() => new TextStreamer(generator.tokenizer, tokens), hasCode('UNSUPPORTED'));
  });

  test('an interrupt ends a generation and keeps its output; an abort rejects', async (t) => {
    const { engine, generator } = await open(t);
    const stopping_criteria = new InterruptableStoppingCriteria();
    let pieces = 0;
    const callback_function = () => {
      if (++pieces === 3) stopping_criteria.interrupt();
    };
    const streamer = new TextStreamer(generator.tokenizer, {
      skip_prompt: true,
      callback_function,
    });
    const options = { max_new_tokens: 1000, streamer, stopping_criteria };
    for (const input of /** @type {any[]} */ ([messages, 'Once upon a time'])) {
      pieces = 0;
      stopping_criteria.reset();
      const [{ generated_text: made }] = /** @type {any[]} */ (await generator(input, options));
      assert.equal(pieces, 3);
      assert.ok((made.at(-1)?.content ?? made).length > 3);
    }
    await waitUntil(async () => {
      const { running, waiting } = (await engine.stats()).requests;
      return running + waiting === 0; // a short answer may have ended before
    }, 'both requests have ended');
    const signal = AbortSignal.abort();
    await assert.rejects(generator('Hello', { signal }), isAbort);
    await assert.rejects(generator(messages, { signal }), isAbort);
  });

  test('tools and the tokenizer are supported', async (t) => {
    const chatTemplate =
      '{% if false %}<tool_call>{% endif %}{{ mood }}{% for t in tools %}[{{ t.function.name }}]{% endfor %}' +
      '{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}';
    const engine = await openEngine(t, { file: modelPath, chatTemplate });
    const generator = await pipeline('text-generation', engine);
    const { tokenizer } = generator;
    const hello = [{ role: 'user', content: 'Hello' }];
    /** @type {string[]} */
    const reported = [];
    const callback_function = (/** @type {string} */ text) => void reported.push(text);
    const weather = { name: 'weather', parameters: { type: 'object' } };
    await generator(hello, {
      ...{ max_new_tokens: 1, tools: [{ type: 'function', function: weather }] },
      tokenizer_encode_kwargs: { mood: 'calm' },
      streamer: new TextStreamer(tokenizer, { callback_function }),
    });
    assert.equal(reported[0], 'calm[weather]<user>Hello');
    const text = await tokenizer.apply_chat_template(hello, { tokenize: false, mood: 'wild' });
    assert.equal(text, 'wild<user>Hello');
    const whole = /** @type {any} */ ({});
    assert.throws(() => tokenizer.apply_chat_template(hello, whole), hasCode('UNSUPPORTED'));
    const tokens = await tokenizer.encode('Hello there<|im_end|>');
    assert.deepEqual(tokens, await engine.tokenize('Hello there<|im_end|>'));
    assert.equal(await tokenizer.decode(tokens), 'Hello there<|im_end|>');
    assert.equal(await tokenizer.decode(tokens, { skip_special_tokens: true }), 'Hello there');
  });

  test('unsupported fields are rejected with their name, unless their value is neutral', async (t) => {
    const { generator } = await open(t);
    const wrong = [{ num_beams: 4 }, { no_repeat_ngram_size: 3 }, { max_tokens: 5 }];
    for (const options of /** @type {any[]} */ (wrong)) {
      const [name] = Object.keys(options);
      await assert.rejects(generator('Hello', options), new RegExp(`${name} is not supported`));
    }
    const idle = /** @type {any} */ ({ num_beams: 1, no_repeat_ngram_size: 0, max_new_tokens: 1 });
    assert.equal((await generator('Hello', idle)).length, 1);
    const notOurs = [{ streamer: 5 }, { streamer: { put() {} } }, { stopping_criteria: 5 }];
    for (const options of /** @type {any[]} */ ([
      ...notOurs,
      { stopping_criteria: [() => true] },
    ])) {
      const [name] = Object.keys(options);
      const refused = generator('Hello', options);
      await assert.rejects(refused, { code: 'ARG', message: new RegExp(`^${name} must be`) });
    }
    const reported = pipeline(
      'text-generation',
      modelPath,
      /** @type {any} */ ({ progress_callback: 5 }),
    );
    await assert.rejects(reported, {
      code: 'ARG',
      message: /progress_callback must be a function/,
    });
    for (const input of [5, [], [5], [{}], null, ['a', messages, 5]]) {
      await assert.rejects(generator(/** @type {any} */ (input)), hasCode('ARG'));
    }
  });
});

describe('textGeneration with a fake engine', () => {
  const chat = [{ role: 'user', content: 'a' }];

  /** @param {any[]} chunks of a chat @param {string[][]} [pieces] of each completion */
  function generatorOver(chunks, pieces = [['x', 'y']]) {
    /** @type {any[]} */
    const asked = [];
    const engine = {
      countTokens: async (/** @type {any} */ ...all) => asked.push(['count', ...all]) && 7,
      applyTemplate: async (/** @type {any} */ ...all) => asked.push(['template', ...all]) && '<a>',
      tokenize: async (/** @type {any} */ ...all) => asked.push(['tokenize', ...all]) && [1, 2],
      chat: {
        completions: {
          create: async (/** @type {any} */ ...all) => {
            asked.push(['create', ...all]);
            return (async function* () {
              for (const [index, delta, finish_reason] of chunks)
                yield { choices: [{ index, delta, finish_reason }] };
            })();
          },
        },
      },
      generateMany: (/** @type {any} */ ...all) => {
        asked.push(['generate', ...all]);
        return pieces.map((list) =>
          (async function* () {
            yield* list;
          })(),
        );
      },
    };
    return { generate: textGeneration(/** @type {any} */ (engine)), asked };
  }

  test('each sequence has its own text, reasoning and calls', async () => {
    const call = (
      /** @type {number} */ index,
      /** @type {any} */ part,
      /** @type {string} */ id,
    ) => ({
      tool_calls: [{ index, ...(id && { id }), function: { arguments: '', ...part } }],
    });
    const { generate, asked } = generatorOver([
      ...[
        [0, { content: 'a' }, null],
        [1, { reasoning_content: 'r' }, null],
        [1, { reasoning_content: 's' }, null],
      ],
      ...[
        [1, call(0, { name: 'f' }, 'c0'), null],
        [0, { content: 'b' }, null],
        [0, {}, 'stop'],
      ],
      ...[
        [1, call(0, { arguments: '{' }, ''), null],
        [1, call(1, { name: 'g', arguments: '1' }, 'c1'), null],
      ],
      ...[
        [1, call(0, { arguments: '}' }, ''), 'tool_calls'],
        [2, call(0, { name: 'h' }, 'c'), 'length'],
      ],
    ]);
    const made = await generate(chat, { num_return_sequences: 3 });
    const of = (
      /** @type {string} */ id,
      /** @type {string} */ name,
      /** @type {string} */ text,
    ) => ({
      ...{ id, type: 'function', function: { name, arguments: text } },
    });
    assert.deepEqual(
      made.map((/** @type {any} */ { generated_text: [first, answer, ...none] }) => {
        assert.deepEqual([first, none], [chat[0], []]);
        return answer;
      }),
      [
        { role: 'assistant', content: 'ab' },
        {
          ...{ role: 'assistant', content: '', reasoning_content: 'rs' },
          tool_calls: [of('c0', 'f', '{}'), of('c1', 'g', '1')],
        },
        { role: 'assistant', content: '' },
      ],
    );
    const [[, body, how]] = asked;
    assert.deepEqual([body.stream, body.n, body.messages, how], [true, 3, chat, { signal: null }]);
    assert.deepEqual(body.chat_template_kwargs, {});
    assert.equal('tools' in body, false);
    assert.equal(asked.length, 1, 'the prompt is neither counted nor rendered');
  });

  test('tools, variables and the signal reach the template, the count and the request', async () => {
    const { generate, asked } = generatorOver([[0, { content: 'a' }, 'stop']]);
    /** @type {string[]} */
    const reported = [];
    const streamer = new TextStreamer(undefined, {
      callback_function: (text) => void reported.push(text),
    });
    const { signal } = new AbortController();
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const variables = { v: 1 };
    const options = { max_length: 10, tools, tokenizer_encode_kwargs: variables, streamer, signal };
    await generate(chat, /** @type {any} */ (options));
    assert.deepEqual(asked.slice(0, 2), [
      ['count', chat, { tools, variables }],
      ['template', chat, { variables: { v: 1, tools } }],
    ]);
    const [, body, how] = asked[2];
    assert.deepEqual(
      [body.tools, body.chat_template_kwargs, body.max_tokens, how],
      [tools, variables, 3, { signal }],
    );
    assert.deepEqual(reported, ['<a>', 'a']);
    const quiet = new TextStreamer(undefined, {
      skip_prompt: true,
      callback_function: (text) => void reported.push(text),
    });
    await generate(chat, /** @type {any} */ ({ streamer: quiet }));
    assert.deepEqual([reported.slice(2), asked.length], [['a'], 4]);
  });

  test('a string prompt is passed as tokens, with the engine’s option names', async () => {
    const { generate, asked } = generatorOver([], [['x', '', 'y'], ['z']]);
    const options = {
      num_return_sequences: 2,
      stop_strings: ['s'],
      seed: 4,
      min_p: 0.1,
      do_sample: true,
    };
    const made = await generate('Once', /** @type {any} */ (options));
    assert.deepEqual(made, [{ generated_text: 'Oncexy' }, { generated_text: 'Oncez' }]);
    const usual = { maxTokens: 256, repeatPenalty: 1, penaltyLast: -1, typicalP: 1, signal: null };
    assert.deepEqual(asked, [
      ['tokenize', 'Once', { addSpecial: true }],
      [
        ...['generate', [1, 2]],
        { ...usual, n: 2, temperature: 1, topK: 50, topP: 1, minP: 0.1, stop: ['s'], seed: 4 },
      ],
    ]);
    const plain = {
      add_special_tokens: false,
      max_length: 5,
      repetition_penalty: 2,
      typical_p: 0.5,
    };
    const again = await generate(['a', 'b'], { ...plain, return_full_text: false });
    assert.deepEqual(again[1], [{ generated_text: 'xy' }, { generated_text: 'z' }]);
    assert.deepEqual(asked[2], ['tokenize', 'a', { addSpecial: false }]);
    const { maxTokens, repeatPenalty, typicalP } = /** @type {any[]} */ (asked).at(-1)[2];
    assert.deepEqual([maxTokens, repeatPenalty, typicalP], [3, 2, 0.5]);
  });

  test('a streamer’s end() is called once, for a string and for a chat', async () => {
    let ends = 0;
    class Ending extends TextStreamer {
      end() {
        ends++;
      }
    }
    const streamer = new Ending(undefined, { callback_function: () => assert.equal(ends, 0) });
    const { generate } = generatorOver([[0, { content: 'a' }, 'stop']]);
    for (const input of ['a', chat]) {
      await generate(input, { streamer });
      assert.equal(ends, 1);
      ends = 0;
    }
  });

  test('an interrupt ends a generation after the received piece; a streamer gets no empty piece', async () => {
    const stop = new InterruptableStoppingCriteria();
    /** @type {string[]} */
    const reported = [];
    const streamer = new TextStreamer(undefined, {
      callback_function: (text) => {
        reported.push(text);
        if (text === 'x') stop.interrupt();
      },
    });
    const options = /** @type {any} */ ({ stopping_criteria: stop, streamer });
    const texts = generatorOver([], [['', 'x', 'y']]);
    assert.deepEqual(await texts.generate('a', options), [{ generated_text: 'ax' }]);
    assert.deepEqual(reported.splice(0), ['a', 'x']);
    stop.reset();
    const chats = generatorOver([
      [0, { content: '' }],
      [0, { content: 'x' }],
      [0, { content: 'y' }],
    ]);
    const [{ generated_text: answered }] = /** @type {any[]} */ (
      await chats.generate(chat, {
        ...options,
        stopping_criteria: [stop],
      })
    );
    assert.equal(answered[1].content, 'x');
    for (const [input, more] of /** @type {[any, any][]} */ ([
      ...[
        [['a', 'b'], {}],
        ['a', { num_return_sequences: 2 }],
      ],
    ])) {
      await assert.rejects(texts.generate(input, { streamer, ...more }), {
        code: 'ARG',
        message: /streamer: supports only one output/,
      });
    }
    for (const input of [[], [[]], [{}], {}, undefined, ['a', {}], [null]]) {
      await assert.rejects(texts.generate(input), {
        code: 'ARG',
        message: /^inputs must be a string/,
      });
    }
  });
});

describe('generation options', () => {
  const settings = (/** @type {any} */ options, tokens = 7) =>
    settingsOf(options, async () => tokens);
  const usual = {
    ...{ temperature: 0, min_p: 0, typical_p: null, max_tokens: 256, repeat_penalty: null },
    ...{ repeat_last_n: -1, stop: null, n: 1, seed: null },
  };

  test('missing options and null have the defaults of transformers', async () => {
    assert.deepEqual(await settings({}), usual);
    const names = [
      'max_new_tokens',
      'temperature',
      'top_k',
      'top_p',
      'min_p',
      'typical_p',
      'seed',
      'num_beams',
    ];
    assert.deepEqual(await settings(Object.fromEntries(names.map((name) => [name, null]))), usual);
    const { temperature, ...others } = usual;
    const drawn = { temperature: 1, top_k: 50, top_p: 1, ...others };
    assert.deepEqual(await settings({ do_sample: true }), drawn);
    assert.deepEqual(await settings({ do_sample: true, top_k: null, top_p: undefined }), drawn);
    assert.deepEqual(
      await settings({ temperature: 0.5, top_k: 3, top_p: 0.2 }),
      usual,
      'without do_sample',
    );
    assert.deepEqual(await settings({ do_sample: true, temperature: 0.5, top_k: 0, top_p: 0 }), {
      ...drawn,
      ...{ temperature: 0.5, top_k: 0, top_p: 0 },
    });
  });

  test('options are passed under the engine’s names', async () => {
    const given = {
      ...{ min_p: 0.1, typical_p: 0.9, max_new_tokens: 3, max_length: 99, repetition_penalty: 1.2 },
      ...{ stop_strings: ['x'], num_return_sequences: 2, seed: 5 },
    };
    assert.deepEqual(await settings(given), {
      ...{ temperature: 0, min_p: 0.1, typical_p: 0.9, max_tokens: 3, repeat_penalty: 1.2 },
      ...{ repeat_last_n: -1, stop: ['x'], n: 2, seed: 5 },
    });
  });

  test('max_length includes the prompt and leaves at least one token', async () => {
    for (const [length, tokens, left] of [
      [10, 7, 3],
      [8, 7, 1],
      [7, 7, 1],
      [1, 7, 1],
      [10, 0, 10],
    ]) {
      assert.equal((await settings({ max_length: length }, tokens)).max_tokens, left);
    }
    const uncounted = () => assert.fail('no prompt is counted without max_length');
    assert.equal((await settingsOf({}, uncounted)).max_tokens, 256);
  });

  test('unsupported options may have neutral values', async () => {
    const idle = {
      ...{
        num_beams: 1,
        no_repeat_ngram_size: 0,
        min_length: 0,
        min_new_tokens: 0,
        num_beam_groups: 1,
      },
      ...{ penalty_alpha: 0, encoder_repetition_penalty: 1, length_penalty: 1, guidance_scale: 1 },
    };
    assert.deepEqual(await settings(idle), usual);
    for (const [name, value] of Object.entries(idle)) {
      for (const other of [value + 1, value - 1, true]) {
        const words = { code: 'UNSUPPORTED', message: `${name} is not supported` };
        await assert.rejects(settings({ [name]: other }), words);
      }
    }
    await assert.rejects(settings({ unknown: 0 }), { code: 'UNSUPPORTED' });
    const behind = { seed: null, top_k: 1, num_beams: 4 };
    await assert.rejects(settings(behind), { message: 'num_beams is not supported' });
  });
});

describe('feature-extraction', { skip: shared.skip }, () => {
  test('tensors contain the engine’s vectors', async (t) => {
    const engine = await openEngine(t, { file: join(models, 'bert-cls.gguf') });
    const extractor = await pipeline('feature-extraction', engine);
    const { hidden = 0 } = (await engine.info()).shape ?? {};
    const texts = ['a fox', 'a hen on the sea'];
    for (const [pooling, own] of /** @type {const} */ ([
      ...[
        ['mean', 'mean'],
        ['cls', 'cls'],
        ['first_token', 'cls'],
        ['last_token', 'last'],
      ],
    ])) {
      for (const normalize of [true, false]) {
        const output = await extractor(texts, { pooling: /** @type {any} */ (pooling), normalize });
        const rows = await engine.embed(texts, { pooling: /** @type {any} */ (own), normalize });
        assert.ok(output instanceof Tensor);
        assert.deepEqual(
          [output.dims, output.type, output.size],
          [[2, hidden], 'float32', 2 * hidden],
        );
        assert.deepEqual(
          output.tolist(),
          rows.map((row) => Array.from(row)),
        );
      }
    }
    const one = await extractor('a fox', { pooling: 'mean', normalize: true });
    assert.deepEqual(one.dims, [1, hidden]);
    const long = await extractor('fox '.repeat(3000), { pooling: 'mean' }); // cut to the context
    assert.deepEqual(long.dims, [1, hidden]);
    const each = await extractor(texts, { pooling: 'mean', normalize: true });
    const [first, second, ...none] = [...each];
    assert.deepEqual([none.length, second.dims], [0, [hidden]]);
    assert.deepEqual([first.tolist(), second.tolist()], each.tolist());
    assert.ok(Math.abs(cos_sim(first.data, one.data) - 1) < 1e-5);
    assert.ok(cos_sim([1, 0], [0, 2]) === 0 && cos_sim([1, 1], [-1, -1]) < -0.999);
    assert.throws(() => cos_sim([1], [1, 2]), hasCode('ARG'));
  });

  test('without pooling each token has a vector, padded with zeros', async (t) => {
    const engine = await openEngine(t, { file: join(models, 'bert-cls.gguf') });
    const extractor = await pipeline('feature-extraction', engine);
    const { hidden = 0 } = (await engine.info()).shape ?? {};
    const texts = ['a fox', 'a hen on the sea'];
    const counts = await Promise.all(texts.map((text) => engine.countTokens(text)));
    const output = await extractor(texts);
    assert.deepEqual(output.dims, [2, counts[1], hidden]);
    const [fox, hen] = output.tolist();
    assert.ok(counts[0] < counts[1]);
    assert.ok(
      fox
        .slice(counts[0])
        .flat()
        .every((/** @type {number} */ one) => one === 0),
    );
    assert.ok(
      fox
        .slice(0, counts[0])
        .flat()
        .some((/** @type {number} */ one) => one !== 0),
    );
    const [rows] = await engine.embed(texts[1], { pooling: 'none', normalize: false });
    assert.deepEqual(hen.flat(), Array.from(rows));
  });

  test('invalid inputs are rejected', async (t) => {
    const engine = await openEngine(t, { file: join(models, 'bert-cls.gguf') });
    const extractor = await pipeline('feature-extraction', engine);
    const refused = /** @type {any[]} */ ([
      [{ pooling: 'max' }, 'ARG'],
      [{ quantize: true }, 'UNSUPPORTED'],
    ]);
    for (const [options, code] of refused)
      await assert.rejects(extractor('a', options), hasCode(code));
    await assert.rejects(extractor(/** @type {any} */ ([5])), hasCode('ARG'));
    await assert.rejects(extractor('a', { signal: AbortSignal.abort() }), isAbort);
  });
});

describe('text-classification', { skip: shared.skip }, () => {
  test('returns the file’s labels with probabilities, best first', async (t) => {
    const engine = await openEngine(t, { file: join(models, 'bert-rank-labels.gguf') });
    const classifier = await pipeline('sentiment-analysis', engine);
    const [logits] = await engine.embed('a fox', { pooling: 'rank' });
    const powers = Array.from(logits, Math.exp);
    const sum = powers.reduce((a, b) => a + b);
    const all = await classifier('a fox', { top_k: null });
    const expected = ['no', 'maybe', 'yes']
      .map((label, index) => ({ label, score: powers[index] / sum }))
      .sort((a, b) => b.score - a.score);
    assert.deepEqual(
      all.map(({ label }) => label),
      expected.map(({ label }) => label),
    );
    for (const [index, { score }] of all.entries()) {
      assert.ok(Math.abs(score - expected[index].score) < 1e-6);
    }
    assert.deepEqual(await classifier('a fox'), all.slice(0, 1));
    assert.deepEqual(await classifier('a fox', { top_k: 2 }), all.slice(0, 2));
    const two = await classifier(['a fox', 'a hen']);
    assert.deepEqual([two.length, two[0]], [2, all[0]]);
    assert.equal((await classifier('fox '.repeat(3000))).length, 1); // cut to the context
    const each = await classifier(['a fox', 'a hen'], { top_k: 3 });
    assert.deepEqual([each.length, each[0]], [2, all]);
  });

  test('heads with one output, causal models, and models without a head', async (t) => {
    const one = await openEngine(t, { file: join(models, 'bert-rank.gguf') });
    const [logit] = (await one.embed('a fox', { pooling: 'rank' }))[0];
    const [{ label, score }] = await (await pipeline('text-classification', one))('a fox');
    assert.equal(label, 'LABEL_0');
    assert.ok(Math.abs(score - 1 / (1 + Math.exp(-logit))) < 1e-6);
    const causal = await openEngine(t, { file: join(models, 'qwen3-rank.gguf') });
    const scores = await (await pipeline('text-classification', causal))('a fox', { top_k: null });
    const [own] = await causal.embed('a fox', { pooling: 'rank' });
    assert.deepEqual(
      scores.map((each) => each.score),
      Array.from(own).sort((a, b) => b - a),
    );
    assert.deepEqual(scores.map((each) => each.label).sort(), ['no', 'yes']);
    const none = await pipeline('text-classification', await openEngine(t));
    await assert.rejects(none('a fox'), hasCode('UNSUPPORTED'));
    for (const top_k of /** @type {any[]} */ ([0, -1, 1.5, 'x'])) {
      await assert.rejects(none('a fox', { top_k }), hasCode('ARG'));
    }
  });
});

describe('pipeline', () => {
  test('pipeline loads a model from a path or URL, reports progress and disposes of it', async () => {
    for (const model of [modelPath, pathToFileURL(modelPath), pathToFileURL(modelPath).href]) {
      /** @type {any[]} */
      const reported = [];
      const options = { dtype: 'q4', device: 'webgpu', threads: 1 };
      const generator = await pipeline('text-generation', model, {
        ...options,
        progress_callback: (info) => reported.push(info),
      });
      const kinds = reported
        .map(({ status }) => status)
        .filter((one, at, all) => one !== all[at - 1]);
      assert.deepEqual(kinds, ['initiate', 'download', 'progress', 'done', 'ready']);
      assert.equal(reported[0].file, 'wick-2.6m-q8_0.gguf');
      const last = reported.findLast(({ status }) => status === 'progress');
      assert.deepEqual([last.progress, last.loaded], [100, last.total]);
      const loaded = reported.flatMap((one) => one.loaded ?? []);
      assert.ok(loaded.every((one, at) => at === 0 || one > loaded[at - 1]));
      assert.equal(generator.task, 'text-generation');
      await generator.dispose();
      await assert.rejects(generator('Hello'), hasCode('CLOSED'));
    }
  });

  test('invalid tasks, models and options are rejected', async () => {
    for (const task of ['translation', 'toString']) {
      const wrong = pipeline(/** @type {any} */ (task), modelPath);
      await assert.rejects(wrong, /the tasks are text-generation, feature-extraction/);
    }
    for (const model of [undefined, null, 5]) {
      await assert.rejects(pipeline('text-generation', /** @type {any} */ (model)), hasCode('ARG'));
    }
    await assert.rejects(pipeline('text-generation', 'no/such.gguf'), hasCode('IO'));
    const misspelt = /** @type {any} */ ({ thread: 1 });
    await assert.rejects(pipeline('text-generation', modelPath, misspelt), /did you mean threads/);
  });
});
