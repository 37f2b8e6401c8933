// Where llama.cpp's own library is, which tools/setup.sh bench installs with node-llama-cpp. In CI it is there.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ci, root } from './locate.mjs';

/** The folder of its shared libraries. */
export const libraries = join(
  root,
  '.toolchain/bench/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64',
);

/** The reason that tests next to it are skipped. */
export const noLlama = !existsSync(libraries) && 'llama.cpp was not found (tools/setup.sh bench)';
if (noLlama && ci) throw new Error(`CI must not skip: ${noLlama}`);
