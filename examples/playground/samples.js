// examples/playground/samples.js — examples to try.

/** @typedef {'schema' | 'grammar' | 'regex' | 'choices'} Kind */
/** @typedef {{kind: Kind, rule: string, text: string}} Task */

/** Formats JSON and keeps lists of words on one line. @param {unknown} value */
const json = (value) =>
  JSON.stringify(value, null, 2).replace(
    /\[\s+([^[\]{}]*?)\s+\]/g,
    (_, items) => `[${items.replace(/\s*\n\s*/g, ' ')}]`,
  );

/** @type {(Task & {name: string})[]} */
export const samples = [
  {
    name: 'A booking',
    kind: 'schema',
    rule: json({
      type: 'object',
      properties: {
        city: { enum: ['Oslo', 'Lima', 'Kyoto'] },
        people: { type: 'integer', minimum: 1, maximum: 20 },
        breakfast: { type: 'boolean' },
      },
      required: ['city', 'people', 'breakfast'],
    }),
    text: 'Three of us are going to Lima in May. We would like a room with breakfast.',
  },
  {
    name: 'A contact',
    kind: 'schema',
    rule: json({
      type: 'object',
      properties: {
        name: { type: 'string', maxLength: 40 },
        email: { type: 'string', format: 'email', maxLength: 60 },
        born: { type: 'string', format: 'date' },
      },
      required: ['name', 'email', 'born'],
    }),
    text: 'Ada Lovelace, born on 10 December 1815 in London. Write to ada@example.org.',
  },
  {
    name: 'Items of an invoice',
    kind: 'schema',
    rule: json({
      type: 'object',
      properties: {
        items: {
          type: 'array',
          minItems: 1,
          maxItems: 4,
          items: {
            type: 'object',
            properties: {
              what: { type: 'string', maxLength: 30 },
              count: { type: 'integer', minimum: 1, maximum: 99 },
              price: { type: 'number', minimum: 0, maximum: 999 },
            },
            required: ['what', 'count', 'price'],
          },
        },
        paid: { type: 'boolean' },
      },
      required: ['items', 'paid'],
    }),
    text: 'Two lamps at 19.50 each and one table at 120. The customer has paid.',
  },
  {
    name: 'A list in Markdown',
    kind: 'grammar',
    rule: 'root ::= item{2,4}\nitem ::= "- " word (" " word){0,5} "\\n"\nword ::= [a-zA-Z]{1,12}\n',
    text: 'What does one need for a picnic?',
  },
  {
    name: 'A date',
    kind: 'regex',
    rule: '\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])',
    text: 'The ship left on the tenth of May 1915. On which date was that?',
  },
  {
    name: 'A mood',
    kind: 'choices',
    rule: 'glad\nangry\nneither',
    text: 'The parcel came two weeks late and was broken. How does the writer feel?',
  },
];
