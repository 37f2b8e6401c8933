// examples/chat/host.js — detects the kind of device and browser where feature detection does not
// help: browsers do not report how much memory a page may use, or how long they keep its data.

const { userAgent, maxTouchPoints } = navigator;

/** Returns whether this is an iPhone or iPad, whose browsers all use WebKit. iPads claim to be Macs. */
export const isAppleTouch = () =>
  /iPhone|iPad|iPod/.test(userAgent) || (/Macintosh/.test(userAgent) && maxTouchPoints > 1);

/** Returns whether this is Safari. Chromium also claims to be Safari, but includes its own name. */
export const isSafari = () =>
  /Safari\//.test(userAgent) && !/Chrom|Android|CriOS|FxiOS|Edg/.test(userAgent);

/** Returns whether this is a phone or tablet, which ends pages that use too much memory. */
export const isPhone = () => isAppleTouch() || /Android/.test(userAgent);

/**
 * @returns {boolean} whether the page was opened from the home screen, or as an installed
 * application
 */
export const isInstalled = () =>
  /** @type {{standalone?: boolean}} */ (navigator).standalone === true ||
  matchMedia('(display-mode: standalone)').matches;
