// examples/models/words.js — `wick-llm-demo-model/words.js`: constrains the model's answers to
// known words: those in its training text and in the conversation. An answer is shown sentence by
// sentence, after its words have been looked up. At an invented word, the answer is generated again
// with a grammar that has only known words. The new answer is used if it corrects a copied word;
// otherwise it only replaced the invented word with some known word, and a refusal is more honest.

/** @typedef {import('wick-llm').Engine} Engine */
/** @typedef {import('wick-llm').ChatCompletionRequest} Body */
/**
 * @typedef {import('wick-llm').ChatCompletionChunk & {held?: 'again' | 'refused'}} Chunk `held`:
 * how an invented word was kept out of the answer
 */
/** The words with their normal spelling, by their lower-case form. @typedef {ReadonlyMap<string, string>} Words */
/** The words in the conversation, in lower case. @typedef {ReadonlySet<string>} SaidWords */

/** The URL of the word list of the training text. */
export const wordsUrl = new URL('./wick-4.2m-words.txt', import.meta.url);

const LETTER = String.raw`[\p{Alphabetic}\p{M}]`;
const WORD = new RegExp(`${LETTER}+(?:['’]${LETTER}+)?`, 'gu');
const FIRST_WORD = new RegExp(`^(?:${LETTER}|['’])*`, 'u');
/** U+FFFD is included, because half of a character may be a part of a letter. */
const OF_WORD = new RegExp(`${LETTER}|['’]|[\\ud800-\\udfff]`, 'u');
const SENTENCE_END = /[.!?]["”’)*_`]*(?=\s)/gu;
/** The text after the last space: a sentence may end there. */
const LAST_RUN = /(?<!\S)\S+$/u;
/** Matches a word twice in a row, which a constrained answer may contain if no other word fits. */
const TWICE = new RegExp(`(?<!${LETTER})(${LETTER}+) \\1(?!${LETTER})`, 'iu');
const LINES_MAX = 20000;
const LETTERS_MAX = 40;
/** The maximum length of text generated with the grammar. */
const TOKENS_MAX = 512;

/** @param {string} word @returns {string} the form used for lookups */
const plain = (word) => word.normalize('NFC').replace('’', "'").toLowerCase();

/** @param {string} text @returns {string[]} */
const wordsIn = (text) => text.match(WORD) ?? [];

/**
 * @param {string} text of the file: the number of words, then one word per line
 * @returns {Words}
 * @throws {TypeError} if it is not a word list, or is incomplete
 */
export function readWords(text) {
  const [count, ...words] = text
    .slice(0, LINES_MAX * LETTERS_MAX)
    .trimEnd()
    .split(/\r?\n/);
  const isWord = (/** @type {string} */ one) =>
    one.length <= LETTERS_MAX && one.match(WORD)?.[0] === one;
  if (words.length === 0 || count !== `${words.length} words` || !words.every(isWord))
    throw new TypeError('words: not a complete word list');
  return new Map(words.map((one) => [plain(one), one]));
}

/** @param {string} word @param {Words} known @param {SaidWords} said */
function isKnown(word, known, said) {
  const one = plain(word);
  const owner = one.replace(/'s$/, '');
  return (
    [one, owner].some((form) => known.has(form) || said.has(form)) ||
    said.has(one.replace(/s$/, ''))
  );
}

/**
 * @param {string} text
 * @param {Words} known
 * @param {SaidWords} said
 * @returns {{word: string, at: number} | undefined} the first invented word of a text
 */
function firstInvented(text, known, said) {
  for (const { 0: word, index } of text.matchAll(WORD))
    if (!isKnown(word, known, said)) return { word, at: index };
  return undefined;
}

/**
 * @param {string} word
 * @returns {string[]} the word unchanged, in lower case, capitalized, and in capitals
 */
const formsOf = (word) => {
  const small = word.toLowerCase();
  const [first = ''] = small;
  return [word, small, first.toUpperCase() + small.slice(first.length), word.toUpperCase()];
};

/** Common punctuation, in addition to that in the text and the conversation. The ranges contain no letters or lookalikes. */
const MARKS = String.raw`\x00-&(-@[-${'`'}{-\x7f\xa0-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7\u2010-\u2018\u201a-\u206f\u20a0-\u20bf\u2190-\u23ff\u2600-\u27bf\ufe0f\U0001F300-\U0001FAFF`;

/**
 * A trie: children by the next letter; '' marks the end of a word.
 * @typedef {Map<string, Tree>} Tree
 */

/**
 * @param {Tree} tree
 * @returns {string} its GBNF, in which words share common prefixes, because many alternatives are
 * slow
 */
function alternatives(tree) {
  const all = Array.from(tree, ([letter, rest]) => {
    if (letter === '') return '""';
    let text = letter;
    let at = rest;
    while (at.size === 1 && !at.has('')) {
      const [[next, after]] = at;
      text += next;
      at = after;
    }
    return at.size === 1 ? `"${text}"` : `"${text}" ${alternatives(at)}`;
  });
  return `(${all.join(' | ')})`;
}

/** @param {Iterable<string>} words @returns {Tree} */
function treeOf(words) {
  /** @type {Tree} */
  const tree = new Map();
  for (const word of words) {
    let at = tree;
    for (const letter of [...word, '']) {
      const next = at.get(letter) ?? new Map();
      at.set(letter, next);
      at = next;
    }
  }
  return tree;
}

/**
 * @param {Iterable<string>} words words longer than LETTERS_MAX letters are left out
 * @returns {string} a GBNF grammar that allows these words in their normal forms, with any digits
 * and punctuation between them
 */
export function wordGrammar(words) {
  const short = Array.from(words).filter((word) => word.length <= LETTERS_MAX);
  return [
    'root ::= gap* (word after)* (word quote?)?',
    'after ::= mark gap* | quote gap+',
    'gap ::= mark | quote',
    "quote ::= ['’]",
    `mark ::= [${MARKS}]`,
    `word ::= ${alternatives(treeOf(short.flatMap(formsOf)))}`,
  ].join('\n');
}

/**
 * @param {Body['messages'][0]} message
 * @returns {string} the text as the model reads it: its parts, concatenated
 */
const textOf = ({ content }) =>
  Array.isArray(content)
    ? content.map((part) => ('text' in part ? part.text : '')).join('')
    : (content ?? '');

/**
 * @param {string} begun the beginning of the answer
 * @returns {string} the refusal, in the same form as the answer that it replaces
 */
function refusalFor(begun) {
  const refusal = 'I do not know that.';
  if (/^\s*(?:\{|\[(?!\p{L}))/u.test(begun)) return `{"answer": "${refusal}"}`;
  const isLoud = begun.length > 1 && begun === begun.toUpperCase() && begun !== begun.toLowerCase();
  return isLoud ? refusal.toUpperCase() : refusal;
}

/** @param {string} text @returns {number} the offset of the last word, which may be incomplete */
function beforeLastWord(text) {
  let at = text.length;
  while (at > 0 && OF_WORD.test(text[at - 1])) at--;
  return at;
}

/** An answer: the part that has been shown, and the part that waits for the end of its sentence. */
class Answer {
  shown = '';
  waiting = '';
  isWrong = false;
  #known;
  #said;
  #prefix;
  #isCode = false;
  /** The length of the waiting text that has been looked up, up to a space. */
  #seen = 0;
  #pieces = 0;
  /** The number of shown pieces, which is nearly the number of its tokens. */
  shownPieces = 0;

  /** @param {Body['messages']} messages @param {Words} known */
  constructor(messages, known) {
    const last = messages.at(-1);
    this.#known = known;
    this.#said = new Set(wordsIn(messages.map(textOf).join('\n')).map(plain));
    this.#prefix = last?.role === 'assistant' && last.prefix ? textOf(last) : '';
  }

  /** The length of the waiting text without a last word that could become longer. */
  get #whole() {
    return beforeLastWord(this.waiting);
  }

  /** The length of the part that completes a word begun by the user. */
  get #free() {
    const isBegun = this.shown === '' && beforeLastWord(this.#prefix) < this.#prefix.length;
    return isBegun ? (this.waiting.match(FIRST_WORD)?.[0].length ?? 0) : 0;
  }

  /**
   * @param {string} piece
   * @param {boolean} isEnd whether nothing follows
   * @returns {string} the text that can be shown now
   */
  take(piece, isEnd = false) {
    this.waiting += piece;
    this.#pieces++;
    const whole = isEnd ? this.waiting.length : this.#whole;
    const from = Math.max(Math.min(whole, this.#free), this.#seen);
    const checked = this.waiting.slice(from, whole);
    this.#isCode ||= checked.includes('```');
    this.isWrong = !this.#isCode && firstInvented(checked, this.#known, this.#said) !== undefined;
    if (this.isWrong) return '';
    this.#seen = from + checked.length - (checked.match(LAST_RUN)?.[0].length ?? 0);
    const last = [...checked.matchAll(SENTENCE_END)].at(-1);
    const end = last ? from + last.index + last[0].length : 0;
    return this.#show(isEnd || this.#isCode ? this.waiting.length : end);
  }

  /** @returns {string} the waiting text without an unfinished word */
  rest() {
    return this.isWrong ? '' : this.#show(this.#whole);
  }

  /** @returns {string} the waiting text of an answer that was cut off; its last word may be incomplete */
  cut() {
    const begun = plain(this.waiting.slice(Math.max(this.#free, this.#whole)));
    this.isWrong = ![...this.#known.keys(), ...this.#said].some((word) => word.startsWith(begun));
    return this.isWrong ? '' : this.#show(this.waiting.length);
  }

  /** @param {number} length of the waiting text to show */
  #show(length) {
    const piece = this.waiting.slice(0, length);
    if (piece !== '') this.shownPieces = this.#pieces;
    this.shown += piece;
    this.waiting = this.waiting.slice(length);
    this.#seen = Math.max(0, this.#seen - length);
    return piece;
  }

  /** The part of the answer that was kept. */
  get kept() {
    return this.#prefix + this.shown;
  }

  /** @returns {string} */
  grammar() {
    return wordGrammar([...this.#known.values(), ...this.#said, ...wordsIn(this.kept)]);
  }

  /** Returns whether the answer that the grammar produced is better than a refusal. @param {string} text */
  isBetter(text) {
    if (firstInvented(text, this.#known, this.#said) || TWICE.test(text)) return false;
    const isWithin = /\S$/.test(this.kept) && !/[.!?]["”’)*_`]*$/u.test(this.kept);
    if (isWithin || /\bonce\b/i.test(this.kept) || /\bdo not know\b/i.test(text)) return true;
    const before = wordsIn(this.waiting);
    const other = [...text.matchAll(WORD)].find(([word], index) => word !== before[index]);
    const word = plain(other?.[0] ?? '');
    const line = text.slice(0, other?.index).split('\n').at(-1) ?? '';
    return (
      this.#said.has(word) && !this.#known.has(word) && !wordsIn(line).map(plain).includes(word)
    );
  }

  /** @returns {string} */
  refusal() {
    return `${/\S$/.test(this.kept) ? ' ' : ''}${refusalFor(this.waiting)}`;
  }
}

/** @typedef {(body: Body & {stream?: false}) => Promise<import('wick-llm').ChatCompletion>} Ask */

/**
 * @param {Answer} answer with an invented word
 * @param {Body} body the request
 * @param {Ask} ask
 * @returns {Promise<{text: string, finish_reason: string, timings?: unknown, held: Chunk['held'],
 * usage?: Chunk['usage']}>} how it continues; `usage`: of the repeated requests
 */
async function goOn(answer, body, ask) {
  const {
    messages,
    n: _n,
    stream: _stream,
    stream_options: _options,
    session: _session,
    ...rest
  } = body;
  const said = messages.at(-1)?.prefix ? messages.slice(0, -1) : messages;
  const begun = { role: 'assistant', content: answer.kept, prefix: true };
  /** @type {Chunk['usage']} */
  let used;
  const left = (rest.max_tokens ?? Infinity) - answer.shownPieces;
  try {
    const { choices, timings, usage } = await ask({
      ...rest,
      messages: answer.kept === '' ? said : [...said, begun],
      grammar: answer.grammar(),
      max_tokens: Math.max(1, Math.min(left, TOKENS_MAX)),
    });
    used = usage;
    const [{ message, finish_reason }] = choices;
    if (answer.isBetter(message.content))
      return { text: message.content, finish_reason, timings, held: 'again', usage };
  } catch (error) {
    if (/** @type {Error} */ (error).name === 'AbortError') throw error;
  }
  return { text: answer.refusal(), finish_reason: 'stop', held: 'refused', usage: used };
}

/** @param {Answer} answer @param {Chunk['choices'][0]} choice @returns {Chunk['choices']} the part that can be shown */
function passOn(answer, { delta, finish_reason, ...choice }) {
  if (answer.isWrong) return [];
  let content = answer.take(delta.content ?? '', finish_reason === 'stop');
  if (answer.isWrong) return [];
  if (finish_reason === 'length') content += answer.cut();
  if (answer.isWrong) return [];
  return [{ ...choice, delta: { ...delta, content }, finish_reason }];
}

/**
 * @param {AsyncIterable<Chunk>} chunks a streamed chat completion
 * @param {Body} body the request
 * @param {Words} known the model's words
 * @param {Ask} ask sends a request again, not streamed
 * @returns {AsyncGenerator<Chunk>} the same chunks, in whole sentences with only known words
 */
export async function* held(chunks, body, known, ask) {
  const answers = Array.from({ length: body.n ?? 1 }, () => new Answer(body.messages, known));
  /** @type {Chunk | undefined} */
  let last;
  /** @type {Chunk['usage']} */
  let used;
  let isCounted = false;
  try {
    for await (const chunk of chunks) {
      last = chunk;
      isCounted ||= Boolean(chunk.usage);
      const choices = chunk.choices.flatMap((one) => passOn(answers[one.index], one));
      if (choices.length > 0 || chunk.usage) yield { ...chunk, choices };
      if (answers.every(({ isWrong }) => isWrong)) break;
    }
  } catch (error) {
    const left = answers.map((one, index) => ({
      index,
      delta: { content: one.rest() },
      finish_reason: null,
    }));
    if (last) yield/** @type {any} */ ({ ...last, choices: left });
    throw error;
  }
  for (const [index, answer] of answers.entries()) {
    if (!answer.isWrong) continue;
    const { text, finish_reason, usage, ...more } = await goOn(answer, body, ask);
    used ??= usage;
    const choice = { index, delta: { content: text }, logprobs: null, finish_reason };
    yield/** @type {any} */ ({
      ...last,
      usage: undefined,
      timings: undefined,
      choices: [choice],
      ...more,
    });
  }
  if (last && used && !isCounted && body.stream_options?.include_usage)
    yield { ...last, choices: [], usage: used };
}

/**
 * @param {Engine} engine with this model
 * @param {Body} body without a response format, grammar or its own tools
 * @param {Words} known the result of readWords
 * @returns {AsyncGenerator<Chunk>} the answer's pieces
 */
export async function* answerInKnownWords(engine, body, known) {
  const ask = (/** @type {Body & {stream?: false}} */ asked) =>
    engine.chat.completions.create(asked);
  yield* held(await engine.chat.completions.create({ ...body, stream: true }), body, known, ask);
}
