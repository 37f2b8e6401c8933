// examples/notes/embedders.js — embedders that the page offers, and the prefixes they expect for questions and passages.

/** @typedef {{passage: string, query: string}} Prefixes */

const hub = 'https://huggingface.co';

/** `bytes` is the approximate file size. */
export const embedders = [
  {
    name: 'BGE small, Q8_0',
    note: '37 MB: English, fast',
    url: `${hub}/CompendiumLabs/bge-small-en-v1.5-gguf/resolve/main/bge-small-en-v1.5-q8_0.gguf`,
  },
  {
    name: 'Nomic Embed v1.5, Q8_0',
    note: '146 MB: English, better',
    url: `${hub}/nomic-ai/nomic-embed-text-v1.5-GGUF/resolve/main/nomic-embed-text-v1.5.Q8_0.gguf`,
  },
  {
    name: 'EmbeddingGemma 300M, Q8_0',
    note: '329 MB: more than 100 languages',
    url: `${hub}/ggml-org/embeddinggemma-300M-GGUF/resolve/main/embeddinggemma-300M-Q8_0.gguf`,
  },
  {
    name: 'Qwen3 Embedding 0.6B, Q8_0',
    note: '639 MB: more than 100 languages, slow without many cores',
    url: `${hub}/Qwen/Qwen3-Embedding-0.6B-GGUF/resolve/main/Qwen3-Embedding-0.6B-Q8_0.gguf`,
  },
];

/** Prefixes by a part of the model's name, as described by its authors. @type {[RegExp, Prefixes][]} */
const prefixes = [
  [/nomic.?embed/i, { passage: 'search_document: ', query: 'search_query: ' }],
  [/\be5\b|multilingual.?e5/i, { passage: 'passage: ', query: 'query: ' }],
  [
    /bge.*(small|base|large).*en/i,
    { passage: '', query: 'Represent this sentence for searching relevant passages: ' },
  ],
  [
    /embedding.?gemma/i,
    { passage: 'title: none | text: ', query: 'task: search result | query: ' },
  ],
  [
    /qwen3.?embedding/i,
    {
      passage: '',
      query:
        'Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:',
    },
  ],
  [
    /arctic.?embed/i,
    { passage: '', query: 'Represent this sentence for searching relevant passages: ' },
  ],
];

/** @param {string} name of the file and of the model @returns {Prefixes} */
export const prefixesOf = (name) =>
  prefixes.find(([pattern]) => pattern.test(name))?.[1] ?? { passage: '', query: '' };

const POOLING_RANK = 4;

/**
 * @param {import('wick-llm').Engine} engine
 * @returns {Promise<{isEmbedder: boolean}>} rejects if the model cannot compute vectors
 */
export async function examineEmbedder(engine) {
  const { metadata } = await engine.inspect();
  const pooling = /** @type {any} */ (metadata.find(({ key }) => key.endsWith('.pooling_type')))
    ?.value;
  if (Number(pooling) === POOLING_RANK)
    throw new Error('this model ranks texts. Choose an embedder');
  const { architecture } = await engine.info();
  const isEncoder = /bert|t5encoder|embedding/.test(architecture ?? '');
  return { isEmbedder: isEncoder || pooling !== undefined };
}
