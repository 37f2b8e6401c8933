// examples/chat/attaching.js — text files and PDFs that are dropped on the page or chosen: their text is put into the message,
// where it is visible, counted, stored as a draft and sent with the question. Images and recordings are attached to the
// message (attachments.js).

import { isMediaFile, loadMedia } from './attachments.js';
import { asBlock, textOf } from './blocks.js';
import { addBooks } from './book.js';
import { byId } from './dom.js';
import { writePrompt } from './drafts.js';
import { beginsWith } from './file_type.js';
import { hideNotice, showNotice } from './notice.js';
import { offerBooks } from './pasting.js';

const field = /** @type {HTMLTextAreaElement} */ (byId('prompt'));

const PDF_BYTES_MAX = 100e6;
/** A longer text should become a book, which is read only once. */
const BOOK_LETTERS_MIN = 6000;

/** The progress of slow files is reported at this interval. */
const REPORT_MS = 1000;

/**
 * Reports how far a slow file has been read.
 * @param {string} name
 * @param {(words: string) => void} say
 */
export function makeTeller(name, say) {
  let reportedAt = performance.now();
  let wasTold = false;
  return {
    onPage: (/** @type {number} */ page, /** @type {number} */ pages) => {
      if (performance.now() - reportedAt < REPORT_MS) return;
      reportedAt = performance.now();
      wasTold = true;
      say(`${name}: reading page ${page} of ${pages}`);
    },
    /** Clears an outdated report. */
    done: () => wasTold && say(''),
  };
}

/**
 * @param {File} file
 * @param {(page: number, pages: number) => void} [onPage] called for each page of a PDF
 * @returns {Promise<{text: string} | {refusal: string}>}
 */
export async function readText(file, onPage) {
  if (await beginsWith(file, '%PDF-')) {
    if (file.size > PDF_BYTES_MAX) return { refusal: 'the PDF is larger than 100 MB' };
    const library = await import('./pdfs.js').catch(() => undefined);
    if (!library) return { refusal: 'the PDF reader could not be loaded' };
    const bytes = new Uint8Array(await file.arrayBuffer());
    return library.textOfPdf(bytes, onPage).then(
      (text) => ({ text }),
      (error) => ({ refusal: error.message }),
    );
  }
  const text = await textOf(file);
  return text === undefined
    ? { refusal: 'not a model, a PDF, an image, a recording or a text file of at most 1 MB' }
    : { text };
}

/** @param {File[]} files of images and recordings */
async function attachMedia(files) {
  const library = await loadMedia().catch(() => undefined);
  if (library) await library.attachFiles(files);
  else showNotice('Image support could not be loaded. Check the network connection.');
}

/** @param {File[]} files */
export async function attach(files) {
  /** @type {string[]} */
  const refused = [];
  const blocks = [];
  /** @type {File[]} */
  const books = [];
  /** @type {File[]} */
  const media = [];
  for (const file of files) {
    if (isMediaFile(file)) {
      media.push(file);
      continue;
    }
    if (await beginsWith(file, 'WICKBOOK')) {
      addBooks([file]);
      continue;
    }
    const teller = makeTeller(file.name, (words) => (words ? showNotice(words) : hideNotice()));
    const found = await readText(file, teller.onPage);
    teller.done();
    if ('text' in found) blocks.push(asBlock(file.name, found.text));
    else refused.push(`${file.name}: ${found.refusal}.`);
    if ('text' in found && found.text.length > BOOK_LETTERS_MIN) books.push(file);
  }
  if (media.length > 0) await attachMedia(media);
  if (refused.length > 0) showNotice(refused.join(' '));
  else if (books.length > 0) offerBooks(books);
  if (blocks.length === 0) return;
  const before = field.value; // including text that was typed in the meantime
  writePrompt(`${before.trimEnd()}\n\n${blocks.join('\n\n')}`);
  field.setSelectionRange(before.trimEnd().length, before.trimEnd().length);
  field.scrollTop = 0;
}
