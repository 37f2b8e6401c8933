// examples/chat/announcer.js — announces an answer to screen readers while it is generated: politely, in complete sentences, and
// not more often than a listener can follow.

import { byId } from './dom.js';

const PAUSE_MS = 1000;
/** The number of sentences to keep; older ones have already been announced. */
const LINES_MAX = 8;
/** Matches text up to the end of its last sentence. */
const SENTENCES = /^[\s\S]*(?:[.!?…:]["”')\]]*\s|[\n。！？])/u;

const announcer = byId('announcer');

/** @param {string} text the text that has not been announced yet */
function say(text) {
  if (text.trim() === '') return;
  announcer.append(`${text.replace(/[*_`#|]+/g, ' ').trim()} `);
  while (announcer.childNodes.length > LINES_MAX) announcer.firstChild?.remove();
}

/** Announces one answer. */
export class Voice {
  #text = '';
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  constructor() {
    announcer.textContent = 'The model answers:'; // replaces everything that was announced before
  }

  /** @param {string} piece */
  add(piece) {
    this.#text += piece;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const [sentences = ''] = SENTENCES.exec(this.#text) ?? [];
      this.#text = this.#text.slice(sentences.length);
      say(sentences);
    }, PAUSE_MS);
  }

  /** @param {boolean} isWhole */
  end(isWhole) {
    clearTimeout(this.#timer);
    say(this.#text);
    say(isWhole ? 'End of the answer.' : 'The answer stopped.');
  }
}
