// Tag words: the text with its spans coloured and named, or each word with its tag.

import { el, percent, slicer } from "./dom.js";
import { say } from "./words.js";

const NUM_COLOURS = 8;
const OUTSIDE = "O";

export const tokens = {
  id: "tokens",
  fields: () => [{ name: "text", label: say("text"), rows: 3 }],
  examples: {
    en: [{ text: "Ada Lovelace met Charles Babbage in London in 1833 ." }, { text: "The old cat sees a bird near the river ." }],
    zh: [{ text: "小明在北京大学读书。" }],
  },
  toValues: (input) => ({ text: Array.isArray(input) ? input.join(" ") : input }),
  hint: (values) => (values.text?.trim() ? null : say("empty")),
  body: (values) => ({ inputs: [values.text] }),
  show,
};

function show([result], { values, model }) {
  const kinds = [...new Set(model.labels.filter((tag) => tag !== OUTSIDE).map((tag) => (model.has_spans ? tag.slice(2) : tag)))];
  const colour = (kind) => `kind-${kinds.indexOf(kind) % NUM_COLOURS}`;
  const stretches = model.has_spans
    ? result.spans
    : result.words.filter(({ tag }) => tag !== OUTSIDE).map(({ tag, start, end, probability }) => ({ kind: tag, start, end, score: probability }));
  const cut = slicer(values.text);
  const nodes = [];
  let at = 0;
  for (const { kind, start, end, score } of stretches) {
    nodes.push(cut(at, start), el("span", { class: `entity ${colour(kind)}`, title: percent(score) }, cut(start, end), el("small", {}, kind)));
    at = end;
  }
  nodes.push(cut(at));
  const found = say("tokens.say", { n: stretches.length });
  return {
    nodes: [el("p", { class: "sentence tagged", dir: "auto" }, nodes), !stretches.length && el("p", { class: "soft" }, say("tokens.outside"))].filter(Boolean),
    spoken: model.has_spans ? `${found}: ${stretches.map(({ kind, text }) => `${text} (${kind})`).join(", ")}` : found,
  };
}
