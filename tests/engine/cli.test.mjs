// Tests the `wick` command's contract: commands, options, streams, exit codes.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { lab, native, temporaryFolder, wick } from '../support/cli.mjs';
import { built, locate, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';
import { weightsFile } from '../support/weights_file.mjs';

const shared = locate('shared');
const vectors = join(shared.path, 'vectors');
const stories = join(vectors, 'stories260K/stories260K-f32.gguf');
const temporary = temporaryFolder();
const program = built('native/wick');
// a device that accepts no data, under a name that may be removed
const full = join(temporary, 'full');
symlinkSync('/dev/full', full);

/** @param {string[]} args @param {Parameters<typeof wick>[2]} [options] */
const cli = (args, options) => wick(native, args, options);

/**
 * @param {string[]} args @param {Parameters<typeof wick>[2]} [options]
 * @returns {Promise<string>} its output; fails if the command fails
 */
async function text(args, options) {
  const { code, stdout, stderr } = await cli(args, options);
  assert.equal(code, 0, stderr);
  return stdout.toString();
}

/**
 * Checks that the command exits with `code`, prints nothing, and gives the reason in one line.
 * @param {string[]} args @param {number} code @param {RegExp} says
 * @param {Parameters<typeof wick>[2]} [options]
 */
async function assertRefused(args, code, says, options) {
  const result = await cli(args, options);
  assert.equal(result.code, code, result.stderr);
  assert.equal(result.stdout.length, 0, 'the command printed output');
  assert.match(result.stderr, /^wick: [^\n]*\n$/);
  assert.match(result.stderr, says);
}

describe('commands and options', () => {
  test('without a command wick lists its commands and exits with 2', async () => {
    const { code, stdout, stderr } = await cli([]);
    assert.equal(code, 2);
    assert.equal(stdout.length, 0);
    assert.match(stderr, /usage: wick COMMAND/);
  });

  test('help goes to standard output', async () => {
    assert.match(await text(['help']), /usage: wick COMMAND/);
    for (const command of [
      ...['run', 'logits', 'tokenize', 'detokenize', 'inspect', 'bench', 'perplexity'],
      ...['quantize', 'synth', 'template', 'chat'],
    ])
      assert.match(await text([command, '--help']), new RegExp(`^usage: wick ${command} `));
    assert.equal(await text(['help', 'run']), await text(['run', '--help']));
  });

  test('wick-lab has separate commands and uses its own name; wick bench has none of them', async () => {
    const of = async (/** @type {string[]} */ ...args) => await wick(lab, args);
    const help = (await of('help')).stdout.toString();
    assert.match(help, /usage: wick-lab COMMAND/);
    const commands = [...help.matchAll(/^ {2}(\w+) {2,}/gm)].map(([, name]) => name);
    assert.deepEqual(commands, ['serve', 'convoy', 'saturation', 'media', 'mmproj', 'synth']);
    for (const name of commands) {
      const { code, stdout } = await of(name, '--help');
      assert.equal(code, 0);
      assert.ok(stdout.toString().startsWith(`usage: wick-lab ${name} `), name);
    }
    assert.match((await of('run', 'x')).stderr, /^wick-lab: unknown command 'run'/);
    assert.match((await of('--version')).stdout.toString(), /^wick-lab \d/);
    for (const option of ['--serve', '--convoy', '--saturation'])
      assert.match((await cli(['bench', 'x', option])).stderr, /^wick: unknown option '--/);
  });

  test('wick has the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    assert.equal(await text(['--version']), `wick ${version}\n`);
  });

  /** @type {[string, string[], RegExp][]} */
  const mistakes = [
    ['an unknown command', ['sing'], /unknown command 'sing' \('wick help' lists them\)/],
    ['a mistyped command', ['ispnect'], /unknown command 'ispnect'; did you mean 'inspect'\?/],
    [
      'a short command with letters swapped',
      ['caht'],
      /unknown command 'caht'; did you mean 'chat'\?/,
    ],
    ['detokenize without ids', ['detokenize', 'x.gguf'], /--tokens is missing \(usage: wick det/],
    ['help for an unknown command', ['help', 'sing'], /unknown command 'sing'/],
    ['rerank without documents', ['rerank', 'x.gguf', '--query', 'a'], /--document is missing/],
    [
      'an unknown option',
      ['run', 'x.gguf', '--color'],
      /unknown option '--color' \(usage: wick run/,
    ],
    ['a longer option', ['run', 'x', '--temperature', '1'], /did you mean '--temp'\?/],
    ['a shorter option', ['run', 'x', '--freq', '1'], /did you mean '--frequency-penalty'\?/],
    [
      'two letters swapped',
      ['run', 'x', '--tmep=1'],
      /unknown option '--tmep'; did you mean '--temp'/,
    ],
    ['an underscore', ['run', 'x', '--top_k', '1'], /did you mean '--top-k'\?/],
    ['another letter', ['run', 'x', '-c', '1'], /unknown option '-c' \(usage/],
    ['a missing output file', ['embed-component', 'x'], /embed-component needs -o FILE$/m],
    ['a missing model', ['run'], /MODEL is missing \(usage: wick run MODEL/],
    [
      'a missing output',
      ['synth', 'tiny', 'q4_0'],
      /OUT is missing \(usage: wick synth SHAPE TYPE OUT/,
    ],
    ['too many models', ['run', 'a', 'b'], /unexpected argument 'b' \(usage: wick run/],
    ['a missing value', ['run', 'x', '-n'], /-n needs a value: -n N/],
    [
      'a word instead of a number',
      ['run', 'x', '-n', 'ten'],
      /-n takes a whole number .* not 'ten'/,
    ],
    ['a negative count', ['run', 'x', '-n', '-3'], /-n takes a whole number/],
    ['a number with a suffix', ['run', 'x', '--ctx', '128k'], /--ctx takes a whole number/],
    ['a number that is too large', ['run', 'x', '-n', '99999999999999999999'], /-n takes a whole/],
    ['a number out of its range', ['run', 'x', '--top-p', '1.5'], /from 0 to 1, not '1.5'/],
    ['NaN', ['run', 'x', '--temp', 'nan'], /--temp takes a number/],
    ['an unknown choice', ['run', 'x', '--kv', 'q5'], /one of f16, f32, q8, q4, not 'q5'/],
    ['a flag with a value', ['run', 'x', '--stats=yes'], /--stats takes no value/],
    ['no tokens', ['logits', 'x', '--out', 'y'], /--tokens is missing/],
    [
      'a word among the tokens',
      ['logits', 'x', '--tokens', '1,two'],
      /--tokens takes numbers separated by commas or spaces, not 'two'/,
    ],
    ['a missing token', ['logits', 'x', '--tokens', '1,,2'], /--tokens takes .* not ',2'/],
    ['a trailing comma', ['logits', 'x', '--tokens', '1, 2, '], /--tokens takes .* not ''/],
    ['no output', ['logits', 'x', '--tokens', '1'], /--out is missing/],
    ['two prompts', ['run', 'x', '-p', 'a', '-f', 'b'], /with -p or -f, not both/],
    ['model and prompt from one pipe', ['run', '-'], /already: give the text with -p or -f$/m],
    ['model and questions from one pipe', ['chat', '-'], /already: give the question with -p$/m],
    ...['embed', 'tokenize', 'template', 'perplexity'].map(
      (command) =>
        /** @type {[string, string[], RegExp]} */ ([
          `model and text of ${command} from one pipe`,
          [command, '-'],
          /standard input is the model already: give the text with -p or -f$/m,
        ]),
    ),
    ['an unknown shape', ['synth', 'gpt-5', 'q8_0', 'x'], /unknown shape 'gpt-5'/],
    ['an unknown type', ['synth', 'tiny', 'q9', 'x'], /unknown type 'q9'/],
  ];
  for (const [what, args, says] of mistakes) {
    test(`${what}: exit 2`, () => assertRefused(args, 2, says));
  }

  test('options may be anywhere, long ones may use =, and -- ends them', async () => {
    await assertRefused(['run', '--temp=0.5', '-n', '3', '--', '--odd', '--names'], 2, /'--names'/);
    await assertRefused(['run', '-n', '3', '--temp=0.5', '-p', 'a', '--', '--odd'], 3, /--odd/);
  });
});

test('on a terminal wick says what it waits for and ends its last line', async () => {
  const typed = 'Once\n\x04'; // Ctrl-D
  const model = join(root, 'examples/models/wick-2.6m-q8_0.gguf');
  const terminal = 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)';
  const { code, stdout } = await run(
    'python3',
    ['-c', terminal, program, 'run', model, '-n', '3'],
    {
      input: typed,
    },
  );
  assert.equal(code, 0, stdout.toString());
  assert.match(stdout.toString(), /wick: type the text; Ctrl-D[^\n]*\n.*[^\n]\r\n$/s);
  const piped = await text(['run', model, '-n', '3'], { input: 'Once\n' });
  assert.doesNotMatch(piped, /\n$/);
});

describe('files', () => {
  test('a file that does not exist: exit 3', () =>
    assertRefused(['inspect', join(temporary, 'none.gguf')], 3, /cannot open .*none.gguf/));

  test('a folder: exit 3', () => assertRefused(['inspect', temporary], 3, /wick-cli-/));

  test('a file that is not GGUF: exit 3', () =>
    assertRefused(['run', program, '-p', 'a'], 3, /not a GGUF file.*WICK_E_FORMAT at byte 0/));

  test('an empty pipe: exit 3', () =>
    assertRefused(['inspect', '-'], 3, /standard input: the file is empty \(WICK_E_TRUNCATED/));

  test('a prompt from a file that does not exist: exit 3', () =>
    assertRefused(['run', 'x', '-f', join(temporary, 'none')], 3, /cannot open/));

  test('names in a file cannot send terminal escape sequences', async () => {
    const model = join(temporary, 'steer.gguf');
    await text(['synth', 'tiny', 'q8_0', model]);
    const bytes = readFileSync(model);
    bytes.write('gener\x1bl.', bytes.indexOf('general.name'));
    bytes.write('\x1b', bytes.indexOf('output_norm.weight'));
    writeFileSync(model, bytes);
    for (const args of [
      ['inspect', model],
      ['inspect', '--json', model],
      ['run', model, '-p', 'a'],
    ]) {
      const { stdout, stderr } = await cli(args);
      assert.ok(!`${stdout}${stderr}`.includes('\x1b'));
    }
  });
});

describe('run', { concurrency: 2, skip: shared.skip }, () => {
  const prompt = ['-p', 'Once upon a time'];
  const story = ', there was a little girl named Lily.';

  test('run prints only the continuation', async () => {
    assert.equal(await text(['run', stories, ...prompt, '-n', '11', '--kv', 'f32']), story);
  });

  test('the model is read from a pipe, the prompt from a file or standard input', async () => {
    const file = join(temporary, 'prompt.txt');
    writeFileSync(file, prompt[1]);
    const wanted = await text(['run', stories, ...prompt, '-n', '20']);
    const model = readFileSync(stories);
    assert.equal(await text(['run', '-', ...prompt, '-n', '20'], { input: model }), wanted);
    assert.equal(await text(['run', stories, '-f', file, '-n', '20']), wanted);
    assert.equal(await text(['run', stories, '-n', '20'], { input: prompt[1] }), wanted);
    assert.equal(await text(['run', stories, '-f', '-', '-n', '20'], { input: prompt[1] }), wanted);
  });

  test('a truncated pipe and a truncated file are reported as such', async () => {
    const cut = readFileSync(stories).subarray(0, 500_000);
    const file = join(temporary, 'cut.gguf');
    writeFileSync(file, cut);
    await assertRefused(['run', file, ...prompt], 3, /cut.gguf: .*TRUNCATED/);
    await assertRefused(['run', '-', ...prompt], 3, /standard input: .*TRUNCATED/, { input: cut });
  });

  test('a seed makes sampling repeatable, and another seed changes it', async () => {
    const args = ['run', stories, ...prompt, '-n', '40', '--temp', '1.5', '--seed'];
    const first = await text([...args, '7']);
    assert.equal(await text([...args, '7']), first);
    assert.notEqual(await text([...args, '8']), first);
  });

  test('runs without a seed differ, unless they are greedy', async () => {
    const hot = ['run', stories, ...prompt, '-n', '60', '--temp', '2'];
    assert.notEqual(await text(hot), await text(hot));
    const greedy = ['run', stories, ...prompt, '-n', '60'];
    assert.equal(await text(greedy), await text([...greedy, '--temp', '0', '--seed', '5']));
  });

  test('run ends before a stop string', async () => {
    const args = ['run', stories, ...prompt, '-n', '60', '--stats', '--stop', 'xyz'];
    const { stdout, stderr } = await cli([...args, '--stop', ' girl named']);
    assert.equal(stdout.toString(), ', there was a little');
    assert.equal(JSON.parse(stderr).finish_reason, 'stop');
  });

  test('--stats prints one JSON line to standard error', async () => {
    const { stderr } = await cli(['run', stories, ...prompt, '-n', '50', '--stats']);
    assert.match(stderr, /^\{[^\n]*\}\n$/);
    const stats = JSON.parse(stderr);
    assert.equal(stats.completion_tokens, 50);
    assert.equal(stats.prompt_tokens, 5);
    assert.equal(stats.finish_reason, 'length');
    assert.equal(stats.decode_allocations, 0, 'decoding must not allocate');
    assert.equal(stats.threads, 1);
    const { info } = JSON.parse(await text(['inspect', stories, '--json']));
    assert.equal(stats.kernels, info.kernels);
    for (const name of ['load_ms', 'ttft_ms', 'prefill_tok_s', 'decode_tok_s'])
      assert.ok(stats[name] > 0, name);
    const size = readFileSync(stories).length;
    assert.ok(stats.memory_bytes_peak > 0.9 * size && stats.memory_bytes_peak < 3 * size);
    assert.ok(stats.memory_bytes_peak <= 1.1 * stats.memory_bytes_planned);
  });

  test('the first token counts as prefill, the others as decode', async () => {
    for (const [count, isDecoded] of /** @type {[string, boolean][]} */ ([
      ['1', false],
      ['2', true],
    ])) {
      const { stderr } = await cli(['run', stories, ...prompt, '-n', count, '--stats']);
      const { completion_tokens, decode_tok_s } = JSON.parse(stderr);
      assert.equal(String(completion_tokens), count);
      assert.equal(decode_tok_s > 0, isDecoded, stderr);
    }
  });

  test('--logprobs prints a JSON line for each token', async () => {
    const args = ['run', stories, ...prompt, '-n', '12', '--logprobs', '3'];
    const { stdout, stderr } = await cli(args);
    const lines = stderr
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.equal(lines.length, 12);
    assert.equal(lines.map((line) => line.text).join(''), stdout.toString());
    const tokens = lines.map((line) => line.token).join(',');
    const written = await text(['detokenize', stories, '--tokens', tokens]);
    assert.equal(written.trim(), stdout.toString().trim());
    for (const { token, logprob, top } of lines) {
      assert.equal(top.length, 3);
      assert.equal(new Set(top.map((/** @type {any} */ one) => one.token)).size, 3);
      assert.equal(top[0].token, token, 'greedy sampling chooses the most likely token');
      assert.ok(logprob <= 0 && logprob === top[0].logprob && top[1].logprob <= logprob);
    }
  });

  test('run stays within the context and rejects longer prompts', async () => {
    const { stderr } = await cli(['run', stories, ...prompt, '--ctx', '64', '--stats']);
    const stats = JSON.parse(stderr);
    assert.equal(stats.finish_reason, 'length');
    assert.equal(stats.prompt_tokens + stats.completion_tokens, 65); // the last token is not evaluated
    const long = 'Lily ran. '.repeat(40);
    await assertRefused(['run', stories, '-p', long, '--ctx', '64'], 2, /\d{3}.*\b64\b/);
    await assertRefused(['run', stories, ...prompt, '--ctx', '513'], 2, /513.*512/);
  });

  test('every KV type works, and an unknown one is rejected', async () => {
    for (const type of ['f32', 'f16', 'q8', 'q4']) {
      const found = await text(['run', stories, ...prompt, '-n', '8', '--kv', type]);
      assert.ok(found.length > 8, type);
    }
    await assertRefused(['run', stories, ...prompt, '--kv', 'q2'], 2, /--kv/);
  });

  test('--kv K:V sets separate types for keys and values', async () => {
    const infoOf = async (/** @type {string} */ kv) =>
      JSON.parse(await text(['inspect', stories, '--json', '--kv', kv])).info;
    const { k_type, v_type, plan } = await infoOf('q8:f16');
    assert.deepEqual([k_type, v_type], ['q8', 'f16']);
    const [turned, small, wide] = [await infoOf('f16:q8'), await infoOf('q8'), await infoOf('f16')];
    assert.deepEqual([turned.k_type, turned.v_type], ['f16', 'q8']);
    assert.deepEqual([small.k_type, small.v_type], ['q8', 'q8']);
    assert.notEqual(small.plan.kv_bytes, wide.plan.kv_bytes);
    assert.equal(plan.kv_bytes + turned.plan.kv_bytes, small.plan.kv_bytes + wide.plan.kv_bytes);
    const args = ['run', stories, ...prompt, '-n', '24', '--kv'];
    assert.ok((await text([...args, 'q8:f16'])).length > 24);
    assert.equal(await text([...args, 'f32:f32']), await text([...args, 'f32']));
    for (const [given, said] of [
      ['q8:', ''],
      [':f16', ''],
      ['q8:q5', 'q5'],
      ['q8:f16:q4', 'f16:q4'],
    ]) {
      const refusal = new RegExp(`--kv is one of f16, f32, q8, q4, not '${said}'`);
      await assertRefused([...args, given], 2, refusal);
    }
  });

  test('the number of threads does not change the text', async () => {
    const args = ['run', stories, ...prompt, '-n', '40'];
    const { stdout, stderr } = await cli([...args, '--threads', '2', '--stats']);
    assert.equal(JSON.parse(stderr).threads, 2);
    assert.equal(stdout.toString(), await text(args));
  });

  test('run ends quietly when its output is closed', async () => {
    const child = spawn(program, ['run', stories, ...prompt, '--ctx', '512']);
    let complaint = '';
    child.stderr.on('data', (bytes) => (complaint += bytes));
    await once(child.stdout, 'data');
    child.stdout.destroy();
    const [code, signal] = await once(child, 'close');
    assert.ok(code === 0 || signal === 'SIGPIPE', `${code} ${signal}`);
    assert.equal(complaint, '');
  });

  test('output that cannot be written is reported: exit 3', async () => {
    const args = ['-c', `"${program}" run "${stories}" -p Once -n 5 >/dev/full`];
    const { code, stderr } = await run('/bin/sh', args);
    assert.equal(code, 3);
    assert.match(stderr, /cannot write to standard output: /);
  });
});

describe('logits', { skip: shared.skip }, () => {
  test('a file and standard output get the same [tokens, vocab] floats', async () => {
    const out = join(temporary, 'logits.f32');
    await text(['logits', stories, '--tokens', '1,403,407', '--out', out]);
    const { code, stdout } = await cli(['logits', stories, '--tokens', '1 403 407', '--out', '-']);
    assert.equal(code, 0);
    assert.equal(stdout.length, 3 * 512 * 4);
    assert.deepEqual(readFileSync(out), stdout);
  });

  test('invalid ids, missing ids and files that cannot be written are rejected', async () => {
    const out = join(temporary, 'bad.f32');
    const args = ['logits', stories, '--out', out, '--tokens'];
    await assertRefused([...args, '1,512'], 2, /512/);
    await assertRefused([...args, '1,-1'], 2, /-1/);
    await assertRefused([...args, ''], 2, /empty/);
    const nowhere = join(temporary, 'none', 'x.f32');
    await assertRefused(['logits', stories, '--tokens', '1', '--out', nowhere], 3, /cannot create/);
    await assertRefused(['logits', stories, '--tokens', '1', '--out', full], 3, /write/);
    assert.ok(!existsSync(out), 'a file was created');
  });

  test('a refusal leaves the file unchanged', async () => {
    const out = join(temporary, 'kept.f32');
    writeFileSync(out, 'earlier logits');
    for (const tokens of ['1,512', '1,-1', '', '1 '.repeat(513)])
      await assertRefused(['logits', stories, '--out', out, '--tokens', tokens], 2, /./);
    assert.equal(readFileSync(out, 'utf8'), 'earlier logits');
  });
});

describe('perplexity', { skip: shared.skip }, () => {
  const input = 'Once upon a time there was a girl.';

  test('a refusal leaves the files unchanged', async () => {
    const saved = join(temporary, 'saved.f32');
    writeFileSync(saved, 'earlier logits');
    const args = ['perplexity', stories, '--save', saved];
    await assertRefused(args, 2, /at least 2 are needed/, { input: '' });
    await assertRefused([...args, '--kl', saved], 2, /--kl and --save name the same file/, {
      input,
    });
    await assertRefused([...args, '--kl', join(temporary, 'none')], 3, /cannot open/, { input });
    assert.equal(readFileSync(saved, 'utf8'), 'earlier logits');
  });

  test('a reference that is too short or not finite is reported', async () => {
    const reference = join(temporary, 'reference.f32');
    await text(['perplexity', stories, '--save', reference], { input });
    const logits = readFileSync(reference);
    const wild = Buffer.from(logits);
    wild.writeFloatLE(Number.NaN, 4 * 700);
    writeFileSync(reference, wild);
    const args = ['perplexity', stories, '--kl', reference];
    await assertRefused(args, 3, /perplexity: .*(finite|NaN)/, { input });
    writeFileSync(reference, logits.subarray(0, logits.length - 4));
    await assertRefused(args, 3, /the reference has fewer positions than the text/, { input });
    writeFileSync(reference, logits);
    const { kl_nats_mean } = JSON.parse(await text(args, { input }));
    assert.ok(Math.abs(kl_nats_mean) < 1e-12);
  });

  test('progress is reported every ten seconds', async () => {
    const env = { LD_PRELOAD: built('test/host_shim.so'), SHIM_CLOCK_MS: '11000' };
    const { stdout, stderr } = await run(program, ['perplexity', stories], { input, env });
    const { tokens } = JSON.parse(stdout.toString());
    assert.ok(
      stderr.startsWith(`wick: 1 of ${tokens} tokens\nwick: 2 of ${tokens} tokens\n`),
      stderr,
    );
  });

  /** @param {string[]} options @param {string} source @returns {Promise<{tokens: number, nll_nats: number}>} */
  const measure = async (options, source) =>
    JSON.parse(await text(['perplexity', stories, ...options], { input: source }));
  const idsOf = async (/** @type {string} */ source) =>
    (await text(['tokenize', stories], { input: source })).trim().split(' ').map(Number);
  /**
   * Computes the negative log-likelihood in nats of each token in a window except the first, from `wick logits`.
   * @param {number[]} ids
   */
  async function natsOf(ids) {
    const out = join(temporary, 'window.f32');
    await text(['logits', stories, '--out', out, '--tokens', ids.join(',')]);
    const bytes = readFileSync(out);
    const rows = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    const vocab = rows.length / ids.length;
    return ids.slice(1).map((id, at) => {
      const row = Array.from(rows.subarray(at * vocab, (at + 1) * vocab));
      const most = Math.max(...row);
      const sum = row.reduce((all, logit) => all + Math.exp(logit - most), 0);
      return most + Math.log(sum) - row[id];
    });
  }
  const meanOf = (/** @type {number[]} */ list) => list.reduce((a, b) => a + b, 0) / list.length;

  test('every window begins with BOS, and each token of the text is predicted once', async () => {
    const long = input.repeat(6);
    const ids = await idsOf(long);
    const windows = [ids.slice(0, 16)];
    for (let at = 16; at < ids.length; at += 15) windows.push([ids[0], ...ids.slice(at, at + 15)]);
    const nats = [];
    for (const window of windows) nats.push(...(await natsOf(window)));
    assert.equal(nats.length, ids.length - 1);
    const { tokens, nll_nats } = await measure(['--ctx', '16', '--kv', 'f32'], long);
    assert.equal(tokens, ids.length + windows.length - 1);
    assert.ok(Math.abs(nll_nats - meanOf(nats)) < 1e-4, `${nll_nats} ${meanOf(nats)}`);
  });

  test('--llama counts the second half of whole windows, whose first token becomes BOS', async () => {
    const long = input.repeat(6);
    const ids = await idsOf(long);
    const counted = [];
    for (let at = 0; at + 16 <= ids.length; at += 16) {
      const window = [ids[0], ...ids.slice(at + 1, at + 16)];
      counted.push(...(await natsOf(window)).slice(8));
    }
    assert.equal(counted.length, 7 * Math.floor(ids.length / 16));
    const { nll_nats } = await measure(['--ctx', '16', '--kv', 'f32', '--llama'], long);
    assert.ok(Math.abs(nll_nats - meanOf(counted)) < 1e-4, `${nll_nats} ${meanOf(counted)}`);
    const args = ['perplexity', stories, '--ctx', '16', '--llama'];
    await assertRefused(args, 2, /at least 16 are needed/, { input: 'Once' });
  });

  test('a file that cannot be written is reported after the first window', async () => {
    const long = input.repeat(20);
    const args = ['perplexity', stories, '--ctx', '16', '--save'];
    const nowhere = join(temporary, 'none', 'x.f32');
    await assertRefused([...args, nowhere], 3, /cannot create .*x.f32/, { input: long });
    await assertRefused([...args, full], 3, /cannot write .*full: /, { input: long });
  });
});

describe('tokenize and detokenize', { skip: shared.skip }, () => {
  const vocabulary = join(vectors, 'vocab/ggml-vocab-qwen2.gguf');
  const spm = join(vectors, 'vocab/ggml-vocab-llama-spm.gguf');
  const hello = 'Hello, wörld! 你好 🙂\n';

  test('a vocabulary without tensors suffices to tokenize and detokenize', async () => {
    for (const model of [vocabulary, spm]) {
      const ids = await text(['tokenize', model, '-p', hello]);
      assert.match(ids, /^\d+( \d+)*\n$/);
      assert.equal(await text(['detokenize', model, '--tokens', ids]), hello);
    }
  });

  test('--no-bos adds no token, and --no-special treats special tokens as text', async () => {
    const ids = async (/** @type {string[]} */ ...args) =>
      (await text(['tokenize', ...args])).trim().split(' ').map(Number);
    const bare = await ids(spm, '--no-bos', '-p', hello);
    assert.deepEqual(await ids(spm, '-p', hello), [1, ...bare]);
    const special = ['-p', '<|im_end|>'];
    const [id, ...more] = await ids(vocabulary, ...special);
    assert.equal(more.length, 0);
    assert.ok((await ids(vocabulary, '--no-special', ...special)).length > 1);
    const args = ['detokenize', vocabulary, '--tokens', String(id)];
    assert.equal(await text(args), '');
    assert.equal(await text([...args, '--special']), '<|im_end|>');
  });

  test('empty text has only the added tokens', async () => {
    assert.equal(await text(['tokenize', vocabulary, '-p', '']), '\n');
    assert.equal(await text(['tokenize', spm, '-p', '']), '1\n');
    assert.equal(await text(['detokenize', vocabulary, '--tokens', '']), '');
  });

  test('ids are separated by commas, spaces or both', async () => {
    const args = ['detokenize', vocabulary, '--tokens'];
    const ids = (await text(['tokenize', vocabulary, '-p', 'one two three'])).trim().split(' ');
    assert.equal(ids.length, 3);
    for (const between of [',', ' ', ' ,', ', ', ' , ', '\n', '\t,\r\n']) {
      assert.equal(await text([...args, ` ${ids.join(between)} `]), 'one two three');
    }
    for (const bad of ['1,,2', ',1', '1,', '1 , ,2', '1;2', '1-2', '+1', '0x1']) {
      await assertRefused([...args, bad], 2, /takes numbers separated by commas or spaces/);
    }
  });

  test('ids outside the vocabulary exit with 2', async () => {
    const args = ['detokenize', vocabulary, '--tokens'];
    await assertRefused([...args, '2147483647'], 2, /token 2147483647 is not in the vocabulary/);
    await assertRefused([...args, '-2147483648'], 2, /token -2147483648/);
    for (const more of ['2147483648', '-2147483649', '18446744073709551617']) {
      await assertRefused([...args, more], 2, /takes numbers separated by commas or spaces/);
    }
    await assertRefused([...args, '5,151936'], 2, /token 151936 is not in the vocabulary/);
    await assertRefused([...args, '-5'], 2, /token -5/);
  });

  test('an unsupported or missing tokenizer: exit 3 and its name', async () => {
    const corrupt = join(vectors, 'reference/corrupt');
    const unknown = ['tokenize', join(corrupt, 'tok-unknown-model.gguf'), '-p', 'a'];
    await assertRefused(unknown, 3, /tokenizer model 'zzz' is not supported .*UNSUPPORTED/);
    const missing = ['tokenize', join(corrupt, 'tok-missing-model.gguf'), '-p', 'a'];
    await assertRefused(missing, 3, /tokenizer.ggml.model is missing/);
  });
});

describe('inspect', { concurrency: 2, skip: shared.skip }, () => {
  const reference = join(vectors, 'reference');

  test('the tables show metadata, tensors, types and the plan', async () => {
    const shown = await text(['inspect', stories]);
    assert.match(shown, /GGUF version 3/);
    assert.match(shown, /llama\.context_length +u32 +512\n/);
    assert.match(shown, /tokenizer\.ggml\.tokens +string\[512\] +\["<unk>","<s>"/);
    assert.match(shown, /blk\.0\.attn_q\.weight +F32 +64 x 64 +\d+ +16384\n/);
    assert.match(shown, /F32 +47 tensors +1\.04 MB/);
    assert.match(shown, /memory plan for a context of 512 tokens/);
  });

  test('--json prints one object, and its plan depends on --ctx and --kv', async () => {
    const model = join(reference, 'models/llama-256-Q4_0.gguf');
    const { gguf, metadata, tensors, info } = JSON.parse(await text(['inspect', model, '--json']));
    assert.equal(gguf.version, 3);
    const heads = metadata.find((/** @type {any} */ m) => m.key === 'llama.attention.head_count');
    assert.deepEqual(heads, { key: heads.key, type: 'u32', value: heads.value });
    assert.equal(tensors.length, 21);
    assert.deepEqual(Object.keys(info.types).sort(), ['F32', 'Q4_0', 'Q6_K']);
    assert.equal(info.shape.layers, 2);
    const wide = ['inspect', model, '--json', '--kv', 'f32', '--ctx'];
    const [half, whole] = await Promise.all(
      ['128', '256'].map(async (n) => JSON.parse(await text([...wide, n])).info.plan),
    );
    assert.equal(whole.kv_bytes, 2 * half.kv_bytes);
    assert.equal(whole.context_tokens, 256);
  });

  test('a split model counts as one model', async () => {
    const parts = join(reference, 'split/llama-small-F16-00001-of-00003.gguf');
    const whole = join(reference, 'models/llama-small-F16.gguf');
    const split = JSON.parse(await text(['inspect', parts, '--json']));
    const { tensors, info } = JSON.parse(await text(['inspect', whole, '--json']));
    assert.equal(split.info.load.files, 3);
    assert.deepEqual(split.info.types, info.types);
    assert.equal(split.tensors.length, tensors.length);
    const second = parts.replace('00001-of', '00002-of');
    await assertRefused(['inspect', second], 3, /file 2 of 3/);
    await assertRefused(['run', '-', '-p', 'a'], 3, /split/, { input: readFileSync(parts) });
    const alone = join(temporary, 'alone.gguf');
    copyFileSync(parts, alone);
    await assertRefused(['run', alone, '-p', 'a'], 3, /pass the first one, named like/);
    for (const tail of [
      '-0000:-of-00003',
      '-00001xof-00003',
      '-00001-of-0000:',
      '-00001-of-0000x',
    ]) {
      const other = join(temporary, `alone${tail}.gguf`);
      symlinkSync(parts, other);
      await assertRefused(['run', other, '-p', 'a'], 3, /pass the first one, named like/);
    }
  });

  test('inspect says why a model does not run', async () => {
    const unknown = join(temporary, 'unknown.gguf');
    const weights = { type: /** @type {const} */ ('F32'), dims: [1], values: new Float32Array(1) };
    const metadata = { 'general.architecture': 'unheard-of' };
    writeFileSync(unknown, weightsFile(metadata, [{ name: 'any', ...weights }]));
    assert.match(await text(['inspect', unknown]), /does not run here: .*unheard-of/);
    const { info } = JSON.parse(await text(['inspect', unknown, '--json']));
    assert.equal(info.plan, null);
    assert.equal(info.error.status, 'WICK_E_UNSUPPORTED');
  });

  test('every unusual file is shown as valid JSON or rejected', async () => {
    const files = readdirSync(join(reference, 'corrupt'));
    assert.ok(files.length > 100);
    let shown = 0;
    for (const file of files) {
      const path = join(reference, 'corrupt', file);
      const { code, signal, stdout, stderr } = await cli(['inspect', '--json', path]);
      assert.ok(code === 0 || code === 3, `${file}: ${code} ${signal} ${stderr}`);
      if (code === 3) continue;
      assert.ok(JSON.parse(stdout.toString()).metadata.length > 0, file);
      shown++;
    }
    assert.ok(shown >= 8, `${shown} files were shown`);
  });
});

describe('synth', { concurrency: 2 }, () => {
  /** @param {string[]} args */
  async function digest(args) {
    const { code, stdout, stderr } = await cli(['synth', ...args, '-']);
    assert.equal(code, 0, stderr);
    return createHash('sha256').update(stdout).digest('hex');
  }

  test('equal seeds give equal files', async () => {
    const first = await digest(['tiny', 'q4_k_m']);
    assert.equal(await digest(['tiny', 'q4_k_m', '--seed', '1']), first);
    assert.notEqual(await digest(['tiny', 'q4_k_m', '--seed', '2']), first);
  });

  for (const type of ['f32', 'f16', 'bf16', 'q8_0', 'q4_0', 'q6_k']) {
    test(`a model of ${type} runs`, async () => {
      const model = join(temporary, `tiny-${type}.gguf`);
      await text(['synth', 'tiny', type, model]);
      const args = ['run', model, '-p', 'some words here', '-n', '16', '--stats'];
      const { code, stdout, stderr } = await cli(args);
      assert.equal(code, 0, stderr);
      const { completion_tokens } = JSON.parse(stderr);
      assert.ok(completion_tokens > 0 && stdout.length > 0);
    });
  }

  test('the vocabulary encodes and decodes any text', async () => {
    const model = join(temporary, 'vocabulary.gguf');
    await text(['synth', 'tiny', 'q8_0', model]);
    const any = 'the Quick brown\tfox — 123, ñandú 漢字 🦊\n';
    const ids = await text(['tokenize', model, '-p', any]);
    assert.equal(await text(['detokenize', model, '--tokens', ids]), any);
    assert.ok(ids.split(' ').length < Buffer.byteLength(any), 'merges are used');
  });

  test('wick-2.6m has the shape of the built-in model', async () => {
    const model = join(temporary, 'wick-2.6m.gguf');
    await text(['synth', 'wick-2.6m', 'q8_0', model]);
    const own = join(root, 'examples/models/wick-2.6m-q8_0.gguf');
    const [made, wanted] = await Promise.all(
      [model, own].map(async (path) => JSON.parse(await text(['inspect', path, '--json']))),
    );
    const shapes = (/** @type {any} */ { tensors }) =>
      tensors.map((/** @type {any} */ { name, type, shape }) => `${name} ${type} ${shape}`).sort();
    assert.deepEqual(shapes(made), shapes(wanted));
    for (const part of ['weights_bytes', 'kv_bytes', 'scratch_bytes', 'context_tokens']) {
      assert.ok(wanted.info.plan[part] > 0);
      assert.equal(made.info.plan[part], wanted.info.plan[part]);
    }
  });

  // Tensors by type. Qwen2.5-0.5B has the types of the published files, the other shapes follow the rules in
  // llama-quant.cpp (SmolLM2-135M's rows of 576 cannot be K-quants).
  const counts = [
    ['qwen2.5-0.5b', 'q4_k_m', { F32: 121, Q5_0: 132, Q8_0: 13, Q4_K: 12, Q6_K: 12 }],
    ['qwen2.5-0.5b', 'q4_0', { F32: 121, Q4_0: 168, Q8_0: 1 }],
    ['qwen2.5-0.5b', 'q8_0', { F32: 121, Q8_0: 169 }],
    ['smollm2-135m', 'q4_k_m', { F32: 61, Q5_0: 166, Q8_0: 15, Q4_K: 16, Q6_K: 14 }],
    ['smollm2-135m', 'q4_0', { F32: 61, Q4_0: 210, Q8_0: 1 }],
    ['llama3.2-1b', 'q4_k_m', { F32: 34, Q4_K: 96, Q6_K: 17 }],
    ['llama3.2-1b', 'q4_0', { F32: 34, Q4_0: 112, Q6_K: 1 }],
    ['llama3.2-1b', 'q8_0', { F32: 34, Q8_0: 113 }],
  ];
  /** @type {Record<string, number[]>} layers where attn_v and ffn_down get more bits in Q4_K_M */
  const moreBits = {
    'qwen2.5-0.5b': [0, 1, 2, 5, 8, 11, 14, 17, 20, 21, 22, 23],
    'smollm2-135m': [0, 1, 2, 5, 8, 11, 14, 17, 20, 23, 26, 27, 28, 29],
    'llama3.2-1b': [0, 1, 4, 7, 10, 13, 14, 15],
  };
  for (const [shape, type, wanted] of counts) {
    test(`types match llama-quantize: ${shape}, ${type}`, async () => {
      const pipe = `"${program}" synth ${shape} ${type} - | "${program}" inspect - --json`;
      const { code, stdout, stderr } = await run('/bin/sh', ['-c', pipe]);
      assert.equal(code, 0, stderr);
      const { info, tensors } = JSON.parse(stdout.toString());
      const found = Object.entries(info.types).map(([name, { tensors }]) => [name, tensors]);
      assert.deepEqual(Object.fromEntries(found), wanted);
      if (type !== 'q4_k_m') return;
      for (const part of ['attn_v', 'ffn_down']) {
        const pattern = new RegExp(`^blk\\.(\\d+)\\.${part}\\.weight$`);
        const layers = tensors.flatMap((/** @type {any} */ t) =>
          ['Q6_K', 'Q8_0'].includes(t.type)
            ? (t.name.match(pattern)?.slice(1).map(Number) ?? [])
            : [],
        );
        assert.deepEqual(layers, moreBits[/** @type {string} */ (shape)], part);
      }
    });
  }
});

describe('bench', () => {
  const model = join(temporary, 'bench.gguf');
  const short = ['-p', '40', '-n', '20', '-r', '5'];
  before(() => text(['synth', 'tiny', 'q8_0', model]));

  test('--format json reports a run for each number of threads', async () => {
    const args = ['bench', model, ...short, '--threads', '1,2', '--format', 'json'];
    const start = performance.now();
    const { prompt_tokens, decode_tokens, runs } = JSON.parse(await text(args));
    let leftMs = performance.now() - start; // an upper bound of the measured time
    assert.deepEqual([prompt_tokens, decode_tokens], [40, 20]);
    assert.deepEqual(
      runs.map((/** @type {any} */ one) => one.threads),
      [1, 2],
    );
    for (const { prefill_tok_s, decode_tok_s, ttft_ms, itl_ms, decode_allocations } of runs) {
      for (const figures of [prefill_tok_s, decode_tok_s, ttft_ms]) {
        const sorted = figures.values.toSorted(
          (/** @type {number} */ a, /** @type {number} */ b) => a - b,
        );
        assert.equal(sorted.length, 5);
        assert.equal(figures.median, sorted[2]);
        assert.ok(sorted[0] > 0 && figures.mean_low >= sorted[0]);
        assert.ok(figures.mean_low <= figures.mean && figures.mean <= figures.mean_high);
      }
      for (let i = 0; i < 5; i++) {
        assert.ok(Math.abs(40_000 / ttft_ms.values[i] - prefill_tok_s.values[i]) < 1);
        leftMs -= ttft_ms.values[i] + 20_000 / decode_tok_s.values[i];
      }
      assert.ok(leftMs > 0);
      assert.ok(itl_ms.p50 > 0 && itl_ms.p50 <= itl_ms.p95 && itl_ms.p95 <= itl_ms.p99);
      assert.equal(decode_allocations, 0);
    }
  });

  test('the table has a row for each test', async () => {
    const shown = await text(['bench', model, ...short]);
    assert.match(shown, /bench\.gguf: llama, 1\.\d million parameters/);
    assert.match(shown, /^\| 1 \| \w+ \| prefill 40 \| \d+\.\d\d \|/m);
    assert.match(shown, /^\| 1 \| \w+ \| decode 20 \| \d+\.\d\d \|/m);
    assert.match(shown, /time to the first token \d+\.\d\d ms.*p95.*p99/);
    assert.doesNotMatch(
      await text(['bench', model, '-n', '0', '-p', '5', '-r', '1']),
      /decode|p50/,
    );
  });

  test('invalid measurements are rejected', async () => {
    await assertRefused(['bench', model, '--threads', '1,0'], 2, /from 1 to 64, not 0/);
    await assertRefused(['bench', model, '--threads', '1,,2'], 2, /--threads takes .* not ',2'/);
    await assertRefused(['bench', model, '--threads', '1,'], 2, /--threads takes .* not ''/);
    for (const none of ['', ' '])
      await assertRefused(
        ['bench', model, '--threads', none],
        2,
        /--threads .*64, but there are none/,
      );
    await assertRefused(['bench', '-', '--threads', '1,2'], 2, /only one number of threads/);
    await assertRefused(['bench', model, '-p', '5000'], 2, /5000.*2048/);
  });
});

describe('conversations', () => {
  const builtIn = join(root, 'examples/models/wick-2.6m-q8_0.gguf');
  const conversation = '{"messages": [{"role": "user", "content": "Hi<|im_end|>"}]}';

  test('template prints the prompt, its tokens, or lines of JSON', async () => {
    const prompt = await text(['template', builtIn, '-p', conversation]);
    assert.match(
      prompt,
      /<\|im_start\|>user\nHi<\|im_end\|><\|im_end\|>\n<\|im_start\|>assistant\n$/,
    );
    const plain = (await text(['template', builtIn, '-p', conversation, '--tokens'])).split(' ');
    const parsed = await text(['tokenize', builtIn, '-p', prompt]);
    const asked = await text([
      ...['template', builtIn, '-p', conversation, '--tokens', '--parse-special'],
    ]);
    assert.equal(asked, parsed);
    assert.ok(plain.length > parsed.split(' ').length, 'the typed <|im_end|> is treated as text');
    const lines = await text([
      'template',
      builtIn,
      '--lines',
      '--tokens',
      '-p',
      `${conversation}\n[]\n`,
    ]);
    const [first, second] = lines
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.equal(first.text, prompt);
    assert.deepEqual(first.tokens, plain.map(Number));
    assert.equal(first.spans.at(-2), Buffer.byteLength(prompt));
    assert.equal(second.error, 'WICK_E_FORMAT');
    assert.match(second.message, /a template's variables are not a JSON object/);
  });

  test('template reports errors of a given template', async () => {
    const file = join(temporary, 'wrong.jinja');
    writeFileSync(file, 'a\n{% for %}');
    const args = ['template', builtIn, '-p', conversation, '--template', file];
    await assertRefused(args, 3, /not valid: line 2/);
    writeFileSync(file, '{{ raise_exception("no system") }}');
    await assertRefused(args, 2, /line 1: no system/);
  });

  test('chat answers each line and remembers earlier lines', async () => {
    const args = ['chat', builtIn, '-n', '12', '--system', 'Be kind.'];
    const both = await text(args, { input: 'Tell me a story.\n\nWhy?\n' });
    const [first] = (await text([...args, '-p', 'Tell me a story.'])).split('\n');
    assert.ok(first.length > 5);
    assert.ok(both.startsWith(`${first}`), both);
    assert.ok(both.length > first.length + 5);
    const said = [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Tell me a story.' },
      { role: 'assistant', content: first },
      { role: 'user', content: 'Why?' },
    ];
    const prompt = await text(['template', builtIn, '-p', JSON.stringify({ messages: said })]);
    assert.equal(both, `${first}\n${await text(['run', builtIn, '-n', '12', '-p', prompt])}\n`);
    // empty lines are ignored, and the last line needs no line break
    assert.equal(await text(args, { input: '\n\nTell me a story.\nWhy?' }), both);
    assert.equal(await text(args, { input: '\n' }), '');
    await assertRefused(['chat', stories, '-p', 'Hi'], 3, /no chat template/);
  });
});
