// How the package's command handles its options: runs the command with a fake engine and handler that
// only record their calls.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { dist, modelPath } from '../support/package.mjs';
import { run } from '../support/process.mjs';

const home = mkdtempSync(join(tmpdir(), 'wick-cli-'));
after(() => rmSync(home, { recursive: true }));
copyFileSync(join(dist, 'cli.js'), join(home, 'cli.js'));
symlinkSync(join(dist, 'wasi'), join(home, 'wasi'));
writeFileSync(join(home, 'package.json'), '{"type": "module"}');
writeFileSync(
  join(home, 'index.js'),
  `const plain = (_, value) => typeof value === 'bigint' ? value + 'n'
    : value === process.stdin ? 'input' : value;
  const print = (...printed) => console.log(JSON.stringify(printed, plain));
  export const createEngine = async (options) => {
    print('engine', options);
    if (options.file?.endsWith('.bad')) throw Object.assign(new Error('words'), { code: /([A-Z_]+)\\.bad/.exec(options.file)?.[1] });
    return {
      info: async () => ({ threads: 2, kernels: 'k', memory: { peakBytes: 7 }, plan: { totalBytes: 8 } }),
      generate(prompt, options) {
        print('generate', prompt, { ...options, onToken: typeof options.onToken });
        const one = (logprob) => ({ token: 5, text: 'x', logprob });
        options.onToken?.({ ...one(Math.fround(-0.1)), top: [one(Math.fround(-1 / 3)), one(-2), one(Math.fround(-0.123456789))] });
        return {
          async *[Symbol.asyncIterator]() { yield 'a\\n'; for (let i = 0; i < 12; i++) yield ''; yield 'b\\n'; },
          result: {
            finishReason: 'stop',
            usage: { promptTokens: 3, completionTokens: 4 },
            timings: { ttftMs: 1.23456, prefillTokensPerSecond: 2.00049, decodeTokensPerSecond: 1000 / 3 },
          },
        };
      },
      close: async () => print('close'),
    };
  };`,
);
writeFileSync(
  join(home, 'openai.js'),
  `export const createHandler = (_, { onError, ...options }) => {
    onError(Object.assign(new Error('words'), { code: 'CODE' }));
    onError(new RangeError('other'));
    onError(undefined);
    console.log(JSON.stringify(['handler', options]));
    throw new TypeError('createHandler: keys are wrong');
  };`,
);

/** @param {string[]} args @param {string} [input] */
async function wick(args, input = '') {
  const { code, stdout, stderr } = await run(process.execPath, [join(home, 'cli.js'), ...args], {
    input,
  });
  const lines = String(stdout).split('\n').filter(Boolean);
  const printed = lines.map((line) => (line.startsWith('[') ? JSON.parse(line) : line));
  return { code, printed, errors: String(stderr) };
}

/** Exit codes for file errors, memory errors and internal errors. */
const [FILE, MEMORY, INTERNAL] = [3, 4, 5];

/** The default options of a run. */
const usual = { temperature: 0, topK: 0, topP: 1, minP: 0, stop: [], onToken: 'undefined' };

