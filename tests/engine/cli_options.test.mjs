// Tests all options of the `wick` command: the error for each invalid value, the limits of each range, and the commands
// that have little more than options.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { lab, native, temporaryFolder, wick } from '../support/cli.mjs';
import { built, locate, root } from '../support/locate.mjs';
import { run as runProgram } from '../support/process.mjs';

const shared = locate('shared');
const temporary = temporaryFolder();
const absent = join(temporary, 'absent.gguf');

/** @param {string[]} args @param {Parameters<typeof wick>[2]} [options] */
const cli = (args, options) => wick(native, args, options);

const many = 'a whole number from 1 to 1000000000';
const model = {
  '--ctx': many,
  '--kv': 'f16, f32, q8, q4',
  '--threads': 'a whole number from 1 to 64',
};
const tables = { '--tables': 'auto, inside, outside' };
const seed = { '--seed': 'a whole number below 2^64' };
const fraction = 'a number from 0 to 1';
const atLeast0 = 'a number of at least 0';
const window = 'a whole number from -1 to 1048576';
const sampling = {
  '-n': many,
  '--reasoning-budget': 'a whole number from 0 to 1000000000',
  '--temp': atLeast0,
  '--top-k': 'a whole number from -1 to 2147483647',
  '--top-p': fraction,
  '--min-p': fraction,
  '--repeat-penalty': 'a number above 0',
  '--frequency-penalty': 'a number from -100 to 100',
  '--presence-penalty': 'a number from -100 to 100',
  '--repeat-last-n': window,
  '--typical': fraction,
  '--top-nsigma': 'a number of at least -1',
  '--xtc-probability': fraction,
  '--xtc-threshold': fraction,
  '--dynatemp-range': atLeast0,
  '--dynatemp-exp': atLeast0,
  '--dry-multiplier': atLeast0,
  '--dry-base': 'a number of at least 1',
  '--dry-allowed-length': 'a whole number from 0 to 1048576',
  '--dry-penalty-last-n': window,
  '--mirostat': 'a whole number from 0 to 2',
  '--mirostat-ent': atLeast0,
  '--mirostat-lr': atLeast0,
  '--adaptive-target': 'a number from -1 to 1',
  '--adaptive-decay': 'a number from 0 to 0.99',
  ...seed,
};
const load = {
  ...model,
  ...seed,
  '--kv-tokens': many,
  '--format': 'md, json',
  '--clock': 'wall, cpu',
};
const tokens = 'numbers separated by commas or spaces';
const anyNumber = 'a whole number from 0 to 4294967295';
const images = { '--max-tiles': anyNumber, '--max-image-tokens': anyNumber };
const classOfRequests = 'a number of requests and their lengths, such as 10x2048/512';
/** The values of each option that does not accept arbitrary text. @type {Record<string, Record<string, string>>} */
const commands = {
  run: {
    ...sampling,
    ...model,
    ...tables,
    ...images,
    '--logprobs': 'a whole number from 1 to 20',
  },
  chat: { ...sampling, ...model, ...tables, ...images },
  logits: {
    '--tokens': tokens,
    ...tables,
    ...images,
    '--ctx': many,
    '--threads': model['--threads'],
  },
  tokenize: {},
  detokenize: { '--tokens': tokens },
  template: {},
  inspect: { '--ctx': many, ...tables, '--kv': model['--kv'] },
  bench: {
    '-p': 'a whole number from 1 to 1000000',
    '-n': 'a whole number from 0 to 1000000',
    '-r': 'a whole number from 1 to 10000',
    '--threads': tokens,
    '--format': 'md, json',
    '--ctx': many,
    '--kv': model['--kv'],
    ...tables,
  },
  'wick-lab serve': {
    ...load,
    '--rate': 'a number from 0 to 100000',
    '--requests': 'a whole number from 0 to 10000',
    '--mix': 'classes with shares, such as chat:0.7,short:0.2,512/128:0.1',
    '--ttft': 'a number from 0 to 1e7',
    '--itl': 'a number from 0 to 1e7',
  },
  'wick-lab convoy': {
    ...load,
    '--long': classOfRequests,
    '--short': classOfRequests,
    '--rate': 'a number from 0 to 100000',
  },
  'wick-lab saturation': { ...load, '--short': classOfRequests },
  perplexity: { ...model, ...tables },
  quantize: { '--threads': model['--threads'] },
  constrain: {},
  synth: { ...seed },
};
/** @type {Record<string, string[]>} the required arguments of other commands */
const positionals = {
  quantize: [absent, join(temporary, 'out.gguf'), 'q8_0'],
  constrain: [],
  synth: ['tiny', 'q8_0', join(temporary, 'synth.gguf')],
};

