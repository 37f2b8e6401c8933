// examples/chat/running_answers.js — starts answers, shows and stores them while they are generated, and ends them.

import { renderMarkdown } from './markdown.js';
import { keepInView } from './message.js';
import { showReasoning } from './reasoning.js';
import { newId, RECORD_VERSION } from './records.js';
import { tab } from './tabs.js';
import { showCalls } from './tool_calls.js';
import { add, toTurn } from './tree.js';
import { keeper } from './write_queue.js';

/** @import { Conversation, Turn } from './records.js' */
/** @import { Ending } from './answer_request.js' */
/** @import { Message } from './tree.js' */

/** The shortest time between saves of a running answer. */
const KEEP_MS = 200;

/** @param {Message} message @param {Conversation} about @returns {Turn} */
export const turnOf = (message, about) => toTurn(message, about.id, RECORD_VERSION);

/**
 * Renders and stores an answer while it is generated: the first piece immediately, and then at most once a frame, however many
 * tokens arrive.
 * @param {Message} message
 * @param {HTMLElement} body
 * @param {Conversation} about
 * @param {import('./announcer.js').Voice} [voice] the element that announces it
 */
export function makeWriter(message, body, about, voice) {
  let shown = message.content;
  let frame = 0;
  let keptAt = Date.now();
  let isThinking = false;
  let thinkingSince = 0;
  const drawReasoning = () =>
    keepInView(() => showReasoning(body, message.reasoning ?? '', message.reasoningMs));
  const draw = (isWhole = false) => {
    cancelAnimationFrame(frame); // a later frame would remove the buttons
    frame = 0;
    if (isThinking) drawReasoning();
    if (isWhole || message.content !== shown) renderMarkdown(body, message.content, isWhole);
    shown = message.content;
    keepInView();
  };
  const drawSoon = () => {
    frame ||= requestAnimationFrame(() => draw());
    if (Date.now() - keptAt < KEEP_MS) return;
    keptAt = Date.now();
    keepAnswer(message, about);
  };
  const endThinking = () => {
    if (!isThinking) return;
    isThinking = false;
    message.reasoningMs ??= Math.round(performance.now() - thinkingSince);
    drawReasoning();
  };
  body.classList.add('waiting');
  return {
    /** @param {string} piece */
    add(piece) {
      endThinking();
      message.content += piece;
      if (message.content === piece) draw();
      voice?.add(piece);
      drawSoon();
    },
    /** @param {string} piece */
    think(piece) {
      isThinking = true;
      thinkingSince ||= performance.now();
      message.reasoning = (message.reasoning ?? '') + piece;
      drawSoon();
    },
    /**
     * Shows and stores the tool calls that end a round, before and after they are run.
     * @param {import('./tool_calls.js').Round} round
     */
    call(round) {
      endThinking();
      message.rounds ??= [];
      if (!message.rounds.includes(round)) message.rounds.push(round);
      message.content = '';
      draw();
      showCalls(body, message.rounds, true);
      keepAnswer(message, about);
    },
    finish() {
      endThinking();
      body.classList.remove('waiting');
      draw(true);
    },
  };
}

/** @param {Message} message @param {Conversation} about @param {boolean} [isEnd] */
export function keepAnswer(message, about, isEnd = false) {
  const turn = turnOf(message, about);
  keeper.replace(`answer ${turn.id}`, (store) => store.keepAnswer(turn, isEnd));
}

/**
 * @param {Message} question
 * @param {number} count
 * @returns {Message[]} the answers; the first one is shown
 */
export function beginAnswers(question, count) {
  const answers = Array.from({ length: count }, (_, index) =>
    add(question, {
      ...{ id: newId(), role: 'assistant', content: '', state: 'writing', writer: tab },
      created: Date.now() + index,
    }),
  );
  question.shown = answers[0].id;
  return answers;
}

/** @param {Message[]} answers @param {(Ending | undefined)[]} endings @param {Conversation} about */
export function endAnswers(answers, endings, about) {
  for (const [index, one] of answers.entries()) {
    Object.assign(one, endings[index] ?? { state: 'stopped', facts: 'stopped' });
    delete one.writer;
    keepAnswer(one, about, true);
  }
}
