// Rules of plain English that a program can check: words to replace, subjects that may not begin a
// sentence, and the format of errors and of --help. check_text.mjs enforces them;
// --counts shows the number of violations of each.

/**
 * Patterns of words, each with its replacement.
 * @type {{name: string, pattern: RegExp, instead: string}[]}
 */
export const wordRules = [
  {
    name: 'is no',
    pattern:
      /(?<!\bthere )\b(?:is|are|was|were) no\b(?! (?:longer|more|less|fewer|different|better|worse|one|need)\b)/i,
    instead: 'is not a',
  },
  {
    name: 'behind',
    pattern:
      /(?<!look-)\bbehind\b(?! (?:HAProxy|(?:a|the) (?:proxy|flag|reverse proxy|CDN|load balancer)))/i,
    instead: 'after',
  },
  { name: 'told', pattern: /\b(?:told|tells? of)\b/i, instead: 'reported, logged, shown' },
  { name: 'so many', pattern: /\bso many\b/i, instead: 'a number with its unit' },
  { name: 'the like', pattern: /\b(?:and|or) the like\b/i, instead: 'similar' },
  {
    name: 'goes on',
    pattern: /\b(?:go|goes|going|gone|went) on\b/i,
    instead: 'continues, resumes',
  },
  {
    name: 'anew',
    pattern: /\banew\b|\bagain from (?:its|the) beginning\b/i,
    instead: 'again, from scratch',
  },
  {
    name: 'apart',
    pattern:
      /(?<!(?:bytes|columns|dims|elements|floats|lines|rows|tokens|stride|STRIP|code) )\bapart\b(?! from\b)/i,
    instead: 'separate',
  },
  { name: 'beside', pattern: /\bbesides?\b/i, instead: 'next to, in addition to' },
  {
    name: 'of its own',
    pattern: /\bof (?:its|their|your) own\b(?! [a-z]+(?:s|ing)\b)/i,
    instead: 'separate, dedicated',
  },
  {
    name: 'stands, lies, hangs',
    pattern:
      /\b(?:(?:stands|lies)(?! for\b)|(?:stand|lie) (?:in|on|at|within|between|side|with|elsewhere)|hangs (?:on|from|off))\b/i,
    instead: 'is, is stored',
  },
  { name: 'by itself', pattern: /\bby (?:itself|themselves)\b/i, instead: 'automatically' },
  {
    name: 'wants, wishes',
    pattern: /\b(?:wants|wishes)\b|\b(?<!(?:you|users?|not) )(?<!\bfor )want\b/i,
    instead: 'needs, requires',
  },
  {
    name: 'asks for',
    pattern: /\b(?:asks?|asking) for\b(?! permission\b)/i,
    instead: 'requests, requires',
  },
  {
    name: 'gives back',
    pattern: /\b(?:gives?|given|gave|giving)(?! way)(?: \w+){0,3} back\b/i,
    instead: 'returns, frees',
  },
  { name: 'held to', pattern: /\bheld to\b/i, instead: 'constrained to' },
  { name: 'in turns', pattern: /\bin turns\b/i, instead: 'alternately' },
  { name: 'Where', pattern: /(?:^|[.!?] )Where [^.!?:,]*,/, instead: 'If' },
  {
    name: 'what is left',
    pattern: /\bwhat is left\b(?! out\b)/i,
    instead: 'the rest, the remainder',
  },
  { name: 'taken up', pattern: /\btaken up again\b/i, instead: 'resumed' },
  {
    name: 'in earnest',
    pattern: /\bin earnest\b|\btime and again\b/i,
    instead: 'real, repeatedly',
  },
  { name: 'likewise', pattern: /\blikewise\b/i, instead: 'also' },
  {
    name: 'that is none',
    pattern: /\b(?:that|which|it|they) (?:is|are|was|were) none\b/i,
    instead: 'invalid, unknown, is not a',
  },
  {
    name: 'nothing of',
    pattern:
      /\bnothing of (?:a|an|the|its?|them|this|that|their|another|other|what|any|our|your)\b/i,
    instead: 'no part of, no …',
  },
  {
    name: 'what is said',
    pattern: /\b(?:what|disk|room|reason) is said\b/i,
    instead: 'the message, is reported',
  },
  {
    name: 'what comes',
    pattern: /\bwhat (?:goes|went|stays|stayed|comes|came|there is)\b(?! wrong\b)/i,
    instead: 'the noun',
  },
  { name: 'but for', pattern: /\bbut for (?:its|the|what|one|plain)\b/i, instead: 'except for' },
  {
    name: 'in any company',
    pattern: /\bin any company\b/i,
    instead: 'next to other requests, in any batch',
  },
  {
    name: 'as it is',
    pattern: /\bas (?:it|they) (?:is|are|was|were)(?=[.,;:)]|$)/i,
    instead: 'unchanged',
  },
  {
    name: 'as X has it',
    pattern: /(?<!soon )\bas (?:the |a )?[\w.']+(?: [\w']+){0,2} (?:has|have) (?:it|them)\b/i,
    instead: 'as in X',
  },
  { name: 'to the bit', pattern: /\bto the bit\b/i, instead: 'bit-identical' },
  {
    name: 'becomes of',
    pattern: /\bbecomes? of (?:it|them|every\w*|requests|a|the)\b/i,
    instead: 'what happens to',
  },
  {
    name: 'has come',
    pattern:
      /\b(?:has|have|had) (?:not |already |just |now )?come\b(?! (?:back|from|to|first|as|by)\b)/i,
    instead: 'has arrived',
  },
  {
    name: 'another than',
    pattern: /\banother \w+ than\b/i,
    instead: 'a different one from, not the',
  },
  {
    name: 'in no',
    pattern: /\b(?:(?:is|are|lies?) in|takes? part in) no \w+\b/i,
    instead: 'is not in any',
  },
  {
    name: 'predicate first',
    pattern:
      /(?:^|[.!?:] )(?:Supported|New|Missing|Refused|Listed|Allowed|Needed) (?:are|is|were|was)\b/,
    instead: 'the subject first',
  },
  {
    name: 'in words',
    pattern: /\b(?:refused|said|reported|ends?|errors?|told) in words\b/i,
    instead: 'with a message',
  },
  {
    name: 'what is read',
    pattern:
      /(?<![:.] )(?<!^)\bwhat (?:is|was|were) (?:typed|kept|stored|read|held|saved|sampled|begun|drawn|listed|cached|wanted|asked|requested|needed)\b/,
    instead: 'the noun: the stored part, sampled tokens',
  },
  {
    name: 'comes',
    pattern:
      /\b(?:tokens|bytes|pieces|parts|chunks|messages|requests|events|jobs) (?:that )?(?:come|came)\b(?! (?:from|before|after|first|last|with|back)\b)|\bas (?:it|they) comes?\b/i,
    instead: 'arrives, is received',
  },
  {
    name: 'hears',
    pattern: /\bhears?\b(?! again\b)|\b(?:has|have|had) heard of\b/i,
    instead: 'is notified',
  },
  {
    name: 'one or the other',
    pattern: /\bthe one or the other\b/i,
    instead: 'one or the other, one of two',
  },
  { name: 'sum 1', pattern: /\bsum 1\b/i, instead: 'sum to 1' },
  {
    name: 'one X more',
    pattern: /(?<!\bno )\bone (?!any|of|needs|has)[a-z]+ more\b/i,
    instead: 'one more X',
  },
  {
    name: 'is without',
    pattern: /(?<!\bas it )\b(?:is|are|was|were) without\b/i,
    instead: 'lacks, has no',
  },
  {
    name: 'all',
    pattern: /^---- (?:all|all of it|all of them|the rest|life) ----$/i,
    instead: 'a heading that names its part',
  },
  {
    name: 'answers where',
    pattern: /(?:^|[.;:] )answers (?:how|where|whether)\b/i,
    instead: 'returns',
  },
  {
    name: 'is there',
    pattern:
      /(?<!\bwhat )\b(?:is|are|was|were) (?:not |already |still |now |all )?there\b(?! (?:a|an|any|are|is|no|nothing|room)\b)/i,
    instead: 'exists, has arrived, is stored',
  },
];

