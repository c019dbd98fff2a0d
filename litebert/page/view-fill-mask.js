// Fill the gap: bars for each [MASK], and the sentence with the chosen guesses in it.

import { bar, el, percent } from "./dom.js";
import { say } from "./words.js";

const MASK = "[MASK]";

export const fillMask = {
  id: "fill-mask",
  fields: () => [{ name: "text", label: say("text"), rows: 3 }],
  examples: {
    en: [
      { text: "The function returns a [MASK] of strings." },
      { text: "She opened the [MASK] and looked out into the garden." },
      { text: "Raises an [MASK] if the file does not [MASK]." },
    ],
    zh: [{ text: "北京是中国的[MASK]都。" }, { text: "今天天气很[MASK]，我们去公园吧。" }, { text: "他每天早上喝一杯[MASK]。" }],
  },
  adapt: (one, model) => ({ text: one.text.replaceAll(MASK, model.mask) }),
  hint: (values, model) => (split(values.text, model).length < 2 ? say("fill-mask.hint", { mask: model.mask }) : null),
  body: (values) => ({ inputs: [values.text], top_k: 8 }),
  tools: (panel) => el("button", { type: "button", onclick: () => insert(panel) }, say("fill-mask.insert", { mask: panel.model.mask })),
  show,
};

function split(text, model) {
  return (text ?? "").replaceAll(model.mask, MASK).split(MASK);
}

function insert(panel) {
  const box = panel.boxes.text;
  const { selectionStart: start, selectionEnd: end, value } = box;
  box.setRangeText(panel.model.mask, start, end, "end");
  if (box.value !== value) box.dispatchEvent(new Event("input", { bubbles: true }));
  box.focus();
}

function show([result], { values, model }) {
  const parts = split(values.text, model);
  const picked = result.gaps.map(() => 0);
  const sentence = el("p", { class: "sentence", dir: "auto" });
  const lists = result.gaps.map(() => el("ul", { class: "bars" }));
  const draw = () => {
    sentence.replaceChildren(...parts.flatMap((part, number) =>
      number < result.gaps.length ? [part, el("mark", { class: "gap" }, result.gaps[number][picked[number]].text)] : [part]));
    lists.forEach((list, number) => {
      const focused = list.contains(document.activeElement) ? picked[number] : null;
      list.replaceChildren(...result.gaps[number].map((guess, place) =>
        bar({ name: guess.text, probability: guess.probability, isBest: place === 0, isPicked: place === picked[number],
          pick: () => { picked[number] = place; draw(); list.querySelectorAll("button")[place].focus(); } })));
      if (focused !== null) list.querySelectorAll("button")[focused]?.focus();
    });
  };
  draw();
  const groups = lists.map((list, number) => el("div", { class: "group" },
    lists.length > 1 && el("h2", {}, say("fill-mask.gap", { n: number + 1 })), list));
  const best = result.gaps[0][0];
  return {
    nodes: [sentence, el("p", { class: "soft small" }, say("best_of_all")), el("div", { class: "groups" }, groups)],
    spoken: say("fill-mask.say", { word: best.text, p: percent(best.probability) }),
  };
}