/** @param {string} command @param {string[]} options */
function run(command, options) {
  const name = command.replace('wick-lab ', '');
  const args = [name, ...(positionals[name] ?? [absent]), ...options];
  return wick(name === command ? native : lab, args);
}

const tiny = join(root, 'examples/models/wick-2.6m-q8_0.gguf');
/** @param {string[]} options of `run` @param {string} says */
async function assertUsage(options, says) {
  const { code, stdout, stderr } = await cli(['run', tiny, '-p', 'Once', '-n', '4', ...options]);
  assert.equal(stderr, `wick: ${says}\n`);
  assert.equal(code, 2);
  assert.equal(stdout.length, 0);
}
/** @param {string[]} options @returns {Promise<string>} the output of `run` */
async function written(options) {
  const { code, stdout, stderr } = await cli(['run', tiny, '-p', 'Once', '-n', '12', ...options]);
  assert.equal(code, 0, stderr);
  return stdout.toString();
}

test('compatible sampler options are accepted, others are rejected', {
  concurrency: 2,
}, async () => {
  const names = ['--samplers', 'top_k'];
  const letters = ['--sampling-seq', 'k'];
  const both = '--samplers and --sampling-seq cannot be used together';
  await assertUsage([...names, ...letters], both);
  await assertUsage([...letters, ...names], both);
  const many = Array.from({ length: 16 }, (_, i) => ['--dry-sequence-breaker', `${i}`]).flat();
  const last = ['--dry-sequence-breaker', 'x'];
  const most = '--dry-sequence-breaker can be given at most 16 times';
  await assertUsage([...many, ...last], most);
  const plain = await written([]);
  assert.equal(await written(many), plain);
  const warm = ['--temp', '2', '--seed', '1'];
  // names and letters select the same samplers in the same order
  const named = await written([...warm, '--samplers', 'temperature;top_k', '--top-k', '2']);
  assert.equal(await written([...warm, '--sampling-seq', 'tk', '--top-k', '2']), named);
  assert.notEqual(await written([...warm, '--sampling-seq', 't', '--top-k', '2']), named);
  const repeats = ['--repeat-penalty', '3', '--frequency-penalty', '2', '--presence-penalty', '2'];
  const penalised = await written(repeats);
  assert.notEqual(penalised, plain);
  assert.equal(await written([...repeats, '--repeat-last-n', '0']), plain);
  assert.equal(await written([...repeats, '--repeat-last-n', '-1']), penalised);
  // if every letter is a breaker, nothing counts as repeated; "none" removes the default breakers
  const dry = ['--dry-multiplier', '50', '--dry-allowed-length', '1', '-n', '60'];
  const without = await written([...dry, '--dry-sequence-breaker', 'none']);
  assert.notEqual(without, await written(['-n', '60']));
  assert.equal(await written([...dry, '--dry-penalty-last-n', '0']), await written(['-n', '60']));
  const breakers = (/** @type {string[]} */ ...texts) =>
    written([...dry, ...texts.flatMap((text) => ['--dry-sequence-breaker', text])]);
  const some = await breakers('e');
  assert.notEqual(some, without);
  assert.equal(await breakers('e', 'a'), await written(['-n', '60']));
  assert.equal(await breakers('e', 'none'), without);
  assert.equal(await breakers('zzz'), without);
});

