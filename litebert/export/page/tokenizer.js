// Text to token ids, as litebert's Python does it: SentencePiece unigram and WordPiece, with the normalisation of the
// model that this folder holds. vocabulary.json has the facts.

export const MASK = "[MASK]";
// keeps the place of a mask while the text around it is normalised; one that somebody typed becomes its neighbour,
// which is as unknown
const PLACE = "\uE000";
const SPACE = "▁";

export function buildTokenizer(facts) {
  const encodeWithMasks = facts.kind === "unigram" ? buildUnigram(facts) : buildWordPiece(facts);
  return {
    facts,
    // ids of a text in which [MASK] stands for a word to guess, without special tokens around
    encode: (text) => encodeWithMasks(text.replaceAll(PLACE, "\uE001").split(MASK).join(PLACE)),
    piece: (id) => facts.pieces[id],
  };
}

// [CLS] first [SEP], or [CLS] first [SEP] second [SEP]; what is too long loses its end
export function join(facts, first, second) {
  const { cls, sep } = facts.special;
  if (second === undefined) {
    const ids = [cls, ...first.slice(0, facts.max_length - 2), sep];
    return { ids, types: ids.map(() => 0) };
  }
  const between = facts.num_segments > 1 ? [sep] : [sep, sep];
  const [a, b] = shareRoom(first.length, second.length, facts.max_length - 2 - between.length);
  const head = [cls, ...first.slice(0, a), ...between];
  const tail = [...second.slice(0, b), sep];
  const types = [...head.map(() => 0), ...tail.map(() => (facts.num_segments > 1 ? 1 : 0))];
  return { ids: [...head, ...tail], types };
}

function shareRoom(first, second, room) {
  while (first + second > room) {
    if (first > second) first -= 1;
    else second -= 1;
  }
  return [first, second];
}

function buildClass(ranges) {
  const parts = ranges.map(([a, b]) => `\\u{${a.toString(16)}}-\\u{${b.toString(16)}}`);
  return `[${parts.join("")}]`;
}

function buildUnigram(facts) {
  const { pieces, scores, user_defined: userDefined, normalization } = facts;
  const ids = new Map(pieces.map((piece, id) => [piece, id]));
  for (const id of facts.unusable) ids.delete(pieces[id]);
  const isUserDefined = new Set(userDefined);
  const usual = pieces.map((_, id) => id).filter((id) => ids.has(pieces[id]) && !isUserDefined.has(id));
  // not Math.max(...all): a hundred thousand arguments are more than a stack holds
  const largest = (values) => values.reduce((most, value) => Math.max(most, value), -Infinity);
  const longest = largest(pieces.map((piece) => [...piece].length));
  const lowest = -largest(usual.map((id) => -scores[id]));
  const highest = largest(usual.map((id) => scores[id]));
  const spaces = new RegExp(`${buildClass(facts.spaces)}+`, "gu");
  const [dropped, spaced] = [facts.dropped, facts.spaced].map((codes) => new RegExp(buildClass(codes.map((c) => [c, c])), "gu"));
  const marks = new RegExp(`${buildClass(facts.marks)}+`, "gu");

  function normalize(text) {
    if (normalization.collapses_whitespace) text = text.replace(spaces, " ").trim();
    if (normalization.unicode_form !== "none") text = text.normalize(normalization.unicode_form);
    if (normalization.drops_accents) text = text.replace(marks, "");
    if (normalization.lowercase) text = text.toLowerCase();
    // what SentencePiece's own rules (nmt_nfkc) do after that
    text = text.replace(dropped, "").replace(spaced, " ").normalize("NFKC");
    return text.replace(/[ ▁]+/g, " ").replace(/^ | $/g, "");
  }

  // the best way to cut a text into pieces, in SentencePiece's own arithmetic of single precision
  function cut(text) {
    const characters = [...text];
    const size = characters.length;
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
        piece += characters[to - 1];
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
    for (let at = size; at > 0; at = best[at].from) found.push(best[at].id);
    return found.reverse();
  }

  return (text) => {
    const normalized = normalize(text);
    if (normalized === "") return [];
    const marked = (SPACE + normalized.replaceAll(" ", SPACE)).replaceAll(SPACE + PLACE, PLACE);
    const found = [];
    for (const id of cut(marked)) {
      const isRepeated = id === facts.special.unk && found.at(-1) === id; // unknown characters in a row are one
      if (!isRepeated) found.push(...(facts.splits[id] ?? [id]));
    }
    return found;
  };
}

function buildWordPiece(facts) {
  const { lowercase, strip_accents: stripsAccents, handle_chinese_chars: splitsChinese } = facts.normalization;
  const ids = new Map(facts.pieces.map((piece, id) => [piece, id]));
  for (const id of facts.unusable) ids.delete(facts.pieces[id]);
  const chinese = /[\u4E00-\u9FFF\u3400-\u4DBF\u{20000}-\u{2A6DF}\u{2A700}-\u{2B73F}\u{2B740}-\u{2B81F}\u{2B920}-\u{2CEAF}\uF900-\uFAFF\u{2F800}-\u{2FA1F}]/gu;

  function normalize(text) {
    text = text.replace(/[\t\n\r]|\p{White_Space}/gu, " ").replace(/\0|\uFFFD|\p{Cc}|\p{Cf}|\p{Co}/gu, "");
    if (splitsChinese) text = text.replace(chinese, " $& ");
    if (stripsAccents) text = text.normalize("NFD").replace(/\p{Mn}/gu, "");
    // letter by letter, as Rust does: a sigma at the end of a word is no other letter
    return lowercase ? [...text].map((letter) => letter.toLowerCase()).join("") : text;
  }

  function cutWord(word) {
    const characters = [...word];
    if (characters.length > facts.max_characters) return [facts.special.unk];
    const found = [];
    for (let from = 0; from < characters.length; ) {
      let to = characters.length;
      const piece = () => (from > 0 ? facts.prefix : "") + characters.slice(from, to).join("");
      while (to > from && !ids.has(piece())) to -= 1;
      if (to === from) return [facts.special.unk];
      found.push(ids.get(piece()));
      from = to;
    }
    return found;
  }

  const encodePart = (text) => {
    const words = normalize(text).match(/[!-/:-@[-`{-~]|\p{P}|(?:(?![!-/:-@[-`{-~]|\p{P}| ).)+/gsu) ?? [];
    return words.flatMap(cutWord);
  };
  return (text) => text.split(PLACE).flatMap((part, n) => [...(n > 0 ? [facts.special.mask] : []), ...encodePart(part)]);
}