const subjects =
  /(?:(?:^|[.!?:] )(?:What|Who|Whoever|Whatever|Those (?:are|is|of|that|who|which|with)|The others|One that|Some of them)|^(?:who|whoever|what|Of (?!course\b|`?code`?,|\w+(?: \w+){0,3},)))\b[^.!?]*/g;

/**
 * @param {string} text of a paragraph
 * @returns {string[]} sentences whose subject does not name anything
 */
export const namelessSentences = (text) =>
  [...text.matchAll(subjects)]
    .filter(([sentence], at, all) => text[all[at].index + sentence.length] !== '?')
    .map(([sentence]) => sentence.replace(/^[.!?:] /, ''));

/** @param {string} text a document @returns {{line: number, text: string}[]} paragraphs without code, link targets and comments */
export function proseOf(text) {
  const blank = (/** @type {string} */ code) => code.replaceAll(/[^\n]/g, '');
  const prose = text
    .replaceAll(/^( *)```[\s\S]*?^\1```$/gm, blank)
    .replaceAll(/<!--[\s\S]*?-->/g, blank)
    .replaceAll(/`[^`\n]*`/g, 'code')
    .replaceAll(/\]\([^)\n]*\)/g, ']');
  /** @type {{line: number, text: string}[]} */
  const found = [];
  for (const [at, line] of prose.split('\n').entries()) {
    const isNew = /^\s*(?:[-|#]|\d+\. |$)/.test(line) || !found.at(-1)?.text;
    if (/^#/.test(line)) continue; // headings are not sentences
    const words = line.replace(/^\s*(?:[-#|]+|\d+\.)\s*/, '').trim();
    if (isNew) found.push({ line: at + 1, text: words });
    else found[found.length - 1].text += ` ${words}`;
  }
  return found.filter((one) => one.text !== '');
}

const literal = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/.source;
const errors = new RegExp(
  `(?:new WickError\\(\\s*'[A-Z_]+',|new Exit\\(\\s*EXIT_\\w+,|argumentError\\(|misused\\()\\s*(${literal})`,
  'g',
);

/** @param {string} text a JavaScript source @returns {{line: number, text: string}[]} its strings of three words or more */
export const literalsOf = (text) =>
  [...text.matchAll(/(['"`])((?:(?!\1)[^\\\n]|\\.)*)\1/g)]
    .map(({ 2: words, index }) => ({
      line: text.slice(0, index).split('\n').length,
      text: words.replaceAll(/\$\{[^}]*\}/g, 'VALUE'),
    }))
    .filter((one) => /[a-z] [a-z]+ [a-z]/.test(one.text));

