// examples/docs/search_options.js — which parts of a section are searched and shown, when the index is built and when the page
// asks it.

/** @type {import('minisearch').Options} */
export const searchOptions = {
  fields: ['title', 'page', 'text'],
  storeFields: ['title', 'page', 'url', 'excerpt', 'rank'],
  searchOptions: {
    boost: { title: 3, page: 2 },
    boostDocument: (_id, _term, stored) => Number(stored?.rank ?? 1),
    prefix: true,
    fuzzy: 0.15,
    combineWith: 'AND',
  },
};
