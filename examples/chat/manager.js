// examples/chat/manager.js — the stored models in the model dialog: their names and sizes, and whether
// they are undamaged; downloads, which can be paused; and the total storage that is used.

import {
  byId,
  formatBytes,
  formatDuration,
  make,
  makeButton,
  makeSureButton,
  showRows,
} from './dom.js';
import { download, giveUp, listDownloads, onDownload, pause } from './downloads.js';
import { isAppleTouch, isSafari } from './host.js';
import { hubNameOf } from './hub.js';
import { keptModels, listKept, problemOfKept, storeNameOf } from './kept_models.js';
import { choose, sentence } from './loader.js';

/** @import { ModelEntry } from 'wick-llm/models' */
/** @import { Download } from './downloads.js' */

const dialog = /** @type {HTMLDialogElement} */ (byId('model-dialog'));
/** The last message about a model, by its id. @type {Map<string, string>} */
const said = new Map();

/** @param {ModelEntry} entry */
const urlOf = ({ urls }) => urls.find((one) => /^https?:/.test(one));

/** @param {ModelEntry} entry */
function use(entry) {
  const url = urlOf(entry);
  dialog.close();
  choose({ name: entry.name, ...(url ? { url } : { kept: entry.fingerprint ?? '' }) });
}

/** @param {Download} one */
function wordsOf({ progress: { received, total }, bytesPerSecond, isPaused, isWaiting, error }) {
  const share = total ? `${formatBytes(received)} of ${formatBytes(total)}` : formatBytes(received);
  if (error) return `${share} · interrupted: ${/** @type {Error} */ (error).message}`;
  if (isPaused) return `${share} · paused`;
  if (isWaiting) return `${share} · waiting for the network`;
  const left = total && bytesPerSecond > 0 ? (total - received) / bytesPerSecond : undefined;
  const speed = bytesPerSecond > 0 ? ` · ${formatBytes(bytesPerSecond)}/s` : '';
  return `${share}${speed}${left === undefined ? '' : ` · ${formatDuration(left)} left`}`;
}

/** @param {string} id @param {string} name @param {string} facts @param {HTMLElement[]} controls */
function makeItem(id, name, facts, controls) {
  for (const control of controls) control.ariaLabel = `${control.textContent}: ${name}`;
  const title = make('span', { className: 'name' }, name);
  const item = make('li', {}, title, make('small', {}, facts), ...controls);
  item.dataset.id = id;
  return item;
}

/** @param {Download} one @param {ModelEntry | undefined} entry the entry of its stored part */
function itemOfDownload(one, entry) {
  if (entry && one.progress.loaded < entry.storedBytes) {
    const { storedBytes: loaded, size: total } = entry;
    one.progress = { loaded, received: loaded, total };
  }
  const { url, name } = one;
  const toggle = one.isPaused
    ? makeButton('Resume', () => download({ url, name }).catch(() => {}))
    : makeButton('Pause', () => pause(url));
  const item = makeItem(url, name, wordsOf(one), [toggle, deleteButton(url)]);
  const bar = make('progress', { max: 1, ariaLabel: `Downloaded part of ${name}` });
  if (one.progress.total) bar.value = one.progress.received / one.progress.total;
  item.append(bar);
  return item;
}

/** @param {string} key */
function deleteButton(key) {
  return makeSureButton('Delete', async () => {
    await giveUp(key);
    await (await keptModels())?.delete(await storeNameOf(key)).catch(() => {});
    refresh();
  });
}

/** @param {ModelEntry} entry */
function itemOf(entry) {
  const { id, name, isWhole, size, storedBytes } = entry;
  const url = urlOf(entry);
  const facts = isWhole
    ? formatBytes(storedBytes)
    : `${formatBytes(storedBytes)} of ${size ? formatBytes(size) : 'an unknown size'}`;
  const controls = [deleteButton(id)];
  if (isWhole) {
    controls.unshift(makeButton('Verify', () => verify(entry)));
    // encoders are used with their model
    if (!/mmproj/i.test(name)) controls.unshift(makeButton('Use', () => use(entry)));
  } else if (url) {
    controls.unshift(makeButton('Resume', () => download({ url, name }).catch(() => {})));
  }
  const words = said.get(id);
  return makeItem(id, name, words ? `${facts} · ${words}` : facts, controls);
}

/** @param {ModelEntry} entry */
async function verify({ id }) {
  said.set(id, 'being read');
  refresh();
  try {
    const found = await (await keptModels())?.verify(id);
    const count = found?.damagedChunks.length ?? 0;
    said.set(
      id,
      count === 0
        ? 'undamaged'
        : `${count} damaged ${count === 1 ? 'part' : 'parts'}: Resume downloads them again`,
    );
  } catch (error) {
    said.set(id, `it could not be read: ${/** @type {Error} */ (error).message}`);
  }
  refresh();
}

/** Describes the risk for data that a browser does not promise to keep. */
const unkeptInWords = () =>
  isAppleTouch() || isSafari()
    ? 'Safari deletes them after 7 days without a visit, unless the page is on the home screen.'
    : 'The browser may delete them when its disk is nearly full.';

async function roomInWords() {
  const store = await keptModels();
  if (!store) {
    const why = sentence(problemOfKept());
    return `This browser cannot save models: each visit downloads them again. ${why}`;
  }
  const { usedBytes, freeBytes, isPersisted } = await store.estimate();
  const free = freeBytes === undefined ? '' : `, ${formatBytes(freeBytes)} free`;
  const until = isPersisted ? 'The browser keeps them until you delete them.' : unkeptInWords();
  return usedBytes === 0 ? `None yet${free}.` : `${formatBytes(usedBytes)} in all${free}. ${until}`;
}

let round = 0;

export async function refresh() {
  const own = ++round;
  const [entries, room] = await Promise.all([listKept(), roomInWords().catch(() => '')]);
  if (own !== round) return; // a newer drawing has begun
  const underWay = listDownloads();
  const isOf =
    (/** @type {Download} */ { url }) =>
    (/** @type {ModelEntry} */ { urls }) =>
      urls.includes(url) || urls.includes(hubNameOf(url) ?? '');
  const others = entries.filter((entry) => !underWay.some((one) => isOf(one)(entry)));
  showRows(byId('kept-models'), [
    ...underWay.map((one) => itemOfDownload(one, entries.find(isOf(one)))),
    ...others.map(itemOf),
  ]);
  byId('kept-room').textContent = room;
}

/**
 * Redraws only the line of a download, because downloads report each chunk.
 * @param {Download} one
 */
function redraw(one) {
  if (!dialog.open) return;
  const line = /** @type {HTMLElement | null} */ (
    byId('kept-models').querySelector(`[data-id="${CSS.escape(one.url)}"]`)
  );
  const isUnderWay = listDownloads().includes(one) && !one.isPaused;
  const note = line?.querySelector('small');
  const bar = line?.querySelector('progress');
  if (!isUnderWay || !note || !bar || line?.textContent?.includes('Resume')) return void refresh();
  note.textContent = wordsOf(one);
  if (one.progress.total) bar.value = one.progress.received / one.progress.total;
}

export async function startManager() {
  onDownload(redraw);
  const store = await keptModels();
  for (const type of /** @type {const} */ (['kept', 'removed', 'damaged'])) {
    store?.addEventListener(type, () => dialog.open && refresh());
  }
}
