// examples/docs/search_options.js — what of a section is searched, when the index is built and when the page asks it.

/** @type {import('minisearch').Options} */
export const searchOptions = {
  fields: ['title', 'page', 'text'],
  storeFields: ['title', 'page', 'url'],
  searchOptions: { boost: { title: 3, page: 2 }, prefix: true, fuzzy: 0.15, combineWith: 'AND' },
};