test('samplers have a name and a letter; unknown ones are rejected', {
  concurrency: 2,
}, async () => {
  /** Each sampler with options that show its effect. @type {[string, string, string[]][]} */
  const samplers = [
    ['penalties', 'e', ['--repeat-penalty', '3']],
    ['dry', 'd', ['--dry-multiplier', '50', '--dry-allowed-length', '0']],
    ['top_n_sigma', 's', ['--top-nsigma', '0.5']],
    ['top_k', 'k', ['--top-k', '1']],
    ['typ_p', 'y', ['--typical', '0.1']],
    ['top_p', 'p', ['--top-p', '0.1']],
    ['min_p', 'm', ['--min-p', '0.9']],
    ['xtc', 'x', ['--xtc-probability', '1', '--xtc-threshold', '0.02']],
    ['temperature', 't', []],
    ['adaptive_p', 'a', ['--adaptive-target', '0.05']],
  ];
  const warm = ['--temp', '3', '--seed', '1', '-n', '30'];
  for (const [name, letter, options] of samplers) {
    const own = [...warm, ...options];
    const named = await written([...own, '--samplers', name]);
    assert.equal(await written([...own, '--sampling-seq', letter]), named, name);
    const other = name === 'temperature' ? 'xtc' : 'temperature';
    assert.notEqual(await written([...own, '--samplers', other]), named, name);
  }
  for (const wrong of ['top_q', 'top', 'top_k_', 'k', '']) {
    const list = ['--samplers', `top_k;${wrong};xtc`];
    await assertUsage(list, `--samplers: unknown sampler '${wrong}'`);
  }
  assert.notEqual(await written([...warm, '--samplers', 'xtc;'.repeat(16)]), '');
  await assertUsage(
    ['--samplers', 'xtc;'.repeat(17)],
    "--samplers: 'xtc' exceeds the maximum number",
  );
});

describe('every option documents its value', { concurrency: 2 }, () => {
  for (const [command, takes] of Object.entries(commands)) {
    test(command, async () => {
      const { stdout } = await run(command, ['--help']);
      // the name of the value is one word, such as N, 1,2,3 or md|json, followed by its meaning
      for (const line of stdout.toString().match(/^ {2}-.*$/gm) ?? []) {
        assert.match(line, /^ {2}-\S+( ([A-Z\d]\S*|\w+\|\S+) +| {2,})\S.{4}/);
      }
      const listed = [...stdout.toString().matchAll(/^ {2}(-\S+) \S+ /gm)].map(([, name]) => name);
      const program = command.startsWith('wick-lab ') ? 'wick-lab' : 'wick';
      const refusing = [];
      for (const name of listed) {
        const { code, stderr } = await run(command, [name, '?']);
        const what = takes[name];
        const says = /^(f16|md|wall|auto)/.test(what) ? 'is one of' : 'takes';
        if (what === undefined) assert.doesNotMatch(stderr, /takes|is one of/, name);
        else assert.equal(stderr, `${program}: ${name} ${says} ${what}, not '?'\n`);
        if (what !== undefined) assert.equal(code, 2, name);
        if (what !== undefined) refusing.push(name);
      }
      assert.deepEqual(refusing.sort(), Object.keys(takes).sort());
    });
  }
});

test('ranges include their limits', async () => {
  const accepted = [
    ...[
      ['-n', '1'],
      ['-n', '1000000000'],
      ['--temp', '0'],
      ['--temp', '1e6'],
      ['--top-p', '1'],
    ],
    ...[
      ['--frequency-penalty', '-100'],
      ['--top-k', '0'],
      ['--seed', '18446744073709551615'],
    ],
    ...[
      ['--seed', '0'],
      ['--threads', '64'],
      ['--kv', 'q4:f32'],
      ['--temp', '1e-3'],
    ],
  ];
  for (const [name, value] of accepted) {
    const { code, stderr } = await run('run', [name, value]);
    assert.equal(code, 3, `${name} ${value}: ${stderr}`); // the file does not exist
  }
  const refused = [
    ...[
      ['-n', '0'],
      ['-n', '1000000001'],
      ['--temp', '-0.001'],
      ['--top-p', '1.001'],
      ['-n', ''],
    ],
    ...[
      ['--frequency-penalty', '-100.5'],
      ['--seed', '18446744073709551616'],
      ['--seed', '-1'],
    ],
    ...[
      ['--threads', '65'],
      ['--threads', '0'],
      ['--kv', 'q4:'],
      ['--kv', ':q4'],
      ['--kv', 'f'],
    ],
    ...[
      ['--temp', '1e-60'],
      ['--temp', ''],
      ['--temp', '1x'],
      ['--seed', '1x'],
      ['--seed', ''],
    ],
    ...[
      ['-n', '+1'],
      ['-n', ' 1'],
      ['--top-p', 'inf'],
      ['--kv', 'q4:f32:f32'],
      ['-n', '1.5'],
    ],
  ];
  for (const [name, value] of refused) {
    const { code, stderr } = await run('run', [name, value]);
    assert.equal(code, 2, `${name} '${value}': ${stderr}`);
  }
});