describe('run with threads', () => {
  test('every option is parsed, and the last of duplicates counts', async () => {
    /** @type {[string, string, string, unknown][]} option, value, name, parsed value */
    const options = [
      ['-n', '7', 'maxTokens', 7],
      ['--temp', '0.5', 'temperature', 0.5],
      ['--top-k', '3', 'topK', 3],
      ['--top-p', '0.25', 'topP', 0.25],
      ['--min-p', '0.125', 'minP', 0.125],
      ['--repeat-penalty', '1.5', 'repeatPenalty', 1.5],
      ['--reasoning-budget', '5', 'thinkingBudgetTokens', 5],
      ['--frequency-penalty', '-1', 'frequencyPenalty', -1],
      ['--presence-penalty', '2', 'presencePenalty', 2],
      ['--logprobs', '3', 'logprobs', 3],
      ['--repeat-last-n', '-1', 'penaltyLast', -1],
      ['--typical', '0.9', 'typicalP', 0.9],
      ['--top-nsigma', '2', 'topNSigma', 2],
      ['--xtc-probability', '0.1', 'xtcProbability', 0.1],
      ['--xtc-threshold', '0.2', 'xtcThreshold', 0.2],
      ['--dynatemp-range', '0.3', 'dynatempRange', 0.3],
      ['--dynatemp-exp', '1.1', 'dynatempExponent', 1.1],
      ['--dry-multiplier', '0.4', 'dryMultiplier', 0.4],
      ['--dry-base', '1.6', 'dryBase', 1.6],
      ['--dry-allowed-length', '4', 'dryAllowedLength', 4],
      ['--dry-penalty-last-n', '9', 'dryPenaltyLast', 9],
      ['--mirostat', '2', 'mirostat', 2],
      ['--mirostat-ent', '4', 'mirostatTau', 4],
      ['--mirostat-lr', '0.2', 'mirostatEta', 0.2],
      ['--adaptive-target', '0.5', 'adaptiveTarget', 0.5],
      ['--adaptive-decay', '0.8', 'adaptiveDecay', 0.8],
      ['--samplers', 'top_k;;temperature', 'samplers', ['top_k', 'temperature']],
      ['--seed', '18446744073709551615', 'seed', '18446744073709551615n'],
    ];
    const args = options.map(([option, value]) =>
      option === '-n' ? [option, value] : [`${option}=${value}`],
    );
    const more = [
      '--stop',
      'x',
      '--stop',
      'y=z',
      '--dry-sequence-breaker',
      'q',
      '--dry-sequence-breaker',
      ';',
    ];
    const flags = [
      '--logprobs-after',
      '--no-speculation',
      '--stats',
      '--kv',
      'q8:q4',
      '--ctx',
      '99',
    ];
    const { code, printed, errors } = await wick([
      ...['run', modelPath, '-p', 'first', '-p', 'é', '--threads', '2', '-n', '1'],
      ...[...args.flat(), ...more, ...flags],
    ]);
    assert.equal(code, 0, errors);
    const wanted = Object.fromEntries(options.map(([, , name, value]) => [name, value]));
    assert.deepEqual(printed, [
      ['engine', { file: modelPath, threads: 2, contextSize: 99, kvType: { k: 'q8', v: 'q4' } }],
      [
        'generate',
        'é',
        {
          ...{
            ...wanted,
            stop: ['x', 'y=z'],
            drySequenceBreakers: ['q', ';'],
            onToken: 'function',
          },
          ...{ logprobsAfter: true, speculation: false },
        },
      ],
      ...['a', 'b', ['close']],
    ]);
    assert.doesNotMatch(errors, /Warning/, 'a listener must not be added for each piece');
    const [logprobs, stats] = errors
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const shown = (/** @type {number} */ logprob) => ({ token: 5, text: 'x', logprob });
    assert.deepEqual(logprobs, {
      ...shown(-0.1),
      top: [shown(-0.33333334), shown(-2), shown(-0.12345679)],
    });
    assert.ok(stats.load_ms >= 0 && stats.load_ms < 60_000);
    assert.deepEqual(stats, {
      ...{ load_ms: stats.load_ms, ttft_ms: 1.235, prefill_tok_s: 2, decode_tok_s: 333.333 },
      ...{ prompt_tokens: 3, completion_tokens: 4, finish_reason: 'stop', memory_bytes_peak: 7 },
      ...{ memory_bytes_planned: 8, threads: 2, kernels: 'k' },
    });
  });

  test('a full disk ends the command with a message and the exit code for file errors', async (t) => {
    if (!existsSync('/dev/full')) return t.skip('this system has no /dev/full');
    const full = openSync('/dev/full', 'w');
    t.after(() => closeSync(full));
    const args = [join(home, 'cli.js'), 'run', modelPath, '-p', 'x', '--threads', '2'];
    const { status, stderr } = spawnSync(process.execPath, args, {
      stdio: ['ignore', full, 'pipe'],
      encoding: 'utf8',
    });
    assert.equal(status, FILE, stderr);
    assert.match(stderr, /^wick: cannot write to standard output: .*\n$/);
  });

  test('the prompt and the model may be read from a file or standard input', async () => {
    const plain = (/** @type {any} */ source, /** @type {string} */ prompt) => [
      ['engine', { ...source, threads: 2 }],
      ['generate', prompt, usual],
      ...['a', 'b', ['close']],
    ];
    const text = join(home, 'text');
    writeFileSync(text, 'of a file');
    const letters = ['--sampling-seq', 'kt', '--dry-sequence-breaker', 'none'];
    const [ofFile, ofInput, ofModel, both, nothing, missing] = await Promise.all([
      wick(['run', '-f', text, '--threads=2', '--', modelPath]),
      wick(['run', modelPath, '--threads', '2', '-f', '-'], 'of input'),
      wick(['run', '-', '-p', 'x', '--threads', '2', ...letters], ''),
      wick(['run', modelPath, '--threads', '2', '-p', 'x', '-f', text]),
      wick(['run', '-', '--threads', '2']),
      wick(['run', modelPath, '--threads', '2', '-f', join(home, 'none')]),
    ]);
    assert.deepEqual(ofFile.printed, plain({ file: modelPath }, 'of a file'));
    assert.deepEqual(ofInput.printed, plain({ file: modelPath }, 'of input'));
    assert.deepEqual(ofModel.printed[0], ['engine', { stream: 'input', threads: 2 }]);
    const samplers = { samplers: ['top_k', 'temperature'], drySequenceBreakers: [] };
    assert.deepEqual(ofModel.printed[1], ['generate', 'x', { ...usual, ...samplers }]);
    const twice = 'wick: give the text with -p or -f, not both\n';
    assert.deepEqual([both.code, both.errors, both.printed], [2, twice, []]);
    const input = 'wick: standard input is the model already: give the text with -p or -f\n';
    assert.deepEqual([nothing.code, nothing.errors, nothing.printed], [2, input, []]);
    assert.match(missing.errors, /^wick: cannot open .*none: Error: ENOENT/);
    assert.deepEqual([missing.code, missing.printed], [3, []]);
  });

  test('exactly one model is required; errors have exit codes', async () => {
    const usage = ' (usage: wick run MODEL [-p TEXT | -f FILE] [options])\n';
    const codes = /** @type {Record<string, number>} */ ({
      ...{ ARG: 2, PROMPT_TOO_LONG: 2, NOMEM: MEMORY, PAGES: MEMORY, IO: 3, NOT_GGUF: 3 },
      ...{ GRAMMAR_TOO_LARGE: 2, INTERNAL, WASM: INTERNAL, WORKER_CRASHED: INTERNAL, '': INTERNAL },
    });
    const [none, two, ...failed] = await Promise.all([
      wick(['run', '-p', 'x', '--threads', '2']),
      wick(['run', modelPath, 'other', '-p', 'x', '--threads', '2']),
      ...Object.keys(codes).map((name) =>
        wick(['run', `/x/${name}.bad`, '-p', 'x', '--threads', '2']),
      ),
    ]);
    assert.deepEqual([none.code, none.errors], [2, `wick: MODEL is missing${usage}`]);
    assert.deepEqual([two.code, two.errors], [2, `wick: unexpected argument 'other'${usage}`]);
    for (const one of failed) assert.equal(one.errors, 'wick: words\n');
    assert.deepEqual(
      failed.map(({ code }) => code),
      Object.values(codes),
    );
  });
});

