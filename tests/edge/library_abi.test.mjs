// The ABI of libwick.so: tests which changes to wick.h are compatible with programs built for an earlier library, and that the
// current header has only compatible ones (tools/build/abi.mjs, library/abi).

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { abiOf, bare, breaksOf } from '../../tools/build/abi.mjs';
import { locate, root } from '../support/locate.mjs';

const { skip } = locate('abidiff');
const header = readFileSync(join(root, 'include/wick.h'), 'utf8');
const version = 'WICK_API uint32_t wick_version(void);';
/** The last field of wick_config. */
const last = '  uint32_t timer_grain_us;';

/** @param {string} from @param {string} to @returns {string} the changed header */
function changed(from, to) {
  const code = bare(header);
  assert.equal(code.split(from).length, 2, from);
  return code.replace(from, to);
}

test('the library name changes with versions that break programs', () => {
  const of = (/** @type {string} */ major, /** @type {string} */ minor) =>
    abiOf(`#define WICK_VERSION_MAJOR ${major}\n#define WICK_VERSION_MINOR ${minor}\n`);
  assert.deepEqual([of('0', '7'), of('1', '7')], ['0.7', '1']);
});

describe('changes to wick.h', { skip }, () => {
  test('there are no breaking changes since libwick.so got its current name', () => {
    const kept = readFileSync(join(root, `library/abi/${abiOf(header)}.h`), 'utf8');
    assert.equal(breaksOf(kept, header), '');
  });

  for (const [what, from, to] of [
    ['a new function', version, `${version}\nWICK_API uint32_t wick_more(void);`],
    [
      'a field in reserved space',
      `${last}\n  uint64_t reserved[16];`,
      `${last}\n  uint64_t more;\n  uint64_t reserved[15];`,
    ],
    ['a new status', 'WICK_STATUS_COUNT = 19', 'WICK_E_MORE = 19,\n  WICK_STATUS_COUNT = 20'],
  ])
    test(`${what} is compatible`, () => {
      assert.equal(breaksOf(header, changed(from, to)), '');
    });

  for (const [what, from, to, report] of /** @type {[string, string, string, RegExp][]} */ ([
    ['a removed function', version, '', /Removed function[\s\S]*wick_version/],
    ['a changed parameter', version, version.replace('void', 'int a'), /wick_version/],
    ['a larger struct', last, `${last}\n  uint64_t more;`, /size_of_wick_config/],
    [
      'a field before others',
      'bool choose_threads;',
      'uint32_t more;\n  bool choose_threads;',
      /context_tokens/,
    ],
    ['a changed field type', last, '  float timer_grain_us;', /timer_grain_us/],
    ['a changed enum value', 'WICK_KV_F16 = 0', 'WICK_KV_F16 = 7', /WICK_KV_F16/],
  ]))
    test(`${what} is reported`, () => {
      assert.match(breaksOf(header, changed(from, to)), report);
    });
});