describe('constrain', () => {
  /** @param {string} name @param {unknown} value */
  const file = (name, value) => {
    const path = join(temporary, name);
    writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value));
    return path;
  };
  const texts = ['12', '1', '', 'a', '{"a": 1}', '{"a":1}', '{ "\\u0061" : 1.0 }', 'yes', '"yes"'];
  const check = file('texts.json', texts);
  /** @param {string[]} args @returns {Promise<string[]>} the inputs that match completely */
  const complete = async (...args) => {
    const { code, stdout, stderr } = await cli(['constrain', ...args, '--check', check]);
    assert.equal(code, 0, stderr);
    const found = JSON.parse(stdout.toString());
    assert.equal(found.length, texts.length);
    assert.ok(stdout.toString().endsWith(']\n'));
    return texts.filter((_, i) => found[i]);
  };
  const schema = file('schema.json', {
    type: 'object',
    properties: { a: { type: 'integer' } },
    additionalProperties: false,
    required: ['a'],
  });
  const gbnf = file('grammar.gbnf', 'root ::= [0-9] "2"? | "a"\n');
  const choices = file('choices.json', ['yes', 'a']);

  test('each kind of grammar', async () => {
    const digits = texts.filter((one) => /[0-9]/.test(one));
    assert.deepEqual(await complete('--regex', '[0-9]+'), digits); // matches anywhere
    assert.deepEqual(await complete('--regex', '[0-9]+', '--one-spelling'), ['12', '1']);
    assert.deepEqual(await complete('--regex', '^[0-9]+$'), ['12', '1']);
    assert.deepEqual(await complete('--regex', '^.?$'), ['1', '', 'a']);
    assert.deepEqual(await complete('--grammar', gbnf), ['12', '1', 'a']);
    assert.deepEqual(await complete('--choices', choices), ['a', 'yes']);
    const any = ['{"a": 1}', '{"a":1}', '{ "\\u0061" : 1.0 }'];
    assert.deepEqual(await complete('--json-schema', schema), any);
    assert.deepEqual(await complete('--json-schema', schema, '--one-spelling'), ['{"a": 1}']);
  });

  test('inputs are checked with a model’s tokens', { skip: shared.skip }, async () => {
    const path = join(shared.path, 'vectors/stories260K/stories260K-f32.gguf');
    const any = ['{"a": 1}', '{"a":1}', '{ "\\u0061" : 1.0 }'];
    assert.deepEqual(await complete('--json-schema', schema, '--model', path), any);
    assert.deepEqual(await complete('--regex', '^ ?[0-9]+$', '--model', path), ['12', '1']);
  });

  test('a grammar without inputs is compiled, or rejected with the position', async () => {
    const fine = await cli(['constrain', '--regex', 'a']);
    assert.deepEqual([fine.code, fine.stdout.length, fine.stderr], [0, 0, '']);
    const wrong = await cli(['constrain', '--regex', '(a', '--check', check]);
    assert.equal(wrong.code, 2);
    assert.match(
      wrong.stderr,
      /^wick: the grammar: pattern '\(a', byte 2: .*WICK_E_ARG at byte 2\)\n$/,
    );
    const unknown = await cli([
      'constrain',
      '--json-schema',
      file('u.json', { uniqueItems: true }),
    ]);
    assert.deepEqual([unknown.code, /uniqueItems/.test(unknown.stderr)], [2, true]);
  });

  test('constrain accepts one grammar and an array of strings', async () => {
    const needed = 'wick: one of --json-schema, --grammar, --regex and --choices is needed\n';
    for (const args of [
      [],
      ['--regex', 'a', '--grammar', gbnf],
      ['--choices', choices, '--json-schema', schema],
    ]) {
      const { code, stderr } = await cli(['constrain', ...args]);
      assert.deepEqual([code, stderr], [2, needed]);
    }
    for (const text of ['{}', '[1]', '["a"', '', '["a"] x', 'null']) {
      const wrong = file('wrong.json', text);
      const { code, stderr } = await cli(['constrain', '--regex', 'a', '--check', wrong]);
      assert.equal(code, 3, `${text}: ${stderr}`);
      assert.ok(stderr.startsWith(`wick: ${wrong}: `), stderr);
    }
    for (const option of ['--grammar', '--json-schema', '--choices']) {
      const { code, stderr } = await cli(['constrain', option, absent]);
      assert.deepEqual([code, stderr.startsWith(`wick: cannot open ${absent}`)], [3, true]);
    }
    const none = await cli(['constrain', '--regex', 'a', '--check', absent]);
    assert.equal(none.code, 3);
    const text = await cli(['constrain', '--regex', 'a', '--model', check]);
    assert.equal(text.code, 3);
  });

  test('constrain accepts an empty array and an array of many strings', async () => {
    const empty = await cli(['constrain', '--regex', 'a', '--check', file('none.json', [])]);
    assert.equal(empty.stdout.toString(), '[]\n');
    const list = Array.from({ length: 2000 }, (_, i) => 'a'.repeat(i % 5));
    const found = await cli([
      'constrain',
      '--regex',
      '^a{2,3}$',
      '--check',
      file('many.json', list),
    ]);
    assert.deepEqual(
      JSON.parse(found.stdout.toString()),
      list.map((one) => one.length === 2 || one.length === 3),
    );
  });
});