/** @param {string} text a JavaScript source @returns {{line: number, text: string}[]} its error messages */
export const errorsOf = (text) =>
  [...text.matchAll(errors)].map(({ 1: message, index }) => ({
    line: text.slice(0, index).split('\n').length,
    text: message.slice(1, -1).replaceAll(/\$\{[^}]*\}/g, 'VALUE'),
  }));

/** @param {string} text a JavaScript test @returns {{line: number, text: string}[]} the titles of its tests and groups */
export const titlesOf = (text) =>
  [...text.matchAll(/\b(?:test|it|describe)(?:\.\w+)?\(\s*(['"`])((?:(?!\1)[^\\]|\\.)*)\1/g)].map(
    ({ 2: title, index }) => ({
      line: text.slice(0, index).split('\n').length,
      text: title.replaceAll(/\$\{[^}]*\}/g, 'VALUE'),
    }),
  );

/**
 * The beginnings of messages that name an option, a field or a URL: `topK must be …`, `VALUE
 * answered 404`, `unknown tool VALUE`.
 */
const named =
  /^(?:VALUE|[a-z]\w*)(?:\.(?:\w+|VALUE)|\[VALUE\]|\/VALUE)* (?:must|needs|cannot|could|is|are|has|was|answered|belongs|and VALUE cannot)\b|^[Uu]nknown \w/;

/**
 * @param {string} message
 * @returns {boolean} whether it begins with its subject, as in `subject: what is wrong`, or with a
 * name
 */
export const namesSubject = (message) => /^[^:]{1,80}: \S/.test(message) || named.test(message);

/**
 * @param {string} text a source
 * @returns {{line: number, text: string}[]} lines of --help: an option and its description
 */
export const helpOf = (text) =>
  text.split('\n').flatMap((line, at) => {
    const [, described] = /^ {2}-{1,2}[\w-]+(?: [A-Z][\w:[\]]*)? {2,}(\S.*)$/.exec(line) ?? [];
    return described === undefined ? [] : [{ line: at + 1, text: described }];
  });

/** @param {string} described @returns {boolean} whether it can be a verb phrase */
export const isVerbPhrase = (described) =>
  /^[a-z]/.test(described) &&
  !/^(?:what|where|who|by|of|in|a|an|the|those|at|its|with|without)\b/.test(described);
