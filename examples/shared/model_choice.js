// examples/shared/model_choice.js — the choice of a model on a page: the built-in one, one from a
// list, one that is already in this browser, a URL or a name on the hub, or a file. The previous
// model stays in use until the new one is ready.

import { createEngine, WickError } from 'wick-llm';
import { byId } from '../chat/dom.js';
import { hubAddress } from '../chat/hub.js';
import { specOf } from '../chat/specs.js';

/** @typedef {import('wick-llm').Engine} Engine */
/** @typedef {{name: string, source: any}} Choice `source` has options of createEngine */
/** @typedef {{name: string, note: string, source: any}} Offer */
/**
 * @typedef {object} ChoiceOptions
 * @property {string} key in localStorage, where the choice is remembered
 * @property {Offer[]} offers in addition to the models in this browser; with `begin`, the first one
 * is the page's own model
 * @property {boolean} begin whether the first offer is loaded if the user has not chosen a model before
 * @property {(engine: Engine, choice: Choice) => Promise<void> | void} onEngine receives the new
 * engine, after which the previous one is closed. An exception rejects the model
 * @property {any} [options] of createEngine, for all models
 */

/** @param {unknown} error */
export const inWords = (error) => (error instanceof Error ? error.message : String(error));

/** @param {number} bytes */
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;

/** @param {string} typed @returns {Choice} */
function typedChoice(typed) {
  const hub = hubAddress();
  const spec = specOf(typed, hub, document.baseURI);
  if (spec.kind === 'file') {
    const name = decodeURIComponent(spec.url.split('/').at(-1) ?? spec.url);
    return { name, source: { url: spec.url } };
  }
  if (spec.kind === 'repository') {
    const model = `hf:${spec.name}${spec.type ? `:${spec.type}` : ''}`;
    return { name: spec.name, source: { model, hub: { endpoint: hub } } };
  }
  throw new Error('enter the URL of a GGUF file, owner/repo or owner/repo/file.gguf');
}

/** @param {string} key @returns {Choice | undefined} */
function remembered(key) {
  try {
    const found = JSON.parse(localStorage.getItem(key) ?? 'null');
    const isChoice = typeof found?.name === 'string' && typeof found.source === 'object';
    return isChoice && found.source ? found : undefined;
  } catch {
    return undefined;
  }
}

/** @returns {Promise<Offer[]>} the models stored in this browser */
async function keptOffers() {
  try {
    const { openModels } = await import('wick-llm/models');
    const entries = await (await openModels()).list();
    return entries
      .filter(({ isWhole, urls }) => isWhole && urls.length > 0)
      .map(({ name, size, urls }) => ({
        name,
        note: `${size ? `${megabytes(size)}, ` : ''}in this browser`,
        source: { url: urls[0] },
      }));
  } catch {
    return []; // this browser does not store models
  }
}

