// examples/bench/language.js — WebKitGTK reports the language "C" if the system has none. Intl refuses that name, and uPlot
// gives it to Intl as soon as it is imported. So this script runs before the page's modules.

try {
  Intl.getCanonicalLocales(navigator.language);
} catch {
  Object.defineProperty(navigator, 'language', { value: document.documentElement.lang });
}
