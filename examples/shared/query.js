// examples/shared/query.js — converts the text of a search box to a query for a word search.

/** Each word is compared with all indexed words. */
const WORDS_MAX = 32;
const LETTERS_MAX = 2000;

/** @param {string} text @returns {string} its first words, each once */
export const firstWords = (text) =>
  [...new Set(text.slice(0, LETTERS_MAX).trim().split(/\s+/))].slice(0, WORDS_MAX).join(' ');
