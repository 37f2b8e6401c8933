// examples/chat/pdfs.js — extracts the text of a PDF, page by page. The library (unpdf: PDF.js in one file) is loaded with the
// first PDF that is dropped on the page.

import { getDocumentProxy } from 'unpdf';

const PAGES_MAX = 2_000;
/** The maximum number of characters, the same as for text files. */
const LETTERS_MAX = 1e6;

/** An error with the reason why a PDF has no text: `ENCRYPTED`, `DAMAGED`, `NO_TEXT` or `TOO_LONG`. */
export class PdfError extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.name = 'PdfError';
    this.code = code;
  }
}

/** @param {any} item of a page: a piece of text, or a marker */
const wordsOf = ({ str = '', hasEOL }) => (hasEOL ? `${str}\n` : str);

/** @param {Uint8Array} bytes */
async function open(bytes) {
  try {
    return await getDocumentProxy(bytes, { verbosity: 0 });
  } catch (error) {
    if (/** @type {Error} */ (error).name === 'PasswordException')
      throw new PdfError('ENCRYPTED', 'it is encrypted: save a copy without a password');
    throw new PdfError('DAMAGED', 'it is damaged, or not a PDF');
  }
}

/** @param {any} pdf @param {(page: number, pages: number) => void} onPage @returns {Promise<string>} */
async function read(pdf, onPage) {
  const { numPages } = pdf;
  if (numPages > PAGES_MAX)
    throw new PdfError('TOO_LONG', `it has ${numPages} pages; the limit is ${PAGES_MAX}`);
  if (!(numPages > 0)) throw new PdfError('NO_TEXT', 'it has no pages');
  let text = '';
  for (let number = 1; number <= numPages; number++) {
    onPage(number, numPages);
    const page = await pdf.getPage(number);
    const { items } = await page.getTextContent();
    const own = items.map(wordsOf).join('').trim();
    if (own !== '') text += `[Page ${number}]\n${own}\n\n`;
    if (text.length > LETTERS_MAX)
      throw new PdfError('TOO_LONG', 'its text has more than a million characters');
  }
  if (text === '') throw new PdfError('NO_TEXT', 'it has no text: its pages are images');
  return text.trimEnd();
}

/**
 * @param {Uint8Array} bytes
 * @param {(page: number, pages: number) => void} [onPage] called for each page that is read
 * @returns {Promise<string>} the text, with the number of each page
 * @throws {PdfError}
 */
export async function textOfPdf(bytes, onPage = () => {}) {
  const pdf = await open(bytes);
  try {
    return await read(pdf, onPage);
  } catch (error) {
    if (error instanceof PdfError) throw error;
    throw new PdfError('DAMAGED', 'it is damaged');
  } finally {
    await pdf.cleanup().catch(() => {});
  }
}
