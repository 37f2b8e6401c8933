// make release in copies of the repository: one is unchanged, each of the others has a fault that must be reported. Also tests
// the source maps of published files.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import {
  checkIntegrity,
  checkLinks,
  checkPaths,
  tryPacks,
} from '../../tools/build/release_checks.mjs';
import { packPackage, stagePackage } from '../../tools/build/release_pack.mjs';
import { root } from '../support/locate.mjs';
import { dist, temporaryFolder } from '../support/package.mjs';
import { run } from '../support/process.mjs';

const folder = temporaryFolder();

/** Copies the working tree and built files to a clone, and commits them as a release. @param {string} name */
function copyRepository(name) {
  const copy = join(folder, name);
  const git = (/** @type {string[]} */ ...args) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.invalid', ...args], {
      cwd: copy,
    });
  const listed = execFileSync('git', ['ls-files', '-z', '-co', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  });
  const wanted = /^(?:docs|examples|include|js|tools\/build)\/|^[^/]+$/;
  for (const path of listed.split('\0').filter((one) => wanted.test(one))) {
    if (!existsSync(join(root, path))) continue;
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    cpSync(join(root, path), join(copy, path));
  }
  const { version } = JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8'));
  const changes = readFileSync(join(copy, 'CHANGELOG.md'), 'utf8');
  writeFileSync(
    join(copy, 'CHANGELOG.md'),
    changes.replace(/^## Unreleased$/m, `## ${version}, 2026-01-01`),
  );
  cpSync(dist, join(copy, 'dist'), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  writeFileSync(join(copy, '.git-excluded'), 'node_modules\n.git-excluded\n');
  git('init', '-q');
  git('config', 'core.excludesFile', join(copy, '.git-excluded'));
  git('add', '-A');
  git('commit', '-qm', 'all');
  return { copy, git };
}

/** @param {string} copy @param {Record<string, string>} [env] */
function release(copy, env = {}) {
  const args = [join(copy, 'tools/build/release.mjs')];
  const result = spawnSync(process.execPath, args, {
    cwd: copy,
    env: { ...process.env, REPOSITORY: '', ...env },
    encoding: 'utf8',
  });
  return { code: result.status, out: result.stdout, err: result.stderr };
}

/** @param {string} path @param {(text: string) => string} change */
function changeFile(path, change) {
  const text = readFileSync(path, 'utf8');
  const changed = change(text);
  assert.notEqual(changed, text, path);
  writeFileSync(path, changed);
}

describe('make release', () => {
  /** @type {ReturnType<typeof copyRepository>} */
  let clone;
  before(() => {
    clone = copyRepository('clone');
  });

  test('packs both packages, tests them, and changes nothing else', () => {
    const { copy, git } = clone;
    const result = release(copy, { REPOSITORY: 'https://example.org/wick/wick' });
    assert.equal(result.code, 0, result.err);
    const packs = readdirSync(join(copy, 'build/release')).filter((name) => name.endsWith('.tgz'));
    assert.equal(packs.length, 2);
    const commands = result.out.split('\n').filter((line) => line.startsWith('npm publish '));
    assert.match(commands[0], /demo-model-[\d.]+\.tgz --access public --provenance$/);
    assert.match(commands[1], /wick-llm-[\d.]+\.tgz --access public --provenance$/);
    assert.equal(git('status', '--porcelain').toString(), '');

    const installed = join(copy, 'build/release/installed/node_modules');
    const main = JSON.parse(readFileSync(join(installed, 'wick-llm/package.json'), 'utf8'));
    assert.deepEqual(main.repository, { type: 'git', url: 'git+https://example.org/wick/wick' });
    assert.equal(main.bugs, 'https://example.org/wick/wick/issues');
    assert.equal(main.devDependencies ?? main.workspaces ?? main.scripts, undefined);
    const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    assert.deepEqual(main.exports, own.exports);
    const name = 'wick-llm-demo-model/package.json';
    const model = JSON.parse(readFileSync(join(installed, name), 'utf8'));
    assert.equal(model.repository.directory, 'examples/models');
    for (const file of ['docs/js-api.md', 'examples/README.md', 'CHANGELOG.md']) {
      assert.ok(existsSync(join(installed, 'wick-llm', file)), file);
    }
  });

  test('without a repository URL there is no provenance, which is reported', () => {
    const { version } = JSON.parse(readFileSync(join(clone.copy, 'package.json'), 'utf8'));
    clone.git('tag', '-f', `v${version}`); // the tag points to this commit, so the release may be repeated
    const result = release(clone.copy);
    assert.equal(result.code, 0, result.err);
    assert.doesNotMatch(result.out, /publish.*--provenance/);
    assert.match(result.out, /without REPOSITORY/);
    const staged = join(clone.copy, 'build/release/wick-llm/package.json');
    assert.equal(JSON.parse(readFileSync(staged, 'utf8')).repository, undefined);
    for (const address of ['http://example.org/wick', 'example.org/wick', 'git@example.org:wick']) {
      const refused = release(clone.copy, { REPOSITORY: address });
      assert.equal(refused.code, 1);
      assert.match(refused.err, /REPOSITORY is not an https URL/);
    }
  });

  test('a clone with unpublished changes is rejected, and all faults are listed', () => {
    const { copy, git } = clone;
    const { version } = JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8'));
    git('tag', '-f', `v${version}`);
    git('commit', '-q', '--allow-empty', '-m', 'another');
    writeFileSync(join(copy, 'forgotten.txt'), '');
    changeFile(join(copy, 'include/wick.h'), (text) => text.replace(/(_PATCH) \d+/, '$1 77'));
    changeFile(join(copy, 'js/base/version.js'), (text) =>
      text.replace(/(VERSION = ').*'/, "$19.9.9'"),
    );
    changeFile(join(copy, 'CHANGELOG.md'), (text) => text.replace(/^## .*$/m, '## Next'));
    changeFile(join(copy, 'examples/models/package.json'), (text) =>
      text.replace(/("version": ").*"/, '$17.7.7"'),
    );
    const { code, err } = release(copy);
    assert.equal(code, 1);
    for (const fault of [
      /not committed: \?\? forgotten\.txt/,
      /not committed: M include\/wick\.h/,
      /include\/wick\.h has version 0\.\d+\.77, but package\.json has /,
      /version\.js has version 9\.9\.9/,
      /CHANGELOG\.md begins with "## Next", not with "## \d/,
      /the demo model [\d.]+, not 7\.7\.7/,
      /v[\d.]+ points to a different commit/,
    ]) {
      assert.match(err, fault);
    }
    git('reset', '-q', '--hard');
    git('tag', '-d', `v${version}`);
    rmSync(join(copy, 'forgotten.txt'));
  });

  test('a package with faults is rejected, with all faults at once', () => {
    const { copy, git } = clone;
    changeFile(join(copy, 'js/README.md'), (text) => `${text}\n[gone](../docs/gone.md)\n`);
    changeFile(join(copy, 'package.json'), (text) =>
      text.replace('"./dist/chat.d.ts"', '"./dist/none.d.ts"'),
    );
    // build output, so not committed
    changeFile(join(copy, 'dist/tabs.js'), (text) => `${text}\n// ${copy}/js\n`);
    git('commit', '-qam', 'faults');
    const { code, err } = release(copy);
    assert.equal(code, 1);
    for (const fault of [
      /README\.md links to docs\/gone\.md/,
      /integrity\.json has the wrong hash for tabs\.js/,
      /dist\/tabs\.js contains \//,
      /publint: [\s\S]*none\.d\.ts/,
    ]) {
      assert.match(err, fault);
    }
    git('reset', '-q', '--hard', 'HEAD~1');
    cpSync(join(dist, 'tabs.js'), join(copy, 'dist/tabs.js'));
  });

  test('a package that does not load is rejected', () => {
    const releases = join(clone.copy, 'build/release');
    const packs = ['wick-llm', 'wick-llm-demo-model'].map((name) => {
      const staged = join(folder, 'staged', name);
      cpSync(join(releases, name), staged, { recursive: true });
      if (name === 'wick-llm')
        writeFileSync(join(staged, 'dist/worker.js'), 'this is not a program');
      return { staged, ...packPackage(staged, join(folder, 'staged')) };
    });
    const [fault, ...others] = tryPacks(join(folder, 'staged'), packs);
    assert.match(fault, /^node question\.js: /);
    assert.deepEqual(others, []);
  });
});

test('every link in the packed documents points into the package', () => {
  const pack = stagePackage({
    root,
    source: '.',
    folder: join(folder, 'pack'),
    repository: undefined,
  });
  assert.match(
    readFileSync(join(pack, 'README.md'), 'utf8'),
    /^# wick-llm\n[\s\S]*npm install wick-llm\n/,
  );
  assert.ok(existsSync(join(pack, 'docs/js-api.md')));
  assert.deepEqual(checkLinks(pack), []);
  assert.deepEqual(checkIntegrity(pack), []);
  assert.deepEqual(checkPaths(pack, root), []);
});

describe('source maps', () => {
  const bundles = readdirSync(dist).filter((name) => name.endsWith('.js'));
  /** Returns strings in a bundle that can be looked up in its sources. @param {string} code */
  const textsOf = (code) =>
    [...code.matchAll(/"([A-Za-z][\w ,:']{11,60})"/g)].map(([, one]) => one);

  for (const name of bundles) {
    test(`dist/${name}: the source map locates its strings`, () => {
      const code = readFileSync(join(dist, name), 'utf8');
      assert.match(
        code,
        new RegExp(`\\n//# sourceMappingURL=${name.replace('.', '\\.')}\\.map\\n$`),
      );
      const payload = JSON.parse(readFileSync(join(dist, `${name}.map`), 'utf8'));
      const map = new SourceMap(payload);
      /** @type {Map<string, string>} */
      const sources = new Map();
      payload.sources.forEach((/** @type {string} */ source, /** @type {number} */ i) => {
        assert.match(source, /^\.\.\/js\//);
        const own = readFileSync(join(dist, source), 'utf8');
        // edge.js has a different version of this file
        if (!(name === 'edge.js' && source.endsWith('/later.js'))) {
          assert.equal(payload.sourcesContent[i], own, source);
        }
        sources.set(source, payload.sourcesContent[i]);
      });
      let checked = 0;
      const lines = code.split('\n');
      for (const text of new Set(textsOf(code))) {
        const line = lines.findIndex((one) => one.includes(`"${text}"`));
        if (code.split(`"${text}"`).length !== 2) continue;
        const column = lines[line].indexOf(`"${text}"`);
        const entry = map.findEntry(line, column);
        if (!('originalSource' in entry)) assert.fail(`${name}:${line}:${column} has no source`);
        const source = sources.get(entry.originalSource) ?? '';
        assert.ok(source.includes(text), `${text}: ${entry.originalSource}`);
        const place = source.split('\n')[entry.originalLine];
        assert.ok(place.slice(entry.originalColumn).includes(text), `${text}: ${place}`);
        checked++;
      }
      assert.ok(checked >= (code.length < 4000 ? 0 : 3), `${checked} texts`); // a small bundle may have none
    });
  }

  test('a stack trace names the file and line of js/', async () => {
    const entry = pathToFileURL(join(dist, 'index.js')).href;
    const script = `const { createEngine } = await import(${JSON.stringify(entry)});
      await createEngine({}).catch((error) => console.log(error.stack));`;
    const result = await run(process.execPath, [
      ...['--enable-source-maps', '--input-type=module', '-e', script],
    ]);
    assert.equal(result.code, 0, result.stderr);
    const found = /\((?:file:\/\/)?(\S*\/js\/page\/\S+\.js):(\d+):\d+\)/.exec(
      result.stdout.toString(),
    );
    assert.ok(found, result.stdout.toString());
    const [, file, line] = found;
    const source = readFileSync(file, 'utf8').split('\n')[Number(line) - 1];
    assert.match(source, /WickError\(|throw |\w+\(/);
  });
});
