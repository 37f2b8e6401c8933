// Features of the package's command (js/cli.js) only; cli.test.mjs checks output common to both builds.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { startHub } from '../support/fake_hub.mjs';
import { dist, modelFolder, temporaryFolder } from '../support/package.mjs';
import { run } from '../support/process.mjs';
import { openTerminal } from '../support/terminal.mjs';

const cli = join(dist, 'cli.js');
const model = join(modelFolder, 'wick-4.2m-q8_0.gguf');

test('-h, --help and help list the commands', async () => {
  const reports = [];
  for (const word of ['-h', '--help', 'help']) {
    const { code, stdout } = await run(process.execPath, [cli, word]);
    assert.equal(code, 0, word);
    reports.push(String(stdout));
  }
  assert.match(reports[0], /^wick runs GGUF language models/);
  assert.match(reports[0], /'wick serve MODEL'/);
  assert.deepEqual(reports, [reports[0], reports[0], reports[0]]);
});

test('bundles have no long lines, because Node prints the line of an uncaught error', () => {
  for (const name of ['index.js', 'worker.js']) {
    const lines = readFileSync(join(dist, name), 'utf8').split('\n');
    assert.ok(Math.max(...lines.map((line) => line.length)) < 5000, name);
  }
});

describe('a chat at a terminal', () => {
  const gguf = 'GGUF is a file format for language models.';

  test('a question is answered, and the up arrow recalls it', async (t) => {
    const terminal = openTerminal(t, [process.execPath, cli, 'chat', model], { TERM: 'xterm' });
    await terminal.until('> ');
    terminal.type('What is GGUF?\r');
    await terminal.until(gguf);
    await terminal.until('> ');
    terminal.type('\u001b[A\r');
    await terminal.until(gguf);
    await terminal.until('> ');
    terminal.type('\u0004');
    assert.equal(await terminal.ended(), 0);
  });

  test('Ctrl-C stops an answer, not the program; on an empty line it prints how to quit', async (t) => {
    const args = ['chat', model, '--system', 'You are Wick, a small and friendly assistant.'];
    const terminal = openTerminal(t, [process.execPath, cli, ...args]);
    await terminal.until('> ');
    terminal.type('My name is Ada.\r');
    await terminal.until('Nice to meet you, Ada!');
    await terminal.until('> ');
    terminal.type('half a line\u0003What is my name?\r');
    await terminal.until('Your name is Ada.');
    await terminal.until('> ');
    terminal.type('Tell me a story about a fox.\r');
    await terminal.until('Once');
    terminal.type('\u0003');
    const rest = await terminal.until('> ');
    assert.doesNotMatch(rest, /laugh\./, 'the story must be cut off');
    terminal.type('\u0003');
    await terminal.until('(Ctrl-D ends the chat)');
    await terminal.until('> ');
    terminal.type('/new\r');
    terminal.type('What is my name?\r');
    await terminal.until('> ');
    assert.doesNotMatch(await terminal.until('> '), /Ada/);
    terminal.type('\u0004');
    assert.equal(await terminal.ended(), 0);
  });
});

test('chat with threads answers piped lines like one thread', async () => {
  const input = 'My name is Ada.\n\nWhat is my name?';
  const reports = [];
  for (const threads of ['1', '2']) {
    const args = [cli, 'chat', '--parse-special', model, '-n', '20', '--threads', threads];
    const { code, stdout, stderr } = await run(process.execPath, args, { input });
    assert.equal(code, 0, stderr);
    reports.push(stdout.toString());
  }
  assert.match(reports[0], /Ada/);
  assert.equal(reports[1], reports[0]);
});

describe('a model given by name', () => {
  const name = 'owner/wick:Q8_0';

  test('run, chat, embed and serve download the model once', async (t) => {
    const hub = await startHub({ 'owner/wick': { 'wick-Q8_0.gguf': readFileSync(model) } });
    t.after(() => hub.close());
    const env = { HF_ENDPOINT: hub.url, XDG_CACHE_HOME: temporaryFolder() };
    const commands = {
      run: ['-p', 'Once upon a time', '-n', '8'],
      chat: ['-p', 'What is GGUF?', '-n', '30'],
      embed: ['-p', 'a fox'],
    };
    for (const [command, more] of Object.entries(commands)) {
      const by = (/** @type {string} */ given) =>
        run(process.execPath, [cli, command, given, ...more], { env });
      const [named, file] = [await by(name), await by(model)];
      assert.equal(named.code, 0, named.stderr);
      assert.equal(named.stdout.toString(), file.stdout.toString(), command);
    }
    const threaded = ['chat', `hf:${name}`, ...commands.chat, '--threads', '2'];
    const { stdout, stderr } = await run(process.execPath, [cli, ...threaded], { env });
    assert.match(stdout.toString(), /^GGUF is a file format/, stderr);
    const server = openTerminal(t, [process.execPath, cli, 'serve', name, '--port', '0'], env);
    await server.until('/v1');
    server.type('\u0003');
    assert.equal(await server.ended(), 0);
    assert.equal(hub.state.starts.filter((start) => start === 0).length, 1, 'downloads');
  });

  test('an unknown model name results in the exit code for file errors, and a path is not a name', async (t) => {
    const hub = await startHub({ 'owner/wick': { 'wick-Q8_0.gguf': readFileSync(model) } });
    t.after(() => hub.close());
    const env = { HF_ENDPOINT: hub.url, XDG_CACHE_HOME: temporaryFolder() };
    for (const given of ['owner/other:Q8_0', 'hf:owner/wick/none.gguf', 'owner/wick', 'a/b.gguf']) {
      const { code, stderr } = await run(process.execPath, [cli, 'run', given, '-p', 'a'], { env });
      assert.equal(code, 3, stderr);
      assert.match(stderr, /^wick: /);
    }
    assert.ok(!hub.state.asked.some((path) => path.includes('a/b')), hub.state.asked.join());
  });
});
