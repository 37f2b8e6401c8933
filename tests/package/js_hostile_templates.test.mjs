// Templates that would run forever or exhaust memory, in WebAssembly: each fails with a typed error within 100 ms of CPU
// time and 16 MB. tests/c/template/template_test.c tests them natively.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { NativeEngine } from '../../js/wasm/native_engine.js';
import { dist } from '../support/package.mjs';

const CPU_MS_MAX = 100;
const BYTES_MAX = 16 * 2 ** 20;
/** The fastest of this many runs counts, because other load on the machine increases CPU time. */
const TRIES = 5;

/** Expected error code and template. @type {[string, string][]} */
const hostile = [
  ['FULL', '{% for i in range(1000000000) %}x{% endfor %}'],
  ['FORMAT', '{% for i in range(1e9) %}x{% endfor %}'],
  ['FULL', '{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}'],
  ['FULL', '{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}'],
  [
    'FULL',
    "{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
  ],
  [
    'FULL',
    "{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
  ],
  [
    'FULL',
    '{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}',
  ],
  ['FULL', "{{ 'x' * 1000000000 }}"],
  ['FULL', '{{ [1] * 1000000000 }}'],
  ['OVERFLOW', '{{ 10 ** 10000000 }}'],
  ['FULL', '{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}'],
  ['FULL', '{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}'],
  ['FULL', "{{ ('a' * 100000) | replace('a', 'b' * 10000) }}"],
  ['FULL', "{% set s = 'a' * 1000000 %}{{ s.find('a' * 500000 ~ 'b') }}"],
  ['FULL', "{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{{ 'b' in s }}{% endfor %}"],
  ['FULL', '{% set l = [1] %}{% set _ = l.append(l) %}{{ l }}'],
  ['FULL', '{% set l = [1] %}{% set _ = l.append(l) %}{{ l | tojson }}'],
  ['FULL', '{% set l = [1] %}{% for i in l %}{% set _ = l.append(1) %}{% endfor %}'],
  ['FULL', '{{ range(100000) | list | sort | length }}'],
  ['FULL', "{{ ('a\n' * 100000) | indent(100000) }}"],
  ['FULL', '{% for i in range(100000) %}{{ 1.7976931348623157e308 }}{% endfor %}'],
  ['FULL', "{{ (' ' * 100000).strip('b' * 100000 ~ ' ') }}"],
];

const wasm = new WebAssembly.Module(readFileSync(join(dist, 'wasm/wick-simd128-single.wasm')));

test('hostile templates fail within the limits on time and memory', async (t) => {
  const config = /** @type {any} */ ({ threads: 1, contextSize: 0, batchSize: 0, memoryLimit: 0 });
  const cpuMs = [];
  for (const [code, source] of hostile) {
    const native = await NativeEngine.create(wasm, config, /** @type {any} */ ({ onLog() {} }));
    const times = [];
    for (let i = 0; i < TRIES; i++) {
      const before = process.cpuUsage();
      assert.throws(
        () => {
          native.setChatTemplate(source);
          native.renderChat({ json: '{"messages": []}', nowS: 0 });
        },
        (/** @type {any} */ error) => error.code === code && /line \d/.test(error.message),
        source,
      );
      const { user, system } = process.cpuUsage(before);
      times.push((user + system) / 1000);
    }
    const { bytesPeak } = native.counters();
    native.destroy();
    cpuMs.push(Math.min(...times));
    assert.ok(bytesPeak < BYTES_MAX, `${source}: ${bytesPeak} bytes`);
    assert.ok(Math.min(...times) < CPU_MS_MAX, `${source}: ${times.join(', ')} ms`);
  }
  t.diagnostic(`at most ${Math.max(...cpuMs).toFixed(0)} ms of CPU time`);
});
