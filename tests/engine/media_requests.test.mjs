// Prompts with images and recordings in the `wick` command: `wick logits --parts`, `run` and `chat` with
// --image and --audio, and their errors.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { native, plainHosts, smallHosts, temporaryFolder, wick } from '../support/cli.mjs';
import { built } from '../support/locate.mjs';
import { fileOf as bytesOf, folder, manifest, skip, texts } from '../support/media_files.mjs';
import { run } from '../support/process.mjs';

const temporary = temporaryFolder();

/** @typedef {{text?: string, image?: string, audio?: string, width?: number, height?: number}} Part */

/** @param {string} name */
function floatsOf(name) {
  const bytes = new Uint8Array(readFileSync(name)); // copied for alignment
  return new Float32Array(bytes.buffer, 0, bytes.byteLength / 4);
}

let runs = 0;

/** @param {any} type @param {Part[]} parts @param {string[]} options */
async function logits(type, parts, options = []) {
  const name = join(temporary, `logits-${runs++}`);
  const named = parts.map(({ image, audio, ...part }) => ({
    ...part,
    ...(image && { image: resolve(folder, image) }),
    ...(audio && { audio: resolve(folder, audio) }),
  }));
  writeFileSync(`${name}.json`, JSON.stringify(named));
  const files = ['--mmproj', join(folder, type.mmproj), '--parts', `${name}.json`];
  const from = ['logits', join(folder, type.text_model), ...files, '--like-llama-cpp'];
  const done = await wick(native, [...from, '--out', `${name}.f32`, ...options]);
  return { ...done, values: done.code === 0 ? floatsOf(`${name}.f32`) : new Float32Array() };
}

describe('logits of prompts with images and recordings', {
  concurrency: 2,
  skip,
}, () => {
  for (const type of manifest.types) {
    for (const one of type.cases) {
      test(`${type.id}: ${one.id}`, async () => {
        const { code, stderr, values } = await logits(type, one.parts);
        assert.equal(code, 0, stderr);
        const wanted = floatsOf(join(folder, one.logits.file));
        assert.equal(values.length, wanted.length);
        const most = wanted.reduce((max, value, i) => {
          const off = Math.abs(values[i] - value);
          return off <= max ? max : off; // keeps NaN
        }, 0);
        const tolerance = Math.max(5e-4, 100 * one.logits.moved_by_1e6_noise);
        assert.ok(most <= tolerance, `off by ${most}, limit is ${tolerance}`);
      });
    }
  }
});

// ---- run and chat ----

/** @param {Part} part @returns {string} a file for --image or --audio */
function fileOf(part) {
  const path = join(temporary, `part-${runs++}.${part.image ? 'ppm' : 'wav'}`);
  writeFileSync(path, bytesOf(part));
  return path;
}

const isText = (/** @type {Part} */ part) => part.text !== undefined;
const question = 'What is the word for it?';

/** Returns the arguments for a question about one image or recording. @param {any} type @param {Part} part */
const about = (type, part) => [
  ...[join(folder, type.text_model), '--mmproj', join(folder, type.mmproj)],
  ...[part.image ? '--image' : '--audio', fileOf(part)],
  ...['--temp', '0', '--kv', 'f32', '--like-llama-cpp'],
];

/** @param {Float32Array} values of rows @param {number} vocab */
function likeliest(values, vocab) {
  const last = values.subarray(values.length - vocab);
  return last.indexOf(last.reduce((max, value) => Math.max(max, value)));
}