test('output may go to standard output, and errors name the step that failed', async () => {
  const made = await cli(['synth', 'tiny', 'q8_0', '-', '--seed', '3']);
  assert.equal(made.code, 0, made.stderr);
  const path = join(temporary, 'three.gguf');
  assert.equal((await cli(['synth', 'tiny', 'q8_0', path, '--seed=3'])).code, 0);
  assert.ok(readFileSync(path).equals(made.stdout));
  const other = await cli(['synth', 'tiny', 'q8_0', '-', '--seed', '4']);
  assert.ok(!other.stdout.equals(made.stdout));
  const folder = await cli(['synth', 'tiny', 'q8_0', join(absent, 'x')]);
  assert.equal(folder.code, 3);
  assert.match(folder.stderr, /^wick: cannot create .*absent.gguf\/x: /);
  // a device that accepts no data
  const command = `${built('native/wick')} synth tiny q8_0 - > /dev/full`;
  const full = await runProgram('/bin/sh', ['-c', command]);
  assert.equal(full.code, 3);
  assert.match(full.stderr.toString(), /^wick: cannot write -: /);
  // a failure ends the command immediately: reading all 5 GB takes much longer than these seconds of CPU time
  const long = `ulimit -t 3; ${built('native/wick')} synth llama3.2-1b f32 - > /dev/full`;
  assert.equal((await runProgram('/bin/sh', ['-c', long])).code, 3);
});

