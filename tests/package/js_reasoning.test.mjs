// Limits on reasoning (thinking_budget_tokens), and template variables (chat_template_kwargs). The demo model writes
// text that matches a regular expression; the test's templates determine which part is reasoning.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { native, wick } from '../support/cli.mjs';
import { dist, hasCode, modelPath, openEngine, temporaryFolder } from '../support/package.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

/** @typedef {import('../../js/index.js').Engine} Engine */

const messages = [{ role: 'user', content: 'Is it cold in Oslo?' }];
const turns = '{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>';
/**
 * Returns a template whose source contains the tags but never writes them.
 * @param {string} open
 * @param {string} close
 */
const thinking = (open, close) => `{% if false %}${open}${close}{% endif %}${turns}`;
const plain = thinking('<think>', '</think>');

const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (message, ...more) {
  if (message.type === 'generate' && message.settings.grammar) {
    message.settings.grammar.isWhole = true; // the expressions include the reasoning
  }
  return postMessage.call(this, message, ...more);
};

/** Matches reasoning of any length, followed by an answer. */
const thoughtful = '<think>[a-z ]*</think>[0-9]{4}';
const wild = { temperature: 2, top_k: 0, top_p: 1, min_p: 0, max_tokens: 80, seed: 3 };

/** @param {import('node:test').TestContext} t @param {string} chatTemplate */
const open = (t, chatTemplate) => openEngine(t, { file: modelPath, chatTemplate });

/** @param {Engine} engine @param {object} [more] @returns {Promise<any>} */
const complete = (engine, more) =>
  engine.chat.completions.create(
    /** @type {any} */ ({ messages, ...wild, regex: thoughtful, logprobs: true, ...more }),
  );

/**
 * Returns the tokens of a choice between two tags.
 * @param {any} choice
 * @param {string} [open_]
 * @param {string} [close]
 */
function tokensOf({ logprobs }, open_ = '<think>', close = '</think>') {
  let [text, count] = ['', 0];
  for (const { bytes } of logprobs.content) {
    const begun = text.indexOf(open_);
    text += Buffer.from(bytes).toString('latin1');
    const isOver = text.includes(close[0], begun + open_.length);
    if (begun >= 0 && !isOver) count++;
  }
  return count;
}

