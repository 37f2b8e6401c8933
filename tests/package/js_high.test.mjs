// Tests of the package over modules with 64-bit addresses, in Node 24, with everything that an engine allocates above 4 GiB
// (tests/support/high/memory.js): an address that loses its upper half on its way between JavaScript and the module is found.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { locate, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';

const node24 = locate('node24');

/** Every call of web/exports.c that takes or returns an address is in one of them. */
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
      // a process of the runner's would report to it
      const env = { WICK_HIGH: '1', NODE_TEST_CONTEXT: undefined };
      const { code, stdout, stderr } = await run(node24.path, [file], { env });
      assert.equal(code, 0, `${stdout}${stderr}`);
    });
  }
});
