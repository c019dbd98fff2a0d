// The page's functions, with the same answers as litebert's server: facts and tokenizer turn a text into sequences,
// `read` runs the model on one of them, and its logits become probabilities; `report` receives the progress.

import { Refusal } from "./refusal.js";
import { rank, softmax } from "./shares.js";
import { answerQuestion } from "./spans.js";
import { cutText, findSpans, placeWords } from "./tags.js";
import { join, joinAsIs, roomOfPair } from "./tokenizer.js";

export function buildFunctions({ facts, tokenizer }, read, report = () => {}) {
  const { task } = facts;
  const vocabulary = tokenizer.facts;
  const encodeTexts = (texts) => join(vocabulary, ...[texts].flat().map(tokenizer.encode));

  return {
    async "fill-mask"(text, { top_k: count }) {
      const ids = tokenizer.encodeMasked(text);
      const room = vocabulary.max_length - 2;
      if (ids.length > room) throw new Refusal("too_long", `It has ${ids.length} tokens, and the model reads ${room}: shorten it around the gap.`);
      const { logits } = await read(join(vocabulary, ids));
      const width = logits.dims[1];
      const gaps = Array.from({ length: logits.dims[0] }, (_, n) => {
        // a model may have more rows than pieces, to round their number up
        const some = Float64Array.from(logits.data.subarray(n * width, n * width + vocabulary.pieces.length));
        for (const id of Object.values(vocabulary.special)) some[id] = -Infinity;
        return rank(softmax(some), count).map(([id, probability]) => guess(tokenizer.piece(id), probability));
      });
      return { gaps };
    },

    async classify(texts, { patience }) {
      const sequence = encodeTexts(texts);
      const { logits } = await read(sequence, patience);
      const cut = { num_cut: sequence.numCut };
      if (task.kind === "regression") {
        const number = logits.data[0] * task.scale + task.center;
        return { label: task.low === null ? number : Math.min(Math.max(number, task.low), task.high), probabilities: {}, ...cut };
      }
      const isSet = task.kind === "multi-label";
      const values = Float64Array.from(logits.data);
      const shares = isSet ? values.map((x) => 1 / (1 + Math.exp(-x))) : softmax(values);
      const label = isSet ? task.labels.filter((_, n) => shares[n] > 0.5) : task.labels[rank(shares, 1)[0][0]];
      return { label, probabilities: Object.fromEntries(task.labels.map((name, n) => [name, shares[n]])), ...cut };
    },

    async tokens(text) {
      const letters = [...text];
      const words = cutText(letters, vocabulary, task.splits_words)
        .map(([start, end]) => ({ word: letters.slice(start, end).join(""), start, end }));
      const pieces = words.map(({ word }) => tokenizer.encode(word)).map((ids) => (ids.length ? ids : [vocabulary.special.unk]));
      let numCut = 0; // if a single word is longer than the model's maximum
      for (const { ids, places } of placeWords(pieces, vocabulary.max_length - 2)) {
        const sequence = join(vocabulary, ids);
        numCut = Math.max(numCut, sequence.numCut);
        const { logits } = await read(sequence);
        const width = logits.dims[2];
        for (const { word, column } of places) {
          const shares = softmax(Float64Array.from(logits.data.subarray(column * width, (column + 1) * width)));
          const [[best, probability]] = rank(shares, 1);
          Object.assign(words[word], { tag: task.labels[best], probability });
        }
      }
      const spans = (facts.model.has_spans ? findSpans(words.map(({ tag }) => tag)) : []).map(({ kind, start, end }) => {
        const inside = words.slice(start, end);
        const place = { start: inside[0].start, end: inside.at(-1).end };
        const score = inside.reduce((sum, { probability }) => sum + probability, 0) / inside.length;
        return { kind, text: letters.slice(place.start, place.end).join(""), ...place, score };
      });
      return { words, spans, num_cut: numCut };
    },

    answer: (asked) => answerQuestion(asked, task, tokenizer, { read, report }),

    async choose({ context, question, choices }) {
      const passage = tokenizer.encode(context);
      const scores = [];
      let numCut = 0;
      for (const choice of choices) {
        const whole = tokenizer.encode(fillIn(question, choice));
        const side = whole.slice(-task.max_choice_length);
        const kept = passage.slice(0, roomOfPair(vocabulary) - side.length);
        numCut = Math.max(numCut, passage.length - kept.length + whole.length - side.length);
        const { logits } = await read(joinAsIs(vocabulary, kept, side));
        scores.push(logits.data[0]);
      }
      const shares = softmax(Float64Array.from(scores));
      const [[number]] = rank(shares, 1);
      return { number, text: choices[number], probabilities: [...shares], num_cut: numCut };
    },

    async order(texts) {
      const sequence = encodeTexts(texts);
      const { logits } = await read(sequence);
      const [probability] = softmax(Float64Array.from(logits.data.subarray(0, 2))); // a third class: other document
      return { probability, num_cut: sequence.numCut };
    },

    async embed(texts) {
      const sequence = encodeTexts(texts);
      const { embedding } = await read(sequence);
      const length = Math.hypot(...embedding.data);
      return { vector: Array.from(embedding.data, (value) => value / Math.max(length, 1e-12)), num_cut: sequence.numCut };
    },
  };
}

function guess(piece, probability) {
  return { piece, text: piece.replace(/^(?:▁|##)/, "") || piece, probability };
}

/** The question with every blank replaced by the choice, or with the choice appended if it has no blank. */
function fillIn(question, choice) {
  return question.includes("_") ? question.replaceAll("_", () => choice) : `${question} ${choice}`.trim();
}
