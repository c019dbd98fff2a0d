// Text to token ids, as in litebert's Python code: SentencePiece unigram and WordPiece, with the normalization of the
// model in this folder, and with each token's position in the text. vocabulary.json has the facts.
//
// Positions are counted in letters (code points), as in Python: a text is an array of its letters.

import { alignUnigram, alignWordPiece } from "./normalize.js";

export const MASK = "[MASK]";
// stands for a mask while the text around it is normalized; if the text contains it, it is replaced by the next code
// point, which is equally unknown
const PLACE = "\uE000";
const SPACE = "▁";

export function buildTokenizer(facts) {
  const { cut, cutMasked } = facts.kind === "unigram" ? buildUnigram(facts) : buildWordPiece(facts);
  const clean = (text) => text.replace(/\p{Surrogate}/gu, "\uFFFD").replaceAll(PLACE, "\uE001");
  return {
    facts,
    piece: (id) => facts.pieces[id],
    // ids without special tokens; "[MASK]" is treated as six letters here, as in Python
    encode: (text) => cut([...clean(text)]).ids,
    // the same, with the first letter of each token and the one after its last
    encodeWithOffsets: (text) => cut([...clean(text)]),
    // ids of a text in which [MASK] stands for a masked word
    encodeMasked: (text) => cutMasked([...clean(text).replaceAll(facts.pieces[facts.special.mask], MASK).split(MASK).join(PLACE)]),
  };
}

// [CLS] first [SEP], or [CLS] first [SEP] second [SEP]; truncated at the end if too long
export function join(facts, first, second) {
  const { cls, sep } = facts.special;
  if (second === undefined) {
    const ids = [cls, ...first.slice(0, facts.max_length - 2), sep];
    return { ids, types: ids.map(() => 0), numCut: first.length + 2 - ids.length };
  }
  const [a, b] = shareRoom(first.length, second.length, roomOfPair(facts));
  return { ...joinAsIs(facts, first.slice(0, a), second.slice(0, b)), numCut: first.length + second.length - a - b };
}

// [CLS] first [SEP] second [SEP] of texts that fit already; `column` is where the second begins
export function joinAsIs(facts, first, second) {
  const { cls, sep } = facts.special;
  const hasSegments = facts.num_segments > 1;
  const head = [cls, ...first, ...(hasSegments ? [sep] : [sep, sep])];
  const tail = [...second, sep];
  const types = [...head.map(() => 0), ...tail.map(() => (hasSegments ? 1 : 0))];
  return { ids: [...head, ...tail], types, column: head.length };
}

// the number of tokens of a pair that fit, not counting special tokens
export function roomOfPair(facts) {
  return facts.max_length - (facts.num_segments > 1 ? 3 : 4);
}

function shareRoom(first, second, room) {
  while (first + second > room) {
    if (first > second) first -= 1;
    else second -= 1;
  }
  return [first, second];
}

