// Word tags (tasks/kinds/token_tags.py): the sequence and column of the logits for each word, and the spans of the tags.

import { buildTest, findRuns } from "./normalize.js";

const OUTSIDE = "O";

/** The words of a text (tasks/words.py) as [first, last + 1]: cut as the training texts were (`splitsWords`), at spaces,
 * or into letters where a script has none. */
export function cutText(letters, facts, splitsWords) {
  const isSpace = buildTest(facts.spaces);
  if (splitsWords === "characters") return letters.flatMap((letter, at) => (isSpace(letter) ? [] : [[at, at + 1]]));
  const atSpaces = findRuns(letters, isSpace);
  const isUnspaced = atSpaces.length === 1 && letters.filter(buildTest(facts.unspaced)).length > 1;
  if (!splitsWords && !isUnspaced) return atSpaces;
  const belongsToWord = buildTest(facts.word_letters);
  const words = [];
  let isOpen = false;
  letters.forEach((letter, at) => {
    const isLetter = belongsToWord(letter);
    if (isLetter && isOpen) words.at(-1)[1] = at + 1;
    else if (!isSpace(letter)) words.push([at, at + 1]);
    isOpen = isLetter;
  });
  return words;
}

/** The pieces of words in sequences that fit: {ids, places: [{word, column}]}; a word's first piece predicts the tag */
export function placeWords(pieces, room) {
  const sequences = [];
  pieces.forEach((some, word) => {
    const isFull = !sequences.length || sequences.at(-1).ids.length + some.length > room;
    if (isFull) sequences.push({ ids: [], places: [] });
    const { ids, places } = sequences.at(-1);
    places.push({ word, column: ids.length + 1 }); // after [CLS]
    ids.push(...some);
  });
  return sequences;
}

/** The spans of BIO or BIOES tags; an I- tag that does not continue a span of its kind begins a new one. */
export function findSpans(tags) {
  const spans = [];
  let kind = "";
  let start = 0;
  [...tags, OUTSIDE].forEach((tag, number) => {
    const [prefix, current] = tag === OUTSIDE ? [OUTSIDE, ""] : [tag.slice(0, 1), tag.slice(2)];
    const begins = "BSU".includes(prefix) || current !== kind || (number > 0 && "ESL".includes(tags[number - 1][0]));
    if (kind && (prefix === OUTSIDE || begins)) {
      spans.push({ kind, start, end: number });
      kind = "";
    }
    if (prefix !== OUTSIDE && !kind) [kind, start] = [current, number];
  });
  return spans;
}
