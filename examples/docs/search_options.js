// examples/docs/search_options.js — defines which parts of a section are searched and shown, and how words are compared, both
// when the index is built and when the page searches it.

/** Words in a question that are not about its subject. */
const stopWords = new Set(
  `a an and are as at be by can could do does for from get gets give gives happen happens has have how i if in into is it its many
  me most much my need needed needs of on one or our should so than that the their them there these they this to two up use used
  using want was we what when where which who why will with without would you your`.split(/\s+/),
);

/** @param {string} word in lower case @returns {string} the word without endings, so that "requests" finds "request", and "calling" "calls" */
const stemOf = (word) => word.replace(/(?<=...)(?:ing|ed|s)$/, '').replace(/(?<=...)e$/, '');

/** @type {import('minisearch').Options} */
export const searchOptions = {
  fields: ['title', 'page', 'text'],
  storeFields: ['title', 'page', 'url', 'excerpt', 'rank'],
  processTerm: (term) => {
    const word = term.toLowerCase();
    return stopWords.has(word) ? null : stemOf(word);
  },
  searchOptions: {
    boost: { title: 3, page: 2 },
    boostDocument: (_id, _term, stored) => Number(stored?.rank ?? 1),
    prefix: true,
    fuzzy: (term) => (term.length > 4 ? 0.15 : false),
    combineWith: 'OR',
  },
};
