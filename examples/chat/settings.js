// examples/chat/settings.js — the user's settings, stored in this browser if it allows that.

import { SETTINGS } from './built_in.js';
import { CONTEXT_USUAL } from './context_sizes.js';
import { byId, formatNumber, openDialog } from './dom.js';
import { keepJson, readJson } from './local_storage.js';
import { toolsTold } from './tools.js';

/**
 * @typedef {{system: string, temperature: number | undefined, topK: number, topP: number, minP: number,
 *   repeatPenalty: number, maxTokens: number, seed: number | undefined,
 *   context: number | undefined, threads: number | undefined, remember: boolean, theme: string,
 *   ahead: boolean, tools: boolean}} Settings
 */

/** @type {Readonly<Settings>} */
const defaults = {
  system: '',
  temperature: undefined, // undefined: the value recommended for the model
  topK: 40,
  topP: 0.95,
  minP: 0.05,
  repeatPenalty: 1,
  maxTokens: 1024,
  seed: undefined,
  context: undefined, // undefined: chosen by the engine
  threads: undefined,
  remember: true,
  theme: '',
  ahead: true,
  tools: false,
};

const switches = /** @type {const} */ (['remember', 'ahead', 'tools']);
const texts = /** @type {const} */ (['system', 'theme']);
const numbers = Object.keys(defaults).filter(
  (name) => !(/** @type {readonly string[]} */ ([...switches, ...texts]).includes(name)),
);

/** @type {Settings} */
export const settings = { ...defaults, ...readJson(SETTINGS) };

/** Settings that belong to this browser; all others belong to a conversation. */
const common = ['threads', 'remember', 'theme', 'ahead'];

/** @returns {Record<string, unknown>} the settings of the open conversation */
export const settingsToKeep = () =>
  Object.fromEntries(Object.entries(settings).filter(([name]) => !common.includes(name)));

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {boolean} whether its field could contain the value
 */
function isWithin(name, value) {
  if (typeof value !== 'number') return true;
  const { min, max, step } = field(name);
  const isOver = max ? value > Number(max) : !Number.isFinite(value);
  return !isOver && !(value < Number(min || -Infinity)) && (step !== '1' || value % 1 === 0);
}

/** @param {Record<string, unknown>} [kept] the settings stored with a conversation */
export function useSettings(kept = {}) {
  const own = Object.entries(settings).filter(([name]) => common.includes(name));
  const known = Object.entries(kept).filter(([name, value]) => {
    const type = name === 'system' ? 'string' : name === 'tools' ? 'boolean' : 'number';
    const isFree = value === undefined && name !== 'tools';
    return name in defaults && (typeof value === type || isFree) && isWithin(name, value);
  });
  Object.assign(settings, defaults, Object.fromEntries([...known, ...own]));
  showSystem();
}

/** Shows the system prompt above the conversation. */
function showSystem() {
  byId('told-text').textContent = settings.system;
  byId('told').hidden = settings.system.trim() === '';
}

const CONTEXT_MAX = 1 << 20;

/** @returns {number | undefined} the number of tokens, or undefined for the default */
export function contextWanted() {
  const wanted = Math.floor(settings.context ?? 0);
  return wanted > CONTEXT_USUAL ? Math.min(wanted, CONTEXT_MAX) : undefined;
}

/** Returns the tools in this conversation's prompts. @returns {{tools?: typeof toolsTold}} */
export const toolsOfPrompt = () => (settings.tools ? { tools: toolsTold } : {});

const store = () => keepJson(SETTINGS, settings);

const dialog = /** @type {HTMLDialogElement} */ (byId('settings-dialog'));
const form = /** @type {HTMLFormElement} */ (byId('settings-form'));

/** @param {string} name @returns {HTMLInputElement} */
const field = (name) => /** @type {HTMLInputElement} */ (form.elements.namedItem(name));

/** Sets the colours of the window around the page. */
const frames = [...document.querySelectorAll('meta[name="theme-color"]')].map((element) => {
  const meta = /** @type {HTMLMetaElement} */ (element);
  return { meta, media: meta.media };
});

/** Applies the user's theme, or the system's. */
function showTheme() {
  const { theme } = settings;
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  for (const { meta, media } of frames) {
    const isMeant = media.includes(theme);
    meta.media = theme === '' ? media : isMeant ? 'all' : 'not all';
  }
}

function fillForm() {
  // the sizes arrive with the model's information
  const wanted = String(contextWanted() ?? '');
  /** @type {HTMLElement} */ (field('context')).replaceChildren(
    new Option(wanted ? `${formatNumber(Number(wanted))} tokens` : 'Default', wanted),
  );
  for (const name of [...numbers, ...texts]) {
    const value = /** @type {Record<string, unknown>} */ (settings)[name];
    if (name === 'context') continue;
    field(name).value = String(value ?? '');
  }
  for (const name of switches) field(name).checked = settings[name];
}

function readForm() {
  const own = /** @type {Record<string, unknown>} */ (settings);
  for (const name of texts) settings[name] = field(name).value;
  for (const name of switches) settings[name] = field(name).checked;
  for (const name of numbers) {
    const text = field(name).value.trim();
    const fallback = /** @type {Record<string, unknown>} */ (defaults)[name];
    own[name] = text === '' || !field(name).checkValidity() ? fallback : Number(text);
  }
}

byId('open-settings').addEventListener('click', () => {
  fillForm();
  dialog.returnValue = '';
  openDialog(dialog);
});

byId('reset-settings').addEventListener('click', () => dialog.close('reset'));

dialog.addEventListener('close', () => {
  if (dialog.returnValue === 'reset') Object.assign(settings, defaults);
  if (dialog.returnValue === 'save') readForm();
  store();
  showTheme();
  showSystem();
});

showTheme();
showSystem();
