// js/page/extract.js — engine.extract: extracts a record that matches a JSON schema from a text.

import { argumentError, WickError } from '../base/errors.js';
import { checkNames } from '../base/option_names.js';
import { askModel } from './ask_model.js';
import { checkText } from './option_checks.js';

const INSTRUCTIONS = 'Read the text and write down what it says, as JSON of this schema:';
const MAX_TOKENS = 1024;

/**
 * @param {import('./classify.js').Ask} ask
 * @param {string} text
 * @param {import('../index.js').GrammarOptions['jsonSchema']} schema
 * @param {import('../index.js').ExtractOptions} options
 * @returns {Promise<any>} the record, parsed
 */
export async function extract(ask, text, schema, options) {
  checkNames(options, ['instructions', 'maxTokens', 'temperature', 'seed', 'salt', 'signal']);
  const { instructions = INSTRUCTIONS, signal, ...settings } = options;
  checkText('text', text);
  checkText('instructions', instructions);
  if (schema === undefined || schema === null) throw argumentError('extract needs a JSON schema');
  const schemaText = typeof schema === 'string' ? schema : JSON.stringify(schema);
  const content = `${instructions}\n${schemaText}\n\n${text}`;
  const given = { temperature: 0, maxTokens: MAX_TOKENS, ...settings, jsonSchema: schema, signal };
  // the template may already have started the reasoning
  const closing = { ...given, thinkingBudgetTokens: 0 };
  return askModel(content, '\n\nJSON: ', (input) =>
    readRecord(ask(input, 'messages' in input ? closing : given)),
  );
}

/** @param {import('./piece_reader.js').PieceReader} reader */
async function readRecord(reader) {
  let json = '';
  for (let piece = await reader.next(); piece; piece = await reader.next()) {
    const deltas = piece.deltas ?? [{ content: piece.text }];
    json += deltas.map(({ content }) => content ?? '').join('');
  }
  const { finish, completionTokens } = /** @type {import('../connection/messages.js').Done} */ (
    reader.done
  );
  if (finish !== 'length') return JSON.parse(json);
  throw new WickError(
    'INCOMPLETE',
    `The record is incomplete after ${completionTokens} tokens: it reached maxTokens or the end of the context`,
    { text: json },
  );
}
