// Text normalization before tokenization, with an alignment to the original text: normalization changes lengths ("ﬁ"
// becomes two letters, "é" loses its accent), but answers are marked in the original text.

function buildClass(ranges) {
  const parts = ranges.map(([a, b]) => `\\u{${a.toString(16)}}-\\u{${b.toString(16)}}`);
  return `[${parts.join("")}]`;
}

/** A function that tests whether a letter is in one of the ranges. */
export function buildTest(ranges) {
  const pattern = new RegExp(`^${buildClass(ranges)}$`, "u");
  return (letter) => pattern.test(letter);
}

/** The runs of letters between white space, as [first, last + 1]. */
export function findRuns(letters, isSpace) {
  const runs = [];
  let isOpen = false;
  letters.forEach((letter, at) => {
    if (isSpace(letter)) isOpen = false;
    else if (isOpen) runs.at(-1)[1] = at + 1;
    else isOpen = runs.push([at, at + 1]) > 0;
  });
  return runs;
}

/**
 * Letters -> {visible, starts, ends}: the text that SentencePiece splits into pieces, and for each of its letters the
 * first original letter and the one after the last; `starts` has one more entry, for the end of the text.
 */
export function alignUnigram(facts) {
  const { normalization } = facts;
  const isSpace = buildTest(facts.spaces);
  const isMark = buildTest(facts.marks);
  const marks = new RegExp(`${buildClass(facts.marks)}+`, "gu");
  const [isDropped, isSpaced] = [facts.dropped, facts.spaced].map((codes) => buildTest(codes.map((code) => [code, code])));

  function normalize(text) {
    if (normalization.unicode_form !== "none") text = text.normalize(normalization.unicode_form);
    if (normalization.drops_accents) text = text.replace(marks, "");
    return normalization.lowercase ? text.toLowerCase() : text;
  }

  // [first, last + 1, normalized length] of the parts of a run that are normalized independently
  function measureClusters(letters, [first, last], length) {
    const spans = [];
    for (let at = first; at < last; at += 1) {
      if (at > first && isMark(letters[at])) spans.at(-1)[1] = at + 1;
      else spans.push([at, at + 1]);
    }
    const measured = spans.map(([a, b]) => [a, b, [...normalize(letters.slice(a, b).join(""))].length]);
    const total = measured.reduce((sum, [, , size]) => sum + size, 0);
    return total === length ? measured : [[first, last, length]]; // else letters composed across parts: keep the run
  }

  // litebert's own normalization (text/normalize.py)
  function alignOurs(letters) {
    const found = { letters: [], starts: [], ends: [] };
    const add = (some, start, end) => {
      for (const letter of some) {
        found.letters.push(letter);
        found.starts.push(start);
        found.ends.push(end);
      }
    };
    const runs = normalization.collapses_whitespace ? findRuns(letters, isSpace) : [[0, letters.length]];
    runs.forEach((run, number) => {
      if (number > 0) add([" "], runs[number - 1][1], run[0]); // a single space between two runs
      const normalized = [...normalize(letters.slice(...run).join(""))];
      let at = 0;
      for (const [start, end, size] of measureClusters(letters, run, normalized.length)) {
        add(normalized.slice(at, at + size), start, end);
        at += size;
      }
    });
    return found;
  }

  // [first letter, normalized text] by SentencePiece's own rules, nmt_nfkc
  function listChunks(letters) {
    const compose = (text) => text.normalize("NFKC");
    const chunks = [];
    let open = ""; // the original of the last chunk, while more letters may compose with it
    letters.forEach((letter, at) => {
      if (isDropped(letter) || isSpaced(letter) || letter === "▁") {
        chunks.push([at, isDropped(letter) ? "" : " "]);
        open = "";
      } else if (open && letter > "\u007F" && compose(open + letter) !== compose(open) + compose(letter)) {
        open += letter;
        chunks.at(-1)[1] = compose(open);
      } else {
        chunks.push([at, compose(letter)]);
        open = letter;
      }
    });
    return chunks;
  }

  return (text) => {
    const ours = alignOurs(text);
    const visible = [];
    const origins = [];
    let isAfterSpace = true; // keep the first of several spaces, and none at the beginning
    for (const [at, becomes] of listChunks(ours.letters)) {
      for (const letter of becomes) {
        if (letter === " " && isAfterSpace) continue;
        if (visible.length === 0) visible.push("▁") && origins.push(at);
        visible.push(letter === " " ? "▁" : letter);
        origins.push(at);
        isAfterSpace = letter === " ";
      }
    }
    origins.push(ours.letters.length);
    while (visible.at(-1) === "▁") {
      visible.pop();
      origins.pop();
    }
    const starts = origins.map((at) => (at < ours.starts.length ? ours.starts[at] : text.length));
    return { visible, starts, ends: listEnds(origins, ours.ends) };
  };
}

// The ends of the letters' origins: before the next larger one. A letter that became several is the origin of them all.
function listEnds(origins, ends) {
  const found = [];
  for (let at = origins.length - 2; at >= 0; at -= 1) {
    found[at] = origins[at + 1] > origins[at] ? ends[origins[at + 1] - 1] : found[at + 1];
  }
  return found;
}

/**
 * Letters -> {letters, starts, ends}: BERT's text cleaning, one letter at a time, as in the library `tokenizers`. Before
 * it, `characters` are replaced: traditional Chinese ones by simplified ones, or the other way round.
 */
export function alignWordPiece({ lowercase, strip_accents: stripsAccents, handle_chinese_chars: splitsChinese, characters }) {
  const converted = new Map(Object.entries(characters));
  const chinese = /^[\u4E00-\u9FFF\u3400-\u4DBF\u{20000}-\u{2A6DF}\u{2A700}-\u{2B73F}\u{2B740}-\u{2B81F}\u{2B920}-\u{2CEAF}\uF900-\uFAFF\u{2F800}-\u{2FA1F}]$/u;

  function normalize(given) {
    const letter = converted.get(given) ?? given;
    if (/[\t\n\r]/u.test(letter)) return " "; // the only control characters that count as white space
    if (/\uFFFD|\p{Cc}|\p{Cf}|\p{Co}/u.test(letter)) return "";
    if (/\p{White_Space}/u.test(letter)) return " ";
    let text = splitsChinese && chinese.test(letter) ? ` ${letter} ` : letter;
    if (stripsAccents) text = text.normalize("NFD").replace(/\p{Mn}/gu, "");
    // one letter at a time, as in Rust: sigma at the end of a word is not special
    return lowercase ? [...text].map((one) => one.toLowerCase()).join("") : text;
  }

  return (text) => {
    const found = { letters: [], starts: [], ends: [] };
    text.forEach((letter, at) => {
      for (const one of normalize(letter)) {
        found.letters.push(one);
        found.starts.push(at);
        found.ends.push(at + 1);
      }
    });
    return found;
  };
}