describe('run with a grammar', () => {
  const builtIn = join(root, 'examples/models/wick-2.6m-q8_0.gguf');
  const wild = ['-p', 'Once', '-n', '300', '--temp', '2', '--top-k', '0', '--top-p', '1'];
  /** @param {string[]} args */
  const say = async (...args) => {
    const { code, stdout, stderr } = await cli(['run', builtIn, ...wild, ...args]);
    assert.equal(code, 0, stderr);
    return stdout.toString();
  };

  test('the text matches the grammar, even at temperature 2', async () => {
    const schema = join(temporary, 'record.json');
    const gbnf = join(temporary, 'word.gbnf');
    writeFileSync(gbnf, 'root ::= ("ab" | "é"){2,6} "."\n');
    writeFileSync(
      schema,
      JSON.stringify({
        type: 'object',
        properties: { name: { type: 'string', maxLength: 9 }, size: { enum: [1, 20, null] } },
        required: ['name', 'size'],
      }),
    );
    const seen = new Set();
    for (const seed of ['1', '2', '3']) {
      const text = await say('--regex', '[a-f]{3}-\\d{1,9}(, [xyz]{1,9})?\\.', '--seed', seed);
      assert.match(text, /^[a-f]{3}-\d{1,9}(, [xyz]{1,9})?\.$/);
      assert.match(await say('--grammar', gbnf, '--seed', seed), /^(ab|é){2,6}\.$/);
      const { name, size } = JSON.parse(await say('--json-schema', schema, '--seed', seed));
      assert.ok([...name].length <= 9 && [1, 20, null].includes(size));
      const choice = await say('--choice', 'yes', '--choice', 'a "no"', '--seed', seed);
      assert.ok(['yes', 'a "no"'].includes(choice), choice);
      seen.add(text);
    }
    assert.equal(seen.size, 3);
  });

  test('an invalid grammar is reported with its position and exits with 2', async () => {
    for (const [args, reports] of /** @type {[string[], RegExp][]} */ ([
      [['--regex', '(a'], /^wick: the grammar: .* \(WICK_E_ARG/],
      [['--regex', '(a)\\1'], /^wick: the grammar: .* \(WICK_E_UNSUPPORTED/],
      [['--regex', 'a', '--choice', 'b'], /--regex and --choice cannot be used together/],
    ])) {
      const { code, stdout, stderr } = await cli(['run', builtIn, '-p', 'a', ...args]);
      assert.deepEqual([code, stdout.length], [2, 0], stderr);
      assert.match(stderr, reports);
    }
    const none = await cli(['run', builtIn, '-p', 'a', '--json-schema', absent]);
    assert.equal(none.code, 3, none.stderr);
  });
});

describe('adapters', { skip: shared.skip }, () => {
  const vectors = join(shared.path, 'vectors');
  const adapter = join(vectors, 'reference-more/lora/llama.attn-ffn.gguf');
  /** @param {string[]} given */
  const logits = (...given) =>
    cli([
      ...[
        'logits',
        join(vectors, 'reference/models/llama.gguf'),
        '--tokens',
        '1,5,9',
        '--out',
        '-',
      ],
      ...given.flatMap((file) => ['--lora', file]),
    ]);

  test('a number after the last colon is the scale, anything else is part of the path', async () => {
    const strange = join(temporary, 'a:b.gguf');
    writeFileSync(strange, readFileSync(adapter));
    const [none, usual, one, half, two, nothing, named, scaled] = await Promise.all([
      logits(),
      ...[adapter, `${adapter}:1`, `${adapter}:0.5`, `${adapter}:2`, `${adapter}:0`].map((file) =>
        logits(file),
      ),
      logits(strange),
      logits(`${strange}:0.5`),
    ]);
    for (const { code, stderr } of [none, usual, one, half, two, nothing, named, scaled]) {
      assert.equal(code, 0, stderr);
    }
    assert.deepEqual(one.stdout, usual.stdout);
    assert.deepEqual(named.stdout, usual.stdout);
    assert.deepEqual(scaled.stdout, half.stdout);
    assert.deepEqual(nothing.stdout, none.stdout);
    const different = [none, usual, half, two].map(({ stdout }) => stdout.toString('hex'));
    assert.equal(new Set(different).size, 4);
    const twice = await logits(`${adapter}:0.5`, `${adapter}:0`);
    assert.deepEqual(twice.stdout, half.stdout);
  });

  test('a scale that is not a finite number is reported: exit status 2', async () => {
    for (const scale of ['', 'nan', 'inf', '-inf', '1x', 'half', '1e39', '1e400']) {
      const { code, stdout, stderr } = await logits(`${adapter}:${scale}`);
      assert.deepEqual([code, stdout.length], [2, 0], stderr);
      assert.equal(
        stderr,
        `wick: --lora: the scale '${scale}' after the last ':' is not a finite 32-bit number\n`,
      );
    }
  });

  test('an unreadable adapter is reported with its path and exits with 3', async () => {
    for (const file of [absent, `${absent}:0.5`, `${absent}:half`, `${absent}:`]) {
      const { code, stdout, stderr } = await logits(file);
      const path = file.replace(':0.5', '');
      assert.deepEqual([code, stdout.length], [3, 0], stderr);
      assert.equal(stderr, `wick: cannot open ${path}: No such file or directory\n`);
    }
    const other = await logits(join(vectors, 'reference-more/lora/qwen2.qv.gguf'));
    assert.deepEqual([other.code, other.stdout.length], [3, 0], other.stderr);
    const long = await logits(`/${'a'.repeat(5000)}`);
    assert.deepEqual(
      [long.code, long.stderr],
      [3, "wick: the adapter's path is longer than 4096 bytes\n"],
    );
  });
});
