// examples/chat/book_rows.js — a book on the shelf: its description, and the actions that are available.

import { formatBytes, formatDuration, formatNumber, make, makeButton } from './dom.js';

/** @import { Book, Reading } from './book_store.js' */
/** @import { BookReading } from './book_reading.js' */
/** @typedef {Record<'read' | 'pause' | 'open' | 'remove' | 'save', (book: Book) => unknown>} Actions */
/**
 * `own` is the part that the current model has read, `others` the parts that other models have read.
 * @typedef {{own?: Reading, others: Reading[], reading?: BookReading,
 *   asked?: import('./book_shelf.js').Asked, model: string, actions: Actions}} Known
 */

/** For shorter times, the speed would depend more on the clock than on the model. */
const MEASURED_MS = 700;

/** @param {number} ms */
const timeOf = (ms) => (ms < 1000 ? 'less than a second' : formatDuration(ms / 1000));

/** @param {import('./book_reading.js').Progress} progress */
function progressInWords({ done, total, begun, ms, msBefore }) {
  if (total === 0) return 'Starting';
  const words = `Reading ${formatNumber(done)} of ${formatNumber(total)} tokens`;
  const spent = ms - msBefore;
  if (spent < MEASURED_MS || done <= begun || done >= total) return words;
  return `${words}, about ${formatDuration((((total - done) / (done - begun)) * spent) / 1000)} left`;
}

/** @param {Book} book @param {Known} known @returns {string} */
function facts(book, { own, others, reading, model }) {
  const progress = reading?.progress;
  if (progress?.state === 'reading') return progressInWords(progress);
  const problem = progress?.problem ? ` ${progress.problem}` : '';
  if (own && own.tokens < own.total)
    return `${formatNumber(own.tokens)} of ${formatNumber(own.total)} tokens read, ${formatBytes(own.size)}.${problem}`;
  if (own) {
    const saved = book.opened > 0 ? `${timeOf(book.savedMs)} saved` : `read in ${timeOf(own.ms)}`;
    return `${formatNumber(own.total)} tokens, ${formatBytes(own.size)}, ${saved}.${problem}`;
  }
  if (problem) return problem.trim();
  const whom = [...new Set(others.map((one) => one.model))].join(', ');
  if (whom) return `Read for ${whom}. For ${model || 'another model'} it must be read again.`;
  return `${formatNumber(book.letters)} characters, not read yet.`;
}

/** @param {Book} book @param {Known} known @returns {Record<string, () => unknown>} */
function choices(book, { own, reading, asked, actions }) {
  if (asked) return asked.choices;
  const state = reading?.progress.state;
  if (state === 'reading') return { Pause: () => actions.pause(book) };
  const isRead = own && own.tokens === own.total;
  const first = isRead ? 'Ask' : own || state === 'failed' ? 'Continue' : 'Read';
  return {
    [first]: () => (isRead ? actions.open(book) : actions.read(book)),
    Export: () => actions.save(book),
    Delete: () => actions.remove(book),
  };
}

/** @param {Book} book @param {Known} known @returns {HTMLElement} */
export function rowOf(book, known) {
  const name = make('span', { className: 'name', dir: 'auto' }, book.title);
  const item = make('li', {}, name, make('small', {}, known.asked?.text ?? facts(book, known)));
  item.dataset.id = book.id;
  for (const [label, action] of Object.entries(choices(book, known))) {
    const button = makeButton(label, action);
    button.setAttribute('aria-label', `${label}: ${book.title}`);
    item.append(button);
  }
  const progress = known.reading?.progress;
  if (progress?.state === 'reading') {
    const { done: value, total } = progress;
    const ariaLabel = `Reading ${book.title}`;
    item.append(make('progress', { max: Math.max(1, total), value, ariaLabel }));
  }
  return item;
}
