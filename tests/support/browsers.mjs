// Starts browsers for tests: Chromium (playwright-core), Firefox (puppeteer-core) and
// WebKitGTK (through its WebDriver protocol, which is implemented here).

import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { locate } from './locate.mjs';

/**
 * The time limit for any browser operation. Tests wait for events, not for fixed times: this limit
 * only ends waits that would never end, even on a busy machine.
 */
export const PATIENCE_MS = 300_000;

const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/**
 * Chromium uses only the last --disable-features switch, so this list repeats Playwright's. The
 * address bar's suggestions are an internal page in each new window, headless or not, and use as much
 * CPU time as a test page.
 */
const disabledFeatures = [
  ...['AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'HttpsUpgrades'],
  ...['HttpsFirstBalancedModeAutoEnable', 'LensOverlay', 'MediaRouter', 'PaintHolding'],
  ...['ThirdPartyStoragePartitioning', 'AvoidCorsURLLoaderRestartOnRedirect', 'OptimizationHints'],
  ...['NetworkTimeServiceQuerying', 'AimEnabled', 'PreconnectToSearch'],
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup', 'WebUIOmniboxFullPopup'],
];

/**
 * Returns the options for starting Chromium in tests.
 * @param {string[]} [more] arguments
 */
export const chromiumOptions = (more = []) => ({
  executablePath: locate('chromium').path,
  args: [...quiet, `--disable-features=${disabledFeatures}`, ...more],
  timeout: PATIENCE_MS,
});

/**
 * Starts a separate Chromium, for tests that need arguments or measure its processes.
 * @param {string[]} [more] arguments
 * @returns {Promise<import('playwright-core').Browser>}
 */
export const launchOwnChromium = (more) => chromium.launch(chromiumOptions(more));

/**
 * Starts a Chromium whose pages are observed only on request, for measurements.
 * @returns {Promise<import('puppeteer-core').Browser>}
 */
export async function launchUnobserved() {
  const { default: puppeteer } = await import('puppeteer-core');
  const { executablePath, args } = chromiumOptions(['--hide-scrollbars', '--mute-audio']);
  return puppeteer.launch({ executablePath, args, pipe: true });
}

/**
 * Connects to the Chromium that the test runner shares between files (browser_server.mjs); a file that
 * is run alone starts its own. Closing it closes everything that was opened through this connection.
 * @returns {Promise<import('playwright-core').Browser>}
 */
export function launchChromium() {
  const endpoint = process.env.WICK_CHROMIUM_SERVER;
  return endpoint ? chromium.connect(endpoint, { timeout: PATIENCE_MS }) : launchOwnChromium();
}

/**
 * Launches Chromium with a profile that is kept after it exits.
 * @param {string} folder
 * @returns {Promise<import('playwright-core').BrowserContext>}
 */
export function launchProfile(folder) {
  return chromium.launchPersistentContext(folder, chromiumOptions());
}

/** Firefox runs timers in background tabs only once per second, so tests with two tabs would take minutes. */
const timersRun = {
  'dom.min_background_timeout_value': 4,
  'dom.timeout.enable_budget_timer_throttling': false,
};

/**
 * @param {Record<string, unknown>} [preferences]
 * @param {string} [profile] a folder that is kept after Firefox exits
 * @returns {Promise<import('puppeteer-core').Browser>}
 */
export async function launchFirefox(preferences = {}, profile = undefined) {
  const { default: puppeteer } = await import('puppeteer-core'); // loading it is slow, and most files do not need it
  return puppeteer.launch({
    browser: 'firefox',
    executablePath: locate('firefox').path,
    headless: true,
    extraPrefsFirefox: { ...timersRun, ...preferences },
    ...(profile && { userDataDir: profile }),
    timeout: PATIENCE_MS,
    protocolTimeout: PATIENCE_MS,
  });
}

/**
 * Kills Firefox, as in a crash.
 * @param {import('puppeteer-core').Browser} firefox
 * @param {string} profile
 */
export async function killFirefox(firefox, profile) {
  const program = /** @type {import('node:child_process').ChildProcess} */ (firefox.process());
  const ended = new Promise((settle) => program.once('exit', settle));
  program.kill('SIGKILL');
  await ended;
  // wait until the driver has restored the earlier preferences
  for (let tries = 0; existsSync(`${profile}/user.js.puppeteer`) && tries < 300; tries++)
    await sleep(100);
}

/** @returns {Promise<number>} */
function findFreePort() {
  return new Promise((settle, fail) => {
    const server = createServer();
    server.on('error', fail);
    server.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
      server.close(() => settle(port));
    });
  });
}