describe('questions about images and recordings', { concurrency: 2, skip }, () => {
  for (const type of manifest.types) {
    const part = type.cases[0].parts.find((/** @type {Part} */ part) => !isText(part));
    const [, vocab] = type.cases[0].logits.shape;
    const rows = type.cases[0].chunks.map((/** @type {any} */ chunk) => chunk.n_tokens ?? 0);
    if (Math.max(...rows) > 400) continue; // the models were trained on 512

    test(`${type.id}: run puts the media before the prompt`, async () => {
      const { values } = await logits(type, [part, { text: question }]);
      const args = [...about(type, part), '-p', question, '-n', '4', '--logprobs', '1'];
      const { code, stderr } = await wick(native, ['run', ...args]);
      assert.equal(code, 0, stderr);
      const tokens = stderr
        .toString()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).token);
      assert.equal(tokens[0], likeliest(values, vocab));
    });
  }

  // The template writes the text before the image. An SPM vocabulary (llava's) adds a space before each text
  // between images, which does not happen in a conversation.
  for (const type of manifest.types.filter((/** @type {any} */ { id }) => id !== 'llava')) {
    const [one] = type.cases;
    const [before, part, after] = one.parts;
    const rows = one.chunks.map((/** @type {any} */ chunk) => chunk.n_tokens ?? 0);
    if (Math.max(...rows) > 400) continue; // the models were trained on 512

    test(`${type.id}: chat generates the greedy tokens`, async () => {
      const path = join(temporary, `greedy-${type.id}.jinja`);
      const kind = part.image ? 'image' : 'audio';
      const marker = Object.keys(type.special_tokens ?? {}).at(-1);
      const lists =
        `{% for p in messages[-1].content %}{% if p.type == '${kind}' %}${marker}` +
        '{% else %}{{ p.text }}{% endif %}{% endfor %}';
      writeFileSync(path, before.text + (marker ? lists : '{{ messages[-1].content }}'));
      const args = [...about(type, part), '--template', path, '-p', after.text, '-n', '12'];
      const chat = await wick(native, ['chat', ...args]);
      assert.equal(chat.code, 0, chat.stderr);
      const model = join(folder, type.text_model);
      const text = await wick(native, ['detokenize', model, '--tokens', String(one.greedy)]);
      // invalid UTF-8 may be replaced byte by byte or in groups
      const known = (/** @type {any} */ done) => done.stdout.toString().replaceAll('\ufffd', '');
      assert.equal(known(chat), `${known(text)}\n`);
      assert.ok(known(chat).length > 1);
    });
  }

  const [type] = manifest.types;
  const part = type?.cases[0].parts[1];

  /** @param {string} template @param {string} input lines @param {string[]} options */
  async function chat(template, input, options = []) {
    const path = join(temporary, `template-${runs++}.jinja`);
    writeFileSync(path, template);
    const args = [...about(type, part), '-n', '12', '--template', path, ...options];
    const done = await wick(native, ['chat', ...args], { input });
    assert.equal(done.code, 0, done.stderr);
    return done.stdout.toString();
  }
  const strings = '{% for m in messages %}{{ m.content }}{% endfor %}';
  const lists =
    '{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}' +
    "{% if p.type == 'image' %}<image>{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}";

  test('chat puts the image where the template does, or before the first question', async () => {
    const done = await wick(native, ['run', ...about(type, part), '-p', question, '-n', '12']);
    assert.ok(done.stdout.length > 8);
    for (const template of [strings, lists]) {
      assert.equal(await chat(template, `${question}\n`), `${done.stdout}\n`);
    }
  });

  test('later questions of a chat are about the same image', async () => {
    const [inStrings, inLists] = [
      await chat(strings, `${question}\nAnd then?\n`),
      await chat(lists, `${question}\nAnd then?\n`),
    ];
    assert.equal(inStrings, inLists);
    assert.ok(inStrings.startsWith(await chat(lists, `${question}\n`)));
    const other = type.cases[1].parts[1];
    const args = [...about(type, other), '-n', '12'];
    const done = await wick(native, ['run', ...args, '-p', question]);
    assert.notEqual(`${done.stdout}\n`, await chat(lists, `${question}\n`));
  });

  test('chat keeps what a template writes around an image', async () => {
    // like SmolVLM's, whose contents must be lists
    const template =
      "{% for m in messages %}{{ m.role | capitalize }}{% if m.content[0].type == 'image' %}:{% else %}: {% endif %}" +
      "{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% elif p.type == 'image' %}<image>{% endif %}" +
      "{% endfor %}{{ '\\n' }}{% endfor %}Assistant:";
    const parts = [{ text: 'System: Be brief.\nUser:' }, part, { text: `${question}\nAssistant:` }];
    const { values } = await logits(type, parts);
    const token = likeliest(values, type.cases[0].logits.shape[1]);
    const model = join(folder, type.text_model);
    const text = await wick(native, ['detokenize', model, '--tokens', `${token}`]);
    const said = await chat(template, `${question}\n`, ['--system', 'Be brief.', '-n', '1']);
    assert.equal(said, `${text.stdout}\n`);
  });
});