describe('serve', () => {
  test('options for the engine and the handler are passed on', async () => {
    const [plain, all, several] = await Promise.all([
      wick(['serve', 'm.gguf']),
      wick([
        ...['serve', '--ctx', '1', '--ctx', '5', '--threads', '3', '--kv', 'f32', '--key', 'a'],
        ...['--queue', '1', '--name', 'n', '--name', 'last', '--cors', 'x', '--cors=y', '-'],
      ]),
      wick(['serve', 'm', '--key', 'a', '--key', 'b', '--metrics-key', 'c', '--kv', 'q8:q4']),
    ]);
    assert.deepEqual(plain.printed, [['engine', { file: 'm.gguf' }], ['handler', {}], ['close']]);
    const said = 'wick: CODE: words\nwick: RangeError: other\nwick: undefined: undefined\n';
    assert.ok(plain.errors.startsWith(`${said}wick: keys are wrong`), plain.errors);
    assert.equal(plain.code, 2);
    assert.deepEqual(all.printed.slice(0, 2), [
      ['engine', { stream: 'input', contextSize: 5, threads: 3, kvType: { k: 'f32', v: 'f32' } }],
      ['handler', { keys: ['a'], metricsKey: 'a', cors: ['x', 'y'], queueLimit: 1, model: 'last' }],
    ]);
    assert.deepEqual(several.printed.slice(0, 2), [
      ['engine', { file: 'm', kvType: { k: 'q8', v: 'q4' } }],
      ['handler', { keys: ['a', 'b'], metricsKey: 'c' }],
    ]);
  });

  test('invalid options are rejected before anything is loaded', async () => {
    const range = 'must be a whole number from';
    const most = 2 ** 31;
    /** @type {[string[], string][]} */
    const wrong = [
      [[], 'MODEL is missing'],
      [['m', 'n'], "unexpected argument 'n'"],
      [['m', '--keys', 'a'], 'unknown option --keys'],
      [['m', '--key'], '--key needs a value'],
      [['m', '--ctx', '0'], `--ctx ${range} 1 to ${most}, not '0'`],
      [['m', '--threads', '0'], `--threads ${range} 1 to ${most}, not '0'`],
      [['m', '--queue', '0'], `--queue ${range} 1 to ${most}, not '0'`],
      [['m', '--queue', '1.5'], `--queue ${range} 1 to ${most}, not '1.5'`],
      [['m', '--ctx', `${most + 1}`], `--ctx ${range} 1 to ${most}, not '${most + 1}'`],
      [['m', '--port', '65536'], `--port ${range} 0 to 65535, not '65536'`],
    ];
    const answers = await Promise.all(wrong.map(([args]) => wick(['serve', ...args])));
    for (const [i, { code, printed, errors }] of answers.entries()) {
      assert.ok(errors.startsWith(`wick: ${wrong[i][1]}`), errors);
      assert.deepEqual([code, printed], [2, []]);
    }
  });
});