/** @returns {string} the path of WebKitGTK's MiniBrowser on this version of Debian */
function findMiniBrowser() {
  for (const library of ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu']) {
    if (!existsSync(library)) continue;
    for (const name of readdirSync(library).sort().reverse()) {
      const path = `${library}/${name}/MiniBrowser`;
      if (name.startsWith('webkit2gtk') && existsSync(path)) return path;
    }
  }
  throw new Error('WebKitGTK has no MiniBrowser (tools/setup.sh browsers)');
}

/** A WebKitGTK window, driven by the few WebDriver commands that the tests need. */
export class WebKitPage {
  /** @param {import('node:child_process').ChildProcess} driver @param {string} base */
  constructor(driver, base) {
    this.driver = driver;
    this.base = base;
    this.session = '';
    // the driver is in a separate process group, which is not ended when this process is interrupted
    this.onExit = () => this.kill();
    process.once('exit', this.onExit);
  }

  /** Ends the display server and the driver, which are in one process group. */
  kill() {
    const { pid, exitCode } = this.driver;
    if (pid !== undefined && exitCode === null) process.kill(-pid, 'SIGTERM');
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {object} [body]
   * @returns {Promise<any>}
   */
  async command(method, path, body) {
    const response = await fetch(`${this.base}${this.session}${path}`, {
      method,
      ...(body && { body: JSON.stringify(body) }),
    });
    const { value } = await response.json();
    if (!response.ok) throw new Error(`WebKit: ${value.error}: ${value.message}`);
    return value;
  }

  /** @param {string} url */
  async goto(url) {
    await this.command('POST', '/url', { url });
  }

  /**
   * Runs the body of an async function in the page and returns its JSON result.
   * @param {string} body
   * @param {...unknown} args
   * @returns {Promise<any>}
   */
  async evaluate(body, ...args) {
    const script = `const done = arguments[arguments.length - 1];
      (async (...args) => { ${body} })(...[...arguments].slice(0, -1))
        .then((value) => done({ value }), (error) => done({ error: String(error) }));`;
    const result = await this.command('POST', '/execute/async', { script, args });
    if (result.error !== undefined) throw new Error(result.error);
    return result.value;
  }

  /** @returns {Promise<Buffer>} a PNG */
  async screenshot() {
    return Buffer.from(await this.command('GET', '/screenshot'), 'base64');
  }

  async close() {
    await this.command('DELETE', '').catch(() => {});
    process.off('exit', this.onExit);
    this.kill();
  }
}

const WEBKIT_TRIES = 3;

/**
 * Starts the driver. Retries, because another process may take a free port before the driver does.
 * @param {{scriptTimeoutMs?: number}} [options]
 * @returns {Promise<WebKitPage>}
 */
export async function launchWebKit({ scriptTimeoutMs = PATIENCE_MS } = {}) {
  for (let tries = 1; ; tries++) {
    try {
      return await startWebKit(scriptTimeoutMs);
    } catch (error) {
      if (tries === WEBKIT_TRIES) throw error;
    }
  }
}

/** @param {number} scriptTimeoutMs @returns {Promise<WebKitPage>} */
async function startWebKit(scriptTimeoutMs) {
  const port = await findFreePort();
  const driver = spawn(
    locate('xvfb').path,
    ['-a', '-s', '-screen 0 1280x960x24', locate('webkitDriver').path, `--port=${port}`],
    {
      detached: true,
      stdio: 'ignore',
      // WebKit's sandbox refuses to start as root; in this locale it reports "C" as its language,
      // which Intl rejects
      env: { ...process.env, LC_ALL: 'C.UTF-8', WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: '1' },
    },
  );
  const page = new WebKitPage(driver, `http://127.0.0.1:${port}`);
  try {
    await untilReady(page);
    const args = ['--automation', '--javascript-can-open-windows-automatically=true'];
    const options = { binary: findMiniBrowser(), args };
    const { sessionId } = await page.command('POST', '/session', {
      capabilities: { alwaysMatch: { 'webkitgtk:browserOptions': options } },
    });
    page.session = `/session/${sessionId}`;
    await page.command('POST', '/timeouts', { script: scriptTimeoutMs, pageLoad: PATIENCE_MS });
    return page;
  } catch (error) {
    await page.close();
    throw error;
  }
}

/** @param {WebKitPage} page */
async function untilReady(page) {
  for (const end = Date.now() + PATIENCE_MS; ; await sleep(100)) {
    const { exitCode, signalCode } = page.driver;
    if (exitCode !== null || signalCode !== null) {
      throw new Error(`WebKit's driver ended with ${exitCode ?? signalCode}`);
    }
    const status = await page.command('GET', '/status').catch(() => undefined);
    if (status?.ready) return;
    if (Date.now() > end) throw new Error("WebKit's driver did not become ready");
  }
}
