// examples/chat/dom.js — elements by id, buttons, and human-readable numbers.

/**
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 * @returns {T}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no element #${id}`);
  return /** @type {T} */ (element);
}

/**
 * Creates an element with its properties and children.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Partial<HTMLElementTagNameMap[T]>} [known]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, known = {}, ...children) {
  const element = Object.assign(document.createElement(tag), known);
  element.append(...children);
  return element;
}

/** Returns whether focusing a field opens an on-screen keyboard. */
export const hasTouchScreen = () => matchMedia('(pointer: coarse)').matches;

/**
 * Opens a dialog. On a touch screen, none of its fields takes the focus, because that would open the keyboard.
 * @param {HTMLDialogElement} dialog
 */
export function openDialog(dialog) {
  dialog.showModal();
  if (!hasTouchScreen()) return;
  dialog.tabIndex = -1;
  dialog.focus();
}

/** Safari ends a composition before the Enter that confirms it, and reports that Enter with this code. */
const COMPOSING_KEY_CODE = 229;

/**
 * Returns whether a key press is an intended Enter, not one that confirms a composition of an input
 * method.
 * @param {KeyboardEvent} event
 */
export const isEnter = ({ key, isComposing, keyCode }) =>
  key === 'Enter' && !isComposing && keyCode !== COMPOSING_KEY_CODE;

/**
 * Returns whether Enter sends a message. Touch keyboards have no Shift+Enter, so there Enter starts a new line.
 * @param {KeyboardEvent} event
 */
export const isSending = (event) => isEnter(event) && !event.shiftKey && !hasTouchScreen();

/**
 * @param {string} text
 * @param {() => void} action
 * @param {string} [className] `branching`: disabled while an answer is being generated
 */
export function makeButton(text, action, className = '') {
  const button = make('button', { type: 'button', className }, text);
  button.addEventListener('click', action);
  return button;
}

/**
 * Makes a button for an action that cannot be undone, which requires a second click. The second
 * click of a double click is ignored.
 * @param {string} text
 * @param {() => void} action
 * @param {string} [className]
 */
export function makeSureButton(text, action, className) {
  const button = makeButton(text, () => {}, className);
  button.addEventListener('click', ({ detail }) => {
    if (button.textContent === 'Really?') {
      if (detail < 2) action();
      return;
    }
    button.style.minWidth = `${button.offsetWidth}px`; // so that no other button moves under the pointer
    button.textContent = 'Really?';
  });
  return button;
}

/**
 * Makes keys move the focus among the children of an element: two arrow keys, Home and End. The tab
 * key reaches one of them. Enter and Space click it.
 * @param {HTMLElement} list
 * @param {[back: string, on: string]} arrows
 */
export function moveByKeys(list, [back, on]) {
  list.addEventListener('keydown', (event) => {
    const items = /** @type {HTMLElement[]} */ ([...list.children]);
    const at = items.indexOf(/** @type {HTMLElement} */ (event.target));
    if (at < 0) return;
    const isClick = event.key === 'Enter' || event.key === ' ';
    const to = { [back]: at - 1, [on]: at + 1, Home: 0, End: items.length - 1 }[event.key];
    if (isClick || to !== undefined) event.preventDefault();
    if (isClick) items[at].click();
    if (to === undefined || !items[to]) return;
    for (const one of items) one.tabIndex = one === items[to] ? 0 : -1;
    items[to].focus();
  });
}

/** @param {Element | null} control @returns {string | null | undefined} */
const nameOf = (control) => control?.getAttribute('aria-label') ?? control?.textContent;

/**
 * Changes the parts of a row that have no controls.
 * @param {HTMLElement} row
 * @param {HTMLElement} item how the row should look
 * @returns {boolean} false if its controls differ, too
 */
function updateRow(row, item) {
  const [before, after] = [[...row.children], [...item.children]];
  const changed = before.flatMap((one, at) => (one.isEqualNode(after[at]) ? [] : at));
  const hasControls = (/** @type {Element} */ one) => one.matches('a, button, :has(a, button)');
  const isOther = before.length !== after.length || row.className !== item.className;
  if (isOther || changed.some((at) => hasControls(before[at]))) return false;
  for (const at of changed) before[at].replaceWith(after[at]);
  return true;
}

/**
 * Replaces the rows of a list. Rows with the same controls stay: a click is lost if its row is replaced while
 * the button is down. The focus stays on the same control of the same row, or else goes to the row that
 * takes its place.
 * @param {HTMLElement} list
 * @param {HTMLElement[]} items each with its own data-id
 */
export function showRows(list, items) {
  const before = /** @type {HTMLElement[]} */ ([...list.children]);
  const { activeElement: focused } = document;
  const index = before.findIndex((row) => row.contains(focused));
  const controlsOf = (/** @type {HTMLElement | undefined} */ row) =>
    /** @type {HTMLElement[]} */ ([...(row?.querySelectorAll('a, button') ?? [])]);
  const at = controlsOf(before[index]).indexOf(/** @type {HTMLElement} */ (focused));
  const rows = items.map((item) => {
    const row = before.find(({ dataset }) => dataset.id === item.dataset.id);
    return row && updateRow(row, item) ? row : item;
  });
  for (const row of before) if (!rows.includes(row)) row.remove();
  for (const [place, row] of rows.entries())
    if (list.children[place] !== row) list.insertBefore(row, list.children[place]);
  if (index < 0 || list.contains(document.activeElement)) return;
  const same = rows.find(({ dataset }) => dataset.id === before[index].dataset.id);
  const controls = controlsOf(same ?? rows[Math.min(index, rows.length - 1)]);
  const named = controls.find((one) => nameOf(one) === nameOf(focused));
  (named ?? (same && controls[at]) ?? controls[0])?.focus();
}

const COPIED_MS = 1500;

/**
 * @param {string} className
 * @param {() => string} textOf returns the text to copy
 * @returns {HTMLButtonElement[]} one button, or none if the page may not copy (only pages served over
 * HTTPS or from localhost may)
 */
export function makeCopyButtons(className, textOf) {
  if (!navigator.clipboard) return [];
  /** The button's text or icon. @type {ChildNode[] | undefined} */
  let face;
  /** @param {string} words */
  const say = (words) => {
    face ??= [...button.childNodes];
    const shown = face;
    button.textContent = words;
    setTimeout(() => button.replaceChildren(...shown), COPIED_MS);
  };
  const copy = () =>
    navigator.clipboard.writeText(textOf()).then(
      () => say('Copied'),
      () => say('Not allowed'),
    );
  const button = makeButton('Copy', copy, className);
  return [button];
}

/** @param {number} value @returns {string} its digits in groups */
export const formatNumber = (value) => value.toLocaleString('en');

/** @param {number} bytes @param {number} [digits] after the point, in megabytes */
export function formatBytes(bytes, digits = 1) {
  if (bytes < 1e6) return `${Math.round(bytes / 1e3)} kB`;
  return bytes < 1e9
    ? `${(bytes / 1e6).toFixed(digits)} MB`
    : `${(bytes / 1e9).toFixed(digits + 1)} GB`;
}

/** Formats bytes with the precision of an estimate. @param {number} bytes */
export const roundBytes = (bytes) => formatBytes(bytes, 0);

/** @param {string} text @param {string} [className] */
export const makeLine = (text, className = 'hint') => make('p', { className }, text);

/** @param {number} seconds */
export function formatDuration(seconds) {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = `${Math.floor(whole / 60)} min`;
  return whole % 60 === 0 ? minutes : `${minutes} ${whole % 60} s`;
}