describe('a limit on reasoning', () => {
  test('the reasoning ends after this number of tokens, then the answer follows', async (t) => {
    const engine = await open(t, plain);
    const [free] = (await complete(engine)).choices;
    assert.ok(tokensOf(free) > 20, `${tokensOf(free)}`);
    for (const limit of [0, 1, 7]) {
      const { choices } = await complete(engine, { thinking_budget_tokens: limit });
      const [{ message, finish_reason }] = choices;
      assert.equal(tokensOf(choices[0]), limit);
      assert.equal(finish_reason, 'stop');
      assert.match(message.content, /^\d{4}$/);
      assert.equal(message.reasoning_content === undefined, limit === 0);
      assert.ok(
        free.message.reasoning_content.startsWith((message.reasoning_content ?? '').trim()),
      );
    }
  });

  test('-1, null and a limit that is never reached have no effect', async (t) => {
    const engine = await open(t, plain);
    const [{ message }] = (await complete(engine)).choices;
    for (const limit of [-1, null, undefined, 80]) {
      const { choices } = await complete(engine, { thinking_budget_tokens: limit });
      assert.deepEqual(choices[0].message, message);
    }
  });

  test('the result is the same streamed, with several choices and with concurrent requests', async (t) => {
    const engine = await open(t, plain);
    const limits = [0, 2, 5, 9];
    const alone = [];
    for (const [seed, limit] of limits.entries()) {
      alone.push(await complete(engine, { seed, thinking_budget_tokens: limit }));
    }
    const together = await Promise.all(
      limits.map((limit, seed) => complete(engine, { seed, thinking_budget_tokens: limit })),
    );
    for (const [index, { choices }] of together.entries()) {
      assert.deepEqual(choices, alone[index].choices);
    }
    const [, , { choices }] = alone;
    let [reasoning, content] = ['', ''];
    const more = { seed: 2, thinking_budget_tokens: 5, stream: true };
    for await (const chunk of await complete(engine, more)) {
      reasoning += chunk.choices[0].delta.reasoning_content ?? '';
      content += chunk.choices[0].delta.content ?? '';
    }
    const { message } = choices[0];
    assert.deepEqual([reasoning, content], [message.reasoning_content, message.content]);
    const several = await complete(engine, { seed: 2, thinking_budget_tokens: 5, n: 3 });
    assert.deepEqual(several.choices[0].message, message);
    assert.equal(several.choices.length, 3);
    for (const choice of several.choices) assert.equal(tokensOf(choice), 5);
  });

  test('reasoning that is opened by the template', async (t) => {
    const engine = await open(t, `${plain}<think>\n`);
    for (const limit of [0, 3]) {
      const more = { regex: '[a-z ]*</think>[0-9]{4}', thinking_budget_tokens: limit };
      const [choice] = (await complete(engine, more)).choices;
      assert.equal(tokensOf(choice, ''), limit);
      assert.match(choice.message.content, /^\d{4}$/);
    }
  });

  test('the tags of other templates', async (t) => {
    for (const [open_, close] of [
      ['[THINK]', '[/THINK]'],
      ['<|START_THINKING|>', '<|END_THINKING|>'],
      ['<seed:think>', '</seed:think>'],
      ['<|inner_prefix|>', '<|inner_suffix|>'],
    ]) {
      const mark = (/** @type {string} */ text) => text.replace(/[[\]|]/g, '\\$&');
      const engine = await open(t, thinking(open_, close));
      const regex = `${mark(open_)}[a-z ]*${mark(close)}[0-9]{4}`;
      const [choice] = (await complete(engine, { regex, thinking_budget_tokens: 4 })).choices;
      assert.equal(tokensOf(choice, open_, close), 4, open_);
      assert.match(choice.message.content, /^\d{4}$/);
    }
  });

  test('tool calls follow the reasoning', async (t) => {
    const engine = await open(t, `{% if false %}<tool_call>{% endif %}${plain}<think>\n`);
    const parameters = { type: 'object', properties: { city: { enum: ['Oslo', 'Lima'] } } };
    const required = { ...parameters, required: ['city'], additionalProperties: false };
    const tool = { type: 'function', function: { name: 'weather', parameters: required } };
    for (const seed of [1, 2, 3]) {
      const more = {
        tools: [tool],
        tool_choice: 'required',
        regex: undefined,
        seed,
        max_tokens: 200,
        parallel_tool_calls: false,
      };
      const { choices } = await complete(engine, { ...more, thinking_budget_tokens: 6 });
      const [{ message, finish_reason }] = choices;
      assert.equal(finish_reason, 'tool_calls');
      for (const { function: called } of message.tool_calls) {
        assert.match(JSON.parse(called.arguments).city, /^(Oslo|Lima)$/);
      }
    }
  });

  test('a session, generate and the handler support the limit', async (t) => {
    const engine = await open(t, plain);
    const chat = await engine.createChat(
      /** @type {any} */ ({ ...wild, regex: thoughtful, thinking_budget_tokens: 3 }),
    );
    for (const question of ['Is it cold?', 'And in Lima?']) {
      const reply = chat.send(question);
      await reply.text();
      const { reasoning_content: thought, content } = /** @type {any} */ (reply.result).message;
      assert.match(String(content), /^\d{4}$/);
      assert.ok((await engine.tokenize(String(thought))).length <= 4);
    }
    const options = { regex: '[a-z ]*</think>[0-9]{4}', temperature: 2, seed: 3 };
    for (const prompt of ['Hm. <think>', await engine.tokenize('Hm. <think>')]) {
      const text = await engine.generate(prompt, { ...options, thinkingBudgetTokens: 0 }).text();
      assert.match(text, /^<\/think>\d{4}$/);
    }
    const closed = { ...options, regex: '[a-z]{9}', thinkingBudgetTokens: 0 };
    assert.match(await engine.generate('<think>', closed).text(), /^[a-z]{9}$/);
    const body = { messages, temperature: 0, max_tokens: 8, thinking_budget_tokens: 0 };
    const other = await open(t, `${plain}<think>\n`);
    const answer = await createHandler(other)(
      new Request('http://localhost/v1/chat/completions', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
    const [{ message }] = (await answer.json()).choices;
    assert.equal(message.reasoning_content, undefined);
    assert.notEqual(message.content, '');
  });

  test('the `wick` command supports the limit', async () => {
    const path = join(temporaryFolder(), 'thought.gbnf');
    writeFileSync(path, 'root ::= [a-z ]* "</think>" [0-9] [0-9]\n');
    const common = ['--temp', '2', '--seed', '3', '-n', '40', '--grammar', path];
    const run = async (/** @type {string[]} */ ...more) => {
      const args = ['run', modelPath, '-p', 'Hm. <think>', ...common, ...more];
      const { stdout, code } = await wick(native, args);
      return { code, stdout: stdout.toString() };
    };
    assert.match((await run('--reasoning-budget', '0')).stdout, /^<\/think>\d\d$/);
    const { stdout } = await run('--reasoning-budget', '4');
    assert.match(stdout, /^[a-z ]+<\/think>\d\d$/);
    const free = (await run()).stdout;
    assert.ok(free.startsWith(stdout.slice(0, stdout.indexOf('<'))));
    assert.ok(free.length > stdout.length);
    assert.equal((await run('--reasoning-budget', '-1')).code, 2);
  });

  test('errors about invalid values name the option', async (t) => {
    const engine = await open(t, plain);
    for (const wrong of [-2, 0.5, '5', true]) {
      await assert.rejects(complete(engine, { thinking_budget_tokens: wrong }), (error) => {
        assert.match(/** @type {Error} */ (error).message, /thinkingBudgetTokens/);
        return hasCode('ARG')(error);
      });
    }
    await assert.rejects(complete(engine, { thinking_token_budget: 5 }), (error) => {
      assert.match(/** @type {Error} */ (error).message, /did you mean thinking_budget_tokens/);
      return hasCode('ARG')(error);
    });
  });
});

describe('chat_template_kwargs', () => {
  const knowing =
    `${plain}{% if enable_thinking is defined and not enable_thinking %}<think></think>` +
    '{% else %}<think>{% endif %}';

  test('the template receives the variables', async (t) => {
    const engine = await open(t, '{{ enable_thinking }}/{{ effort.of[1] }}<assistant>');
    const written = async (/** @type {any} */ variables) => {
      const count = await engine.countTokens(messages, { variables });
      assert.equal(count, (await engine.tokenize(`${variables.told}<assistant>`)).length);
    };
    await written({ enable_thinking: false, effort: { of: [1, 'low'] }, told: 'False/low' });
    await written({ enable_thinking: true, effort: { of: [1, 2] }, told: 'True/2' });
  });

  test('reasoning_effort sets template variables in every interface', async (t) => {
    const shown = '{{ enable_thinking }} {{ reasoning_effort }}';
    const engine = await open(t, `${shown}<assistant>`);
    const handle = createHandler(engine);
    const post = async (/** @type {string} */ path, /** @type {object} */ body) => {
      const headers = { 'Content-Type': 'application/json' };
      const init = { method: 'POST', headers, body: JSON.stringify(body) };
      return (await handle(new Request(`http://localhost/v1/${path}`, init))).json();
    };
    for (const [effort, written] of /** @type {[any, string][]} */ ([
      [undefined, ' '],
      ['none', 'False '],
      ['minimal', 'True low'],
      ['medium', 'True medium'],
      ['xhigh', 'True high'],
    ])) {
      const tokens = (await engine.tokenize(`${written}<assistant>`)).length;
      const body = { messages, max_tokens: 1, reasoning_effort: effort };
      const whole = await engine.chat.completions.create(body);
      assert.equal(whole.usage.prompt_tokens, tokens, effort);
      assert.equal((await post('chat/completions', body)).usage.prompt_tokens, tokens, effort);
      const input = { input: 'Hi', max_output_tokens: 1, reasoning: { effort } };
      assert.equal((await post('responses', input)).usage.input_tokens, tokens, effort);
    }
    const both = { reasoning_effort: /** @type {const} */ ('low'), max_tokens: 1 };
    const own = { ...both, chat_template_kwargs: { reasoning_effort: 'of three words' } };
    const { usage } = await engine.chat.completions.create({ messages, ...own });
    // an unknown effort does not determine whether reasoning is on
    const words = await engine.tokenize(' of three words<assistant>');
    assert.equal(usage.prompt_tokens, words.length);
  });

  test('enable_thinking determines whether the reply begins with reasoning', async (t) => {
    const engine = await open(t, knowing);
    const replyTo = async (/** @type {boolean | undefined} */ isOn, /** @type {object} */ more) => {
      const kwargs = isOn === undefined ? {} : { enable_thinking: isOn };
      const asked = { chat_template_kwargs: kwargs, regex: '[a-z]{6}', ...more };
      const [{ message }] = (await complete(engine, asked)).choices;
      return [message.reasoning_content, message.content];
    };
    for (const isOn of [undefined, true]) {
      const [thought, content] = await replyTo(isOn, {});
      assert.match(thought, /^[a-z]{6}$/);
      assert.equal(content, '');
    }
    const [thought, content] = await replyTo(false, {});
    assert.equal(thought, undefined);
    assert.match(content, /^[a-z]{6}$/);
    // text that is not reasoning has no limit
    assert.deepEqual(await replyTo(false, { thinking_budget_tokens: 0 }), [undefined, content]);
  });

  test('the options do not affect a template without reasoning', async (t) => {
    const engine = await open(t, turns);
    const limited = { regex: undefined, max_tokens: 24 };
    const { choices, usage } = await complete(engine, limited);
    const more = { chat_template_kwargs: { enable_thinking: false }, thinking_budget_tokens: 0 };
    const other = await complete(engine, { ...limited, ...more });
    assert.deepEqual(other.choices, choices);
    assert.equal(other.usage.prompt_tokens, usage.prompt_tokens);
    const begun = await complete(engine, { ...more, regex: '<think>[a-z]{30}' });
    assert.match(begun.choices[0].message.content, /^<think>[a-z]{30}$/);
  });
});
