// Compare: the cosines between the vectors of several texts, as a table whose cells are shaded.

import { el, splitLines } from "./dom.js";
import { say } from "./words.js";

const MAX_LINES = 64; // that a server takes at once, unless told otherwise; the table scrolls

export const embed = {
  id: "embed",
  fields: () => [{ name: "lines", label: say("lines"), rows: 5 }],
  examples: {
    en: [
      { lines: "The dog sleeps in the garden.\nA puppy naps on the lawn.\nShares fell sharply on Monday." },
      { lines: "Return the number of items in a list.\nGive the length of a sequence.\nOpen a file and read its lines.\nRead text from a file." },
    ],
    zh: [{ lines: "小狗在花园里睡觉。\n一只小狗在草地上打盹。\n股市星期一大跌。" }],
  },
  hint: (values) => {
    const n = splitLines(values.lines).length;
    if (n > MAX_LINES) return say("embed.too_many", { n, most: MAX_LINES });
    return n < 2 ? say("embed.hint") : null;
  },
  body: (values) => ({ inputs: splitLines(values.lines) }),
  show,
};

function show(results, { values }) {
  const texts = splitLines(values.lines);
  const vectors = results.map((result) => result.vector);
  const cosines = vectors.map((a) => vectors.map((b) => a.reduce((sum, value, at) => sum + value * b[at], 0)));
  const pairs = texts.flatMap((_, a) => texts.slice(a + 1).map((_, at) => ({ a, b: a + 1 + at, cosine: cosines[a][a + 1 + at] })));
  const best = pairs.reduce((one, other) => (other.cosine > one.cosine ? other : one));
  // shades span what there is: a small model's cosines lie close together
  const low = Math.min(...pairs.map((pair) => pair.cosine));
  const spread = Math.max(best.cosine - low, 1e-6);
  const cell = (a, b) => {
    if (a === b) return el("td", { class: "same" }, "·");
    const share = (cosines[a][b] - low) / spread;
    return el("td", { class: "cell", style: { "--share": share.toFixed(3) } }, cosines[a][b].toFixed(2));
  };
  const head = el("tr", {}, el("td"), texts.map((_, number) => el("th", { scope: "col" }, String(number + 1))));
  const rows = texts.map((text, a) => el("tr", {},
    el("th", { scope: "row", dir: "auto" }, el("span", { class: "soft" }, `${a + 1} `), text), texts.map((_, b) => cell(a, b))));
  return {
    nodes: [el("p", { class: "soft small" }, say("embed.scale")), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": say("embed") }, el("table", { class: "matrix" }, el("thead", {}, head), el("tbody", {}, rows)))],
    spoken: say("embed.say", { a: best.a + 1, b: best.b + 1, p: best.cosine.toFixed(2) }),
  };
}
