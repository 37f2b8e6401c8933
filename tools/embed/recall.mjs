// Measures how well models find a note by a question that shares no words with it, with 16 notes and one question for each.
//   node tools/embed/recall.mjs MODEL.gguf...

import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** The package built by `make`. @type {typeof import('../../js/index.js')} */
const { createEngine } = await import(
  pathToFileURL(resolve(fileURLToPath(import.meta.url), '../../../dist/index.js')).href
);

/** @type {[string, string][]} */
const pairs = [
  ['The roses need water every evening in July.', 'When should I care for the flowers?'],
  ['The train to Bergen was forty minutes late.', 'problems with rail travel in Norway'],
  ['Mix flour, eggs and milk, and fry it in butter.', 'a recipe for pancakes'],
  ['The dentist said I must come back in March.', 'appointment about my teeth'],
  ['Our dog ran away and came home muddy.', 'what did the pet do'],
  ['The rent goes up by fifty euros next year.', 'cost of the apartment'],
  ['Install the package and restart the daemon.', 'how to set up the software'],
  ['She won the chess tournament in her town.', 'success in a board game'],
  ['The car needs new brakes before the winter.', 'vehicle repair'],
  ['Read the chapter on photosynthesis for Monday.', 'biology homework'],
  ['Grandmother was born in a village by the sea.', 'family history'],
  ['The battery of the phone lasts half a day.', 'my mobile runs out of power'],
  ['We saw two whales from the boat.', 'animals of the ocean'],
  ['The meeting decided to hire three engineers.', 'new employees for the team'],
  ['I ran ten kilometres along the river.', 'sport and exercise'],
  ['The painting was sold for a million.', 'art market prices'],
];

/** @param {Float32Array} a @param {Float32Array} b */
const cosine = (a, b) => a.reduce((sum, value, index) => sum + value * b[index], 0);

/** @param {Float32Array} question @param {Float32Array[]} notes @returns {number[]} indexes of the notes, the nearest first */
const nearest = (question, notes) =>
  notes
    .map((note, place) => ({ place, score: cosine(question, note) }))
    .sort((a, b) => b.score - a.score)
    .map(({ place }) => place);

for (const file of process.argv.slice(2)) {
  const engine = await createEngine({ file, threads: 1 });
  const notes = await engine.embed(
    pairs.map(([note]) => note),
    { pooling: 'mean' },
  );
  const questions = await engine.embed(
    pairs.map(([, question]) => question),
    { pooling: 'mean' },
  );
  const orders = questions.map((question) => nearest(question, notes));
  const among = (/** @type {number} */ most) =>
    orders.filter((order, place) => order.indexOf(place) < most).length;
  console.log(`${file}: ${among(1)} of ${pairs.length} found first, ${among(3)} in the top three`);
  await engine.close();
}