describe('rejected requests', { concurrency: 2, skip }, () => {
  const [type] = manifest.types;
  const [, part] = type?.cases[0].parts ?? [];
  const model = join(folder, type?.text_model ?? '');
  const mmproj = ['--mmproj', join(folder, type?.mmproj ?? '')];
  const broken = (/** @type {string} */ name, /** @type {string | Buffer} */ content) => {
    const path = join(temporary, name);
    writeFileSync(path, content);
    return path;
  };
  /** @type {[what: string, args: () => string[], code: number, message: RegExp][]} */
  const refusals = [
    [
      'an image without mmproj',
      () => [model, '--image', 'a.ppm'],
      2,
      /--image requires --mmproj FILE/,
    ],
    [
      'audio without mmproj',
      () => [model, '--audio', 'a.wav'],
      2,
      /--audio requires --mmproj FILE/,
    ],
    ['a model from a pipe', () => ['-', ...mmproj, '--image', 'a.ppm'], 2, /model in a file/],
    [
      'audio for an image encoder',
      () => [
        ...[model, ...mmproj, '--audio'],
        fileOf({
          audio: manifest.types.find((/** @type {any} */ t) => t.id === 'qwen3a').cases[0].parts[1]
            .audio,
        }),
      ],
      2,
      /no encoder for audio/,
    ],
    [
      'a file that is not an image',
      () => [model, ...mmproj, '--image', broken('text.ppm', 'P5 1 1 255\n.')],
      2,
      /text\.ppm: not a PPM file/,
    ],
    [
      'a truncated PPM file',
      () => [model, ...mmproj, '--image', broken('cut.ppm', 'P6 9 9 255\n.....')],
      2,
      /cut\.ppm: ends before the last pixel of an image of 9 x 9/,
    ],
    [
      'a file that is not a recording',
      () => [model, ...mmproj, '--audio', broken('text.wav', 'RIFFLE')],
      2,
      /text\.wav: not a WAV file/,
    ],
    ['a missing file', () => [model, ...mmproj, '--image', 'missing.ppm'], 3, /missing\.ppm/],
    [
      'an image that exceeds the context',
      () => [model, ...mmproj, '--image', fileOf(part), '--ctx', '20'],
      2,
      /the prompt has \d+ tokens \(63 of images and audio\); the context holds 20/,
    ],
    [
      "a model without the encoder's tokens",
      () => [join(folder, 'models/text-lfm2.gguf'), ...mmproj, '--image', fileOf(part)],
      3,
      /text-lfm2\.gguf: model: the vocabulary lacks the token/,
    ],
    [
      'a model in place of the encoder',
      () => [model, '--mmproj', model, '--image', fileOf(part)],
      3,
      /general\.architecture is 'llama', not 'clip'/,
    ],
  ];
  for (const [what, args, code, message] of refusals) {
    test(what, async () => {
      for (const command of ['run', 'chat']) {
        const done = await wick(native, [command, ...args(), '-p', 'x']);
        assert.equal(done.code, code, done.stderr);
        assert.match(done.stderr.toString(), message);
        assert.equal(done.stdout.length, 0);
      }
    });
  }

  test('logits with both tokens and parts, or parts without mmproj, are rejected', async () => {
    for (const args of [
      ['--tokens', '1', '--parts', 'a.json', ...mmproj],
      ['--parts', 'a.json'],
    ]) {
      const done = await wick(native, ['logits', model, ...args, '--out', join(temporary, 'none')]);
      assert.equal(done.code, 2, done.stderr);
      assert.match(done.stderr.toString(), /--parts/);
    }
  });
});

