// A script that tests/pages/csp.test.mjs adds to the page: it records violations of the page's
// policy, and tries actions that the policy should forbid. A browser's debugger has more rights than
// the page, so it only calls these functions.

/** Violations as `directive URL`. @type {string[]} */
const heard = [];
addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) => {
  heard.push(`${effectiveDirective} ${blockedURI}`);
});

/** @param {number} ms */
const wait = (ms) => new Promise((settle) => setTimeout(settle, ms));
/** Attacks that ran. @type {string[]} */
const ran = [];

/** Attacks. An attack that runs asynchronously returns a promise, which settles once it has run or can no longer run. @type {Record<string, () => unknown>} */
const attacks = {
  'inline script': () => {
    const script = document.createElement('script');
    script.textContent = "probe.ran.push('inline script')";
    document.head.append(script);
  },
  'event handler': () => {
    const button = document.createElement('button');
    button.setAttribute('onclick', "probe.ran.push('event handler')");
    document.body.append(button);
    button.click();
    button.remove();
  },
  // biome-ignore lint: the test is whether this runs
  eval: () => globalThis.eval("probe.ran.push('eval')"),
  Function: () => new Function("probe.ran.push('Function')")(),
  "another server's script": () => {
    const script = document.createElement('script');
    script.src = `http://localhost:${probe.otherPort}/attack.js`;
    document.head.append(script);
    return new Promise((settle) => {
      script.onload = script.onerror = settle;
    });
  },
};

const probe = {
  heard,
  ran,
  otherPort: 0,

  /** @param {number} otherPort the port of a server with `attack.js` @returns {Promise<string[]>} the attacks that ran */
  async attack(otherPort) {
    probe.otherPort = otherPort;
    await wait(0); // removes the debugger from the call stack
    const ends = Object.values(attacks).map((attack) => {
      try {
        return attack();
      } catch {
        return undefined;
      }
    });
    await Promise.all(ends);
    await wait(100);
    return ran.sort();
  },

  /**
   * @param {string[]} addresses
   * @returns {Promise<string[]>} the actions that the policy forbids
   */
  async forbidden(addresses) {
    const found = [];
    for (const address of addresses) {
      const before = heard.length;
      const asked = fetch(address, { mode: 'no-cors' }).then(
        () => false,
        () => true,
      );
      // the event arrives shortly after the failure, but later on a busy machine
      const isRefused = await Promise.race([asked, wait(1000)]);
      for (let ms = 0; ms < (isRefused ? 2000 : 100) && heard.length === before; ms += 50)
        await wait(50);
      if (heard.length > before) found.push(address);
    }
    return found;
  },
};

Object.assign(globalThis, { probe });
