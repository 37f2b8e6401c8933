// Runs tests of the package with 64-bit modules, in Node 24, with everything that an engine allocates above 4 GiB
// (tests/support/high/memory.js), to detect addresses truncated to 32 bits between JavaScript and the module.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { locate, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';

const node24 = locate('node24');

/** Together they call every function of web/exports.c that takes or returns an address. */
const files = [
  'js_adapters',
  'js_begun',
  'js_chat',
  'js_classify',
  'js_completions',
  'js_embed',
  'js_grammar',
  'js_logits_hook',
  'js_media',
  'js_metrics',
  'js_reasoning',
  'js_samplers',
  'js_sessions',
  'js_text',
  'js_tools',
  '../engine/tables',
];

describe('above 4 GiB', { skip: node24.skip }, () => {
  for (const name of files) {
    test(name, async () => {
      const file = join(root, 'tests/package', `${name}.test.mjs`);
      // otherwise the process would report to the test runner
      const env = { WICK_HIGH: '1', NODE_TEST_CONTEXT: undefined };
      const { code, stdout, stderr } = await run(node24.path, [file], { env });
      assert.equal(code, 0, `${stdout}${stderr}`);
    });
  }
});
