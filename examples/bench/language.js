// examples/bench/language.js — WebKitGTK reports the language "C" if the system has none. Intl rejects that name, and uPlot
// passes it to Intl as soon as it is imported, so this script runs before the page's modules.

try {
  Intl.getCanonicalLocales(navigator.language);
} catch {
  Object.defineProperty(navigator, 'language', { value: document.documentElement.lang });
}
