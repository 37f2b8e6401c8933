// examples/chat/pdfs.js — extracts the text of a PDF, page by page. The library (unpdf: PDF.js in one file) is loaded with the
// first PDF that is dropped on the page.

import { getDocumentProxy } from 'unpdf';

/** @typedef {{text: string} | {refusal: string}} Read `refusal` is the reason why a PDF has no text */

const PAGES_MAX = 2_000;
/** The maximum number of characters, the same as for text files. */
const LETTERS_MAX = 1e6;

/** @param {any} item of a page: a piece of text, or a marker */
const wordsOf = ({ str = '', hasEOL }) => (hasEOL ? `${str}\n` : str);

/** @param {any} pdf @param {(page: number, pages: number) => void} onPage @returns {Promise<Read>} */
async function read(pdf, onPage) {
  const { numPages } = pdf;
  if (numPages > PAGES_MAX)
    return { refusal: `it has ${numPages} pages; the limit is ${PAGES_MAX}` };
  if (!(numPages > 0)) return { refusal: 'it has no pages' };
  let text = '';
  for (let number = 1; number <= numPages; number++) {
    onPage(number, numPages);
    const page = await pdf.getPage(number);
    const { items } = await page.getTextContent();
    const own = items.map(wordsOf).join('').trim();
    if (own !== '') text += `[Page ${number}]\n${own}\n\n`;
    if (text.length > LETTERS_MAX)
      return { refusal: 'its text has more than a million characters' };
  }
  return text === ''
    ? { refusal: 'it has no text: its pages are images' }
    : { text: text.trimEnd() };
}

/**
 * @param {Uint8Array} bytes
 * @param {(page: number, pages: number) => void} [onPage] called for each page that is read; an AbortError ends the reading
 * @returns {Promise<Read>} the text, with the number of each page
 * @throws {DOMException} AbortError from onPage
 */
export async function textOfPdf(bytes, onPage = () => {}) {
  let pdf;
  try {
    pdf = await getDocumentProxy(bytes, { verbosity: 0 });
    return await read(pdf, onPage);
  } catch (error) {
    const { name } = /** @type {Error} */ (error);
    if (name === 'AbortError') throw error;
    if (name === 'PasswordException')
      return { refusal: 'it is encrypted: save a copy without a password' };
    return { refusal: pdf ? 'it is damaged' : 'it is damaged, or not a PDF' };
  } finally {
    await pdf?.cleanup().catch(() => {});
  }
}
