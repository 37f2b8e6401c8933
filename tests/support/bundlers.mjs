// Builds pages with bundlers from the code in docs/bundlers.md, docs/react.md and docs/svelte.md, with the packed package.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { locate, root } from './locate.mjs';
import { dist, modelFolder, modelPath } from './package.mjs';
import { run } from './process.mjs';

/**
 * Returns the code of a page that prints its results as JSON.
 * @param {string} url code
 * @param {string} [more] code that precedes it
 */
const plainOf = (url, more = '') => `
import { createEngine } from 'wick-llm';
${more}
const engine = await createEngine({ url: ${url} });
const chat = await engine.createChat({ temperature: 0 });
const text = await chat.send('What is Wick?').text();
const ids = await engine.bestOf('Once', { n: 2, temperature: 0, maxTokens: 4 });
const output = document.createElement('output');
output.textContent = JSON.stringify({ text, best: ids.length });
document.body.append(output);
`;
const plain = plainOf("'/model.gguf'");
/** Loads the demo model from its package, which the bundler resolves. */
const demo = plainOf('modelUrl', "import { modelUrl } from 'wick-llm-demo-model';");
const html = (/** @type {string} */ script) =>
  `<!doctype html><meta charset="utf-8"><title>Wick</title><div id="root"></div>` +
  `<script type="module" src="./${script}"></script>\n`;

/** Returns the code blocks of a document that start with a file name. @param {string} name */
function filesOf(name) {
  const text = readFileSync(join(root, 'docs', name), 'utf8');
  const blocks = text.matchAll(/^```\w+\n((?:\/\/|<!--) ([\w./]+)(?: -->)?\n.*?)^```$/gms);
  return Object.fromEntries([...blocks].map(([, code, file]) => [file, code]));
}

