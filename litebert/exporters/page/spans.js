// Extractive question answering, as in tasks/squad: the passage is read in windows, each with the question before it,
// and the best pairs of a start and an end over all windows are mapped back to text.

import { logSoftmax, rank, softmax } from "./shares.js";
import { buildTest } from "./normalize.js";
import { joinAsIs, roomOfPair } from "./tokenizer.js";

const NUM_ENDS = 5; // for each start that the start-conditioned head proposes
const NUM_OTHERS = 3; // next best answers

/** {answer, others, null_odds, num_cut}; no answer if the model finds that more probable. */
export async function answerQuestion({ question, context }, task, tokenizer, { read, report }) {
  const whole = tokenizer.encode(question);
  const asked = whole.slice(0, task.max_question_length);
  const passage = tokenizer.encodeWithOffsets(context);
  const windows = planWindows(passage.ids.length, roomOfPair(tokenizer.facts) - asked.length, task.stride);
  const owners = findOwners(windows, passage.ids.length);
  const isConditioned = task.head === "conditional_span";
  const readings = [];
  let nullScore = Infinity;
  for (const [number, { first, length }] of windows.entries()) {
    if (windows.length > 1) report(number + 1, windows.length);
    const sequence = joinAsIs(tokenizer.facts, asked, passage.ids.slice(first, first + length));
    const outputs = await read(isConditioned ? { ...sequence, answerMask: allow(sequence) } : sequence);
    nullScore = Math.min(nullScore, isConditioned ? outputs.unanswerable.data[0] : scoreNull(outputs));
    readings.push({ outputs, number, column: sequence.column, first, end: first + length });
  }
  const isSpace = buildTest(tokenizer.facts.spaces);
  const list = (propose) => {
    const candidates = readings.flatMap((one) => keepPossible(propose(one.outputs), one, owners, task));
    return listSpans(candidates, passage, context, isSpace, task.num_best);
  };
  let spans = list(isConditioned ? proposeConditioned : (outputs) => proposePairs(outputs, task.num_best));
  if (!spans.length && !isConditioned && task.version === "1.1") { // no best pair is a valid span
    spans = list((outputs) => proposeAll(outputs, task.max_answer_length));
  }
  const decided = decide(spans, isConditioned ? nullScore : nullScore - (spans[0]?.score ?? 0), task);
  return { ...decided, num_cut: whole.length - asked.length };
}

/** 1 for tokens that an answer may contain: the passage, and [CLS] for no answer. */
function allow({ ids, column }) {
  return ids.map((_, at) => (at === 0 || (at >= column && at < ids.length - 1) ? 1 : 0));
}

/** {first, length} of the passage's tokens in each window. */
export function planWindows(numTokens, room, stride) {
  const advance = Math.min(room, stride); // so that no token is skipped between two windows
  const count = 1 + Math.ceil(Math.max(numTokens - room, 0) / advance);
  return Array.from({ length: count }, (_, number) => {
    const first = number * advance;
    return { first, length: Math.min(numTokens - first, room) };
  });
}

/** For each token the window in which it has the most context: an answer may start only there. */
export function findOwners(windows, numTokens) {
  return Array.from({ length: numTokens }, (_, token) => {
    let [best, most] = [-1, -1];
    windows.forEach(({ first, length }, number) => {
      if (token < first || token >= first + length) return;
      const score = Math.min(token - first, first + length - 1 - token) + 0.01 * length;
      if (score > most) [best, most] = [number, score]; // ties go to the earlier window
    });
    return best;
  });
}

/** The score of the span from [CLS] to [CLS], which means no answer. */
function scoreNull({ start, end }) {
  return Math.fround(start.data[0] + end.data[0]);
}

/** The possible answers among a window's candidates, with columns converted to tokens of the passage. */
function keepPossible(candidates, window, owners, task) {
  const shift = window.first - window.column;
  const placed = candidates.map((one) => ({ ...one, start: one.start + shift, end: one.end + shift }));
  return placed.filter(({ start, end }) => owners[start] === window.number && end >= start && end < window.end
    && end - start < task.max_answer_length);
}

/** All pairs of the best starts and the best ends: the simple head. */
function proposePairs({ start, end }, numBest) {
  const ends = rank(end.data, numBest);
  return rank(start.data, numBest).flatMap(([first, startScore]) =>
    ends.map(([last, endScore]) => ({ start: first, end: last, startScore, endScore })));
}

/** Every start with every end that is near enough, in case no pair of the best is a possible answer. */
function proposeAll({ start, end }, maxLength) {
  return [...start.data].flatMap((startScore, first) => [...end.data.slice(first, first + maxLength)].map(
    (endScore, more) => ({ start: first, end: first + more, startScore, endScore })));
}

/** The best ends for each of the best starts: the start-conditioned head. */
function proposeConditioned({ start, starts, end }) {
  const width = start.dims[1];
  const startScores = logSoftmax(start.data);
  return [...starts.data].map(Number).flatMap((first, row) =>
    rank(logSoftmax(end.data.subarray(row * width, (row + 1) * width)), NUM_ENDS).map(([last, endScore]) =>
      ({ start: first, end: last, startScore: startScores[first], endScore })));
}

/** The best candidates with different texts, and their probabilities among each other. */
function listSpans(candidates, passage, context, isSpace, numBest) {
  const letters = [...context];
  const scored = candidates.map((one) => ({ ...one, score: Math.fround(one.startScore + one.endScore) }));
  scored.sort((a, b) => b.score - a.score);
  const found = new Map();
  for (const one of scored) {
    const start = passage.starts[one.start];
    let end = passage.ends[one.end];
    while (end > start && isSpace(letters[end - 1])) end -= 1; // a bare "▁" is located after its space
    const text = letters.slice(start, end).join("");
    if (text && !found.has(text)) found.set(text, { text, start, end, one });
    if (found.size === numBest) break;
  }
  const spans = [...found.values()];
  const shares = softmax(Float64Array.from(spans, ({ one }) => one.score));
  return spans.map(({ text, start, end, one }, n) =>
    ({ text, start, end, probability: shares[n], score: one.startScore + one.endScore }));
}

function decide(spans, nullOdds, task) {
  const odds = Number(nullOdds.toPrecision(7));
  const isSilent = task.version === "2.0" && odds > (task.threshold ?? 0);
  const best = isSilent ? null : (spans[0] ?? null);
  return { answer: best, others: best ? spans.slice(1, NUM_OTHERS + 1) : spans.slice(0, NUM_OTHERS), null_odds: odds };
}