describe('memory', { concurrency: 2, skip }, () => {
  const shim = built('test/host_shim.so');
  const [type] = manifest.types;
  const image = type?.cases[0].parts[1];
  const [lists, strings] = ['lists', 'strings'].map((name) => join(temporary, `${name}.jinja`));
  writeFileSync(
    lists,
    "{% for p in messages[-1].content %}{{ '<image>' if p.type == 'image' else p.text }}{% endfor %}",
  );
  writeFileSync(strings, '{{ messages[-1].content }}');

  /** @returns {string[][]} */
  function commands() {
    const parts = join(temporary, 'memory.json');
    const path = fileOf(image);
    const name = join(temporary, 'memory.f32');
    writeFileSync(parts, JSON.stringify([{ text: 'Look: ' }, { image: path }]));
    const mmproj = [join(folder, type.text_model), '--mmproj', join(folder, type.mmproj)];
    const question = [...mmproj, '--image', path, '-p', 'x', '-n', '1'];
    return [
      ['media', ...mmproj, '--parts', parts, '--out', name, '--inputs', `${name}.rgb`],
      ['logits', ...mmproj, '--parts', parts, '--out', name],
      ['run', ...question],
      ['chat', ...question, '--template', lists],
      ['chat', ...question, '--template', strings],
    ];
  }

  test('every command frees its memory, whether it succeeds or fails', async () => {
    const counted = join(temporary, 'blocks');
    const env = { LD_PRELOAD: shim, SHIM_BLOCK_COUNT: counted };
    // the C library caches the time zone
    const [model, text] = [join(folder, type.text_model), ['--template', strings, '-n', '1']];
    await run(built(native.program), ['chat', model, '-p', 'x', ...text], { env });
    const ofZone = readFileSync(counted, 'utf8');
    for (const command of commands()) {
      /** @type {[number, string[]][]} */
      const all = [
        [0, command],
        [3, command.map((arg) => arg.replace('mmproj-idefics3', 'text-idefics3'))],
        [2, [...command, command[0] === 'media' ? '--none' : '--ctx=20']],
      ];
      for (const [wanted, args] of all) {
        const { code, stderr } = await run(built(native.program), args, { env });
        assert.equal(code, wanted, `${args.join(' ')}: ${stderr}`);
        const kept = wanted === 0 && command[0] === 'chat' ? ofZone : '0';
        assert.equal(readFileSync(counted, 'utf8'), kept, args.join(' '));
      }
    }
  });

  test('allocation failures are reported', async () => {
    const counted = join(temporary, 'calls');
    for (const command of commands()) {
      let refused = 0;
      for (const kind of ['MALLOC', 'CALLOC']) {
        for (let call = 1; call < 100; call++) {
          const env = {
            LD_PRELOAD: shim,
            [`SHIM_${kind}_FAILS`]: String(call),
            [`SHIM_${kind}_COUNT`]: counted,
          };
          const { code, signal, stderr } = await run(built(native.program), command, { env });
          const about = `${command.join(' ')}, ${kind} ${call}: ${stderr}`;
          assert.equal(signal, null, about);
          if (code === 0) {
            if (Number(readFileSync(counted, 'utf8')) <= call + 8) break;
            continue;
          }
          refused++;
          assert.equal(code, 4, about);
          assert.match(stderr, /^wick: [^\n]*memory[^\n]*\n$/, about);
        }
      }
      assert.ok(refused > 2, command[0]);
    }
  });
});

describe('WASI programs', { skip }, () => {
  const [full] = plainHosts;
  const [small] = smallHosts;

  for (const [id, name] of [
    ['gemma3', 'sq'],
    ['idefics3', 'tall'],
    ['qwen3a', 'a2'],
    ['lfm2a', 'a2'],
  ]) {
    test(`${id}: run and chat give the same answers as the native program`, async () => {
      const type = manifest.types.find((/** @type {any} */ one) => one.id === id);
      const { parts } = type.cases.find((/** @type {any} */ one) => one.id === name);
      const part = parts.find((/** @type {Part} */ one) => !isText(one));
      for (const command of ['run', 'chat']) {
        const template = join(temporary, 'wasi.jinja');
        writeFileSync(template, texts);
        const more = command === 'run' ? [] : ['--template', template];
        const args = [command, ...about(type, part), ...more, '-p', question, '-n', '8'];
        const options = { folders: [folder, temporary] };
        const [here, there] = [await wick(full, args, options), await wick(native, args, options)];
        assert.equal(here.code, 0, here.stderr);
        assert.equal(here.stdout.toString('latin1'), there.stdout.toString('latin1'));
        assert.ok(here.stdout.length > 0);
      }
    });
  }

  test('the small program reports that it has no encoders', async () => {
    const [type] = manifest.types;
    const part = type.cases[0].parts.find((/** @type {Part} */ one) => !isText(one));
    const args = ['run', ...about(type, part), '-p', question];
    const { code, stdout, stderr } = await wick(small, args, { folders: [folder, temporary] });
    assert.deepEqual([code, stdout.length], [3, 0]);
    assert.match(stderr, /^wick: --image is not in this program; wick-full\.wasm has all/);
    const media = await wick(small, ['media', type.text_model], { folders: [folder, temporary] });
    assert.match(media.stderr, /the command 'media' is in wick-full\.wasm/);
  });
});