/** @param {string} folder @param {Record<string, string>} files */
function write(folder, files) {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

/** Node 24, because bundlers require a newer Node than the package. */
const node = () => locate('node24').path;

/**
 * Creates a folder next to the bundlers, so that they can be resolved from it, with only the package
 * files that npm would install. `close` removes it.
 */
export function openWorkshop() {
  const modules = locate('bundlers').path;
  const folder = mkdtempSync(join(dirname(modules), 'work-'));
  // otherwise some bundlers use this repository's tsconfig.json, which maps imports to its sources
  writeFileSync(join(folder, 'tsconfig.json'), '{}');
  const documented = filesOf('bundlers.md');
  const react = filesOf('react.md');
  const svelte = filesOf('svelte.md');

  /** @param {string} name @param {Record<string, string>} files @returns {string} its folder */
  const project = (name, files) => {
    const made = join(folder, name);
    write(made, { 'package.json': '{"private":true,"type":"module"}', ...files });
    const installed = join(made, 'node_modules/wick-llm');
    cpSync(join(root, 'package.json'), join(installed, 'package.json'));
    cpSync(dist, join(installed, 'dist'), { recursive: true });
    cpSync(modelFolder, join(made, 'node_modules/wick-llm-demo-model'), { recursive: true });
    return made;
  };
  const page = { 'app.js': demo, 'index.html': html('app.js') };

  /** @param {string} cwd @param {string} program path in node_modules @param {string[]} args */
  const start = async (cwd, program, args) => {
    const env = { NEXT_TELEMETRY_DISABLED: '1', CI: '1', NO_COLOR: '1' };
    const result = await run(node(), [resolve(modules, program), ...args], { cwd, env });
    if (result.code !== 0) throw new Error(`${program}: ${result.stderr}${result.stdout}`);
    return `${result.stderr}${result.stdout}`;
  };

  /**
   * @param {string} site the folder to serve, to which the model is added
   * @param {Record<string, string>} [more]
   */
  const finish = (site, more = {}) => {
    cpSync(modelPath, join(site, 'model.gguf'));
    write(site, more);
    return site;
  };

  /** Build a site and return its folder. @type {Record<string, () => Promise<string>>} */
  const builders = {
    vite: async () => {
      const cwd = project('vite', {
        ...page,
        ...react,
        'react.html': html('main.jsx'),
        'svelte.html': html('svelte/main.js'),
        ...Object.fromEntries(
          Object.entries(svelte).map(([name, code]) => [`svelte/${name}`, code]),
        ),
        'svelte.config.js': 'export default {};',
        // the documented settings, and settings to build three pages
        'documented.js': documented['vite.config.js'],
        'vite.config.js': `
          import { svelte } from '@sveltejs/vite-plugin-svelte';
          import documented from './documented.js';
          const input = ['index.html', 'react.html', 'svelte.html'];
          export default { ...documented, plugins: [svelte()], build: { rollupOptions: { input } } };`,
      });
      await start(cwd, 'vite/bin/vite.js', ['build']);
      return finish(join(cwd, 'dist'));
    },
    webpack: async () => {
      const cwd = project('webpack', {
        ...page,
        'webpack.config.mjs': documented['webpack.config.mjs'],
        'build.mjs': `
          import webpack from 'webpack';
          import config from './webpack.config.mjs';
          webpack(config, (error, stats) => {
            if (!error && !stats.hasErrors()) return;
            console.error(error ?? stats.toString());
            process.exitCode = 1;
          });`,
      });
      await start(cwd, join(cwd, 'build.mjs'), []);
      return finish(join(cwd, 'dist'), { 'index.html': html('app.js') });
    },
    rollup: async () => {
      const config = documented['rollup.config.mjs'];
      const cwd = project('rollup', { ...page, 'rollup.config.mjs': config });
      await start(cwd, 'rollup/dist/bin/rollup', ['-c', '--failAfterWarnings']);
      return finish(join(cwd, 'dist'), { 'index.html': html('app.js') });
    },
    parcel: async () => {
      const cwd = project('parcel', page);
      const flags = ['--no-cache', '--no-autoinstall', '--no-source-maps'];
      await start(cwd, 'parcel/lib/bin.js', ['build', ...flags, 'index.html']);
      return finish(join(cwd, 'dist'));
    },
    next: async () => {
      const cwd = project('next', {
        ...react,
        'next.config.mjs': documented['next.config.mjs'],
        'app/layout.jsx': `export default ({ children }) => <html lang="en"><body>{children}</body></html>;`,
      });
      await start(cwd, 'next/dist/bin/next', ['build']);
      return finish(join(cwd, 'out'));
    },
    esbuild: async () => {
      const cwd = project('esbuild', { ...page, 'app.js': plain });
      const commands = /^npx esbuild (.*)\ncp -r (.*) dist\/$/m.exec(
        readFileSync(join(root, 'docs/bundlers.md'), 'utf8'),
      );
      if (!commands) throw new Error('docs/bundlers.md has no esbuild commands');
      const [, flags, copied] = commands;
      const result = await run(join(root, 'node_modules/.bin/esbuild'), flags.split(' '), { cwd });
      if (result.code !== 0) throw new Error(result.stderr);
      for (const name of copied.split(' ')) {
        const from = join(cwd, name);
        cpSync(from, join(cwd, 'dist', name.split('/').at(-1) ?? ''), { recursive: true });
      }
      return finish(join(cwd, 'dist'), { 'index.html': html('app.js') });
    },
  };

  /**
   * Starts `vite dev`, which does not bundle.
   * @returns {Promise<{url: string, close: () => Promise<void>}>}
   */
  const serveVite = async () => {
    const cwd = project('vite-dev', {
      ...page,
      'vite.config.js': documented['vite.config.js'],
      'dev.mjs': `
        import { createServer } from 'vite';
        const server = await createServer({ server: { port: 0, host: '127.0.0.1' } });
        await server.listen();
        console.log(server.resolvedUrls.local[0]);
        process.stdin.resume();
        process.stdin.on('end', () => process.exit());`,
    });
    finish(join(cwd, 'public'));
    const child = spawn(node(), ['dev.mjs'], { cwd, stdio: ['pipe', 'pipe', 'inherit'] });
    const [line] = await once(child.stdout, 'data');
    const close = async () => {
      child.stdin.end();
      await once(child, 'exit');
    };
    return { url: String(line).trim(), close };
  };
  const close = () => rmSync(folder, { recursive: true, force: true });
  return { builders, serveVite, close };
}