function buildUnigram(facts) {
  const { pieces, scores, user_defined: userDefined } = facts;
  const ids = new Map(pieces.map((piece, id) => [piece, id]));
  for (const id of facts.unusable) ids.delete(pieces[id]);
  const isUserDefined = new Set(userDefined);
  const usual = pieces.map((_, id) => id).filter((id) => ids.has(pieces[id]) && !isUserDefined.has(id));
  // not Math.max(...all): a hundred thousand arguments overflow the stack
  const largest = (values) => values.reduce((most, value) => Math.max(most, value), -Infinity);
  const longest = largest(pieces.map((piece) => [...piece].length));
  const lowest = -largest(usual.map((id) => -scores[id]));
  const highest = largest(usual.map((id) => scores[id]));
  const align = alignUnigram(facts);

  // the best segmentation of letters into pieces, [id, number of letters], in single precision as in SentencePiece
  function findBest(letters) {
    const size = letters.length;
    const best = new Array(size + 1).fill(null);
    best[0] = { score: 0, from: -1, id: -1 };
    const reach = (from, to, id, score) => {
      const total = Math.fround(best[from].score + score);
      if (best[to] === null || total > best[to].score) best[to] = { score: total, from, id };
    };
    for (let from = 0; from < size; from += 1) {
      if (best[from] === null) continue;
      let hasSingle = false;
      let piece = "";
      for (let to = from + 1; to <= Math.min(size, from + longest); to += 1) {
        piece += letters[to - 1];
        const id = piece === PLACE ? facts.special.mask : ids.get(piece);
        if (id === undefined) continue;
        const bytes = new TextEncoder().encode(piece).length;
        const isSure = piece === PLACE || isUserDefined.has(id);
        reach(from, to, id, isSure ? Math.fround(bytes * highest - 0.1) : Math.fround(scores[id]));
        if (to === from + 1) hasSingle = true;
      }
      if (!hasSingle) reach(from, from + 1, facts.special.unk, Math.fround(lowest - 10));
    }
    const found = [];
    for (let at = size; at > 0; at = best[at].from) found.push([best[at].id, at - best[at].from]);
    return joinUnknown(found.reverse());
  }

  function joinUnknown(found) {
    const joined = [];
    for (const [id, length] of found) {
      if (id === facts.special.unk && joined.at(-1)?.[0] === id) joined.at(-1)[1] += length;
      else joined.push([id, length]);
    }
    return joined;
  }

  // split a piece such as "▁2010," into its parts
  function split([id, length]) {
    const parts = facts.splits[id];
    if (!parts) return [[id, length]];
    const lengths = parts.map((part) => [...pieces[part]].length);
    if (pieces[parts[0]].startsWith(SPACE) && !pieces[id].startsWith(SPACE)) lengths[0] -= 1; // a "▁" that is not in the text
    return parts.map((part, n) => [part, lengths[n]]);
  }

  function cut(text) {
    const { visible, starts, ends } = align(text);
    const found = { ids: [], starts: [], ends: [] };
    let position = 0; // in `visible`, which the pieces cover without gaps
    for (const [id, length] of findBest(visible).flatMap(split)) {
      const first = position + (length > 0 && visible[position] === SPACE ? 1 : 0);
      position += length;
      let [start, end] = [starts[first], ends[position - 1]];
      if (first === position) {
        // a lone "▁" has no letters: an empty span where the next letter begins, unless that became several words
        const isInside = found.ends.length > 0 && starts[first] < found.ends.at(-1);
        [start, end] = isInside ? [found.starts.at(-1), found.ends.at(-1)] : [starts[first], starts[first]];
      }
      found.ids.push(id);
      found.starts.push(start);
      found.ends.push(end);
    }
    return found;
  }

  function cutMasked(text) {
    const { visible } = align(text);
    const letters = visible.filter((letter, n) => letter !== SPACE || visible[n + 1] !== PLACE);
    return findBest(letters).flatMap(split).map(([id]) => id);
  }

  return { cut, cutMasked };
}

function buildWordPiece(facts) {
  const ids = new Map(facts.pieces.map((piece, id) => [piece, id]));
  for (const id of facts.unusable) ids.delete(facts.pieces[id]);
  const align = alignWordPiece(facts.normalization);
  const punctuation = /^(?:[!-/:-@[-`{-~]|\p{P})$/u;

  // [first, last + 1] of the words in letters; each punctuation mark is a word
  function findWords(letters) {
    const words = [];
    let isOpen = false;
    letters.forEach((letter, at) => {
      const isAlone = punctuation.test(letter);
      if (letter !== " " && isOpen && !isAlone) words.at(-1)[1] = at + 1;
      else if (letter !== " ") words.push([at, at + 1]);
      isOpen = letter !== " " && !isAlone;
    });
    return words;
  }

  // the pieces of a word, [id, first, last + 1]
  function cutWord(letters, [first, last]) {
    const unknown = [[facts.special.unk, first, last]];
    if (last - first > facts.max_characters) return unknown;
    const found = [];
    for (let from = first; from < last; ) {
      let to = last;
      const piece = () => (from > first ? facts.prefix : "") + letters.slice(from, to).join("");
      while (to > from && !ids.has(piece())) to -= 1;
      if (to === from) return unknown;
      found.push([ids.get(piece()), from, to]);
      from = to;
    }
    return found;
  }

  function cut(text) {
    const { letters, starts, ends } = align(text);
    const found = findWords(letters).flatMap((word) => cutWord(letters, word));
    return {
      ids: found.map(([id]) => id),
      starts: found.map(([, from]) => starts[from]),
      ends: found.map(([, , to]) => ends[to - 1]),
    };
  }

  function cutMasked(text) {
    const parts = text.join("").split(PLACE);
    return parts.flatMap((part, n) => [...(n > 0 ? [facts.special.mask] : []), ...cut([...part]).ids]);
  }

  return { cut, cutMasked };
}
