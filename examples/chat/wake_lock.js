// examples/chat/wake_lock.js — keeps the screen on while a download or an answer runs: a phone that locks its screen
// suspends the page.

/** The number of users of the lock. */
let holders = 0;
/** @type {WakeLockSentinel | undefined} */
let sentinel;
let isRequesting = false;

async function request() {
  if (holders === 0 || sentinel || isRequesting || document.visibilityState !== 'visible') return;
  isRequesting = true;
  try {
    const found = await navigator.wakeLock?.request('screen');
    if (!found) return;
    sentinel = found;
    // the browser releases it when the page is hidden
    found.addEventListener('release', () => {
      if (sentinel === found) sentinel = undefined;
    });
    if (holders === 0) await found.release();
  } catch {
    // low power mode, or a browser without wake locks
  }
  isRequesting = false;
}

document.addEventListener('visibilitychange', request);

/** @returns {() => void} releases it; a second call does nothing */
export function keepAwake() {
  let isHeld = true;
  holders++;
  request();
  return () => {
    if (!isHeld) return;
    isHeld = false;
    holders--;
    if (holders === 0) sentinel?.release().catch(() => {});
  };
}