/** @param {ChoiceOptions} options */
export function useModelChoice({ key, offers, begin, onEngine, options = {} }) {
  const select = /** @type {HTMLSelectElement} */ (byId('model'));
  const address = /** @type {HTMLInputElement} */ (byId('model-address'));
  const file = /** @type {HTMLInputElement} */ (byId('model-file'));
  const load = /** @type {HTMLButtonElement} */ (byId('model-load'));
  const cancel = /** @type {HTMLButtonElement} */ (byId('model-cancel'));
  /** @type {Offer[]} */
  let all = [];
  /** @type {Engine | undefined} */
  let engine;
  /** @type {AbortController | undefined} */
  let loading;
  /** @type {string | undefined} */
  let current;
  let isTouched = false;

  async function fill() {
    const kept = await keptOffers();
    const known = new Set(offers.map(({ source }) => String(source.url)));
    all = [...offers, ...kept.filter(({ source }) => !known.has(source.url))];
    const value = select.value;
    select.replaceChildren(
      ...all.map(({ name, note }, index) => new Option(`${name} (${note})`, String(index))),
      new Option('A URL, or a name on the hub', 'address'),
      new Option('A GGUF file on this device', 'file'),
    );
    if (value) select.value = value;
    showFields();
  }

  function showFields() {
    byId('model-address-field').hidden = select.value !== 'address';
    byId('model-file-field').hidden = select.value !== 'file';
  }

  /** @returns {Choice} */
  function chosen() {
    if (select.value === 'address') return typedChoice(address.value);
    if (select.value === 'file') {
      const files = [...(file.files ?? [])];
      if (files.length === 0) throw new Error('choose a file');
      return { name: files[0].name, source: { file: files } };
    }
    const { name, source } = all[Number(select.value)];
    return { name, source };
  }

  /** @param {{loaded: number, total?: number, secondsLeft?: number}} progress */
  function showProgress({ loaded, total }) {
    const bar = /** @type {HTMLProgressElement} */ (byId('model-progress'));
    if (total) bar.value = loaded / total;
    else bar.removeAttribute('value');
    byId('model-state').textContent =
      `${megabytes(loaded)}${total ? ` of ${megabytes(total)}` : ''}`;
  }

  /** @param {Choice} choice */
  function remember(choice) {
    const isAgain = !('file' in choice.source);
    try {
      if (isAgain) localStorage.setItem(key, JSON.stringify(choice));
      else localStorage.removeItem(key);
    } catch {
      // the page works without storage
    }
  }

  /** @param {Choice} choice @param {any} [more] options of createEngine */
  async function bring(choice, more = {}) {
    loading?.abort(new DOMException('Another model was chosen', 'AbortError'));
    const own = new AbortController();
    loading = own;
    byId('model-problem').hidden = true;
    setLoading(true);
    /** @type {Engine | undefined} */
    let made;
    try {
      made = await createEngine({
        ...options,
        ...choice.source,
        ...more,
        signal: own.signal,
        onProgress: showProgress,
      });
      own.signal.throwIfAborted();
      await onEngine(made, choice);
      const before = engine;
      engine = made;
      current = choice.name;
      remember(choice);
      await before?.close();
    } catch (error) {
      if (made && made !== engine) await made.close();
      if (/** @type {any} */ (error)?.name === 'AbortError') return;
      throw error;
    } finally {
      if (loading === own) {
        loading = undefined;
        setLoading(false);
      }
    }
  }

  /** @param {boolean} isLoading */
  function setLoading(isLoading) {
    byId('model-progress').hidden = !isLoading;
    cancel.hidden = !isLoading;
    load.disabled = isLoading;
    byId('model-state').textContent = isLoading
      ? 'Loading …'
      : current
        ? `${current} is ready.`
        : '';
  }

  /** @param {unknown} error */
  function showProblem(error) {
    const rest = current ? ` ${current} is still loaded.` : '';
    byId('model-problem').textContent = `The model could not be loaded: ${inWords(error)}.${rest}`;
    byId('model-problem').hidden = false;
  }

  /** Selects the loaded model, unless the user has selected something already. @param {Choice} choice */
  function showChosen({ source }) {
    const index = all.findIndex((offer) => String(offer.source.url) === source.url);
    if (index >= 0 && !isTouched) select.value = String(index);
    showFields();
  }

  async function start() {
    await fill();
    const before = remembered(key);
    if (before) {
      showChosen(before);
      try {
        // nothing is downloaded unless it was requested
        const isOwn = begin && String(before.source.url) === String(offers[0].source.url);
        await (isOwn ? bring(offers[0]) : bring(before, { cache: 'only' }));
        return;
      } catch (error) {
        if (!(error instanceof WickError && error.code === 'NOT_FOUND')) showProblem(error);
      }
    }
    if (begin) await bring(offers[0]).catch(showProblem);
  }

  select.addEventListener('change', () => {
    isTouched = true;
    showFields();
  });
  cancel.addEventListener('click', () =>
    loading?.abort(new DOMException('It was cancelled', 'AbortError')),
  );
  load.addEventListener('click', async () => {
    try {
      await bring(chosen());
      await fill();
    } catch (error) {
      showProblem(error);
    }
  });
  return { start, engine: () => engine, name: () => current };
}
