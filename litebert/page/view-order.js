// Order: how probable A before B is, with a button that swaps them.

import { el, percent } from "./dom.js";
import { say } from "./words.js";

const SURE = 0.65;

export const order = {
  id: "order",
  fields: () => [
    { name: "a", label: say("first"), rows: 2 },
    { name: "b", label: say("then"), rows: 2 },
  ],
  examples: {
    en: [
      { a: "He put the key into the lock and turned it.", b: "Then he pushed the door open and went inside." },
      { a: "Return a new list with the items of the iterable in order.", b: "The reverse argument can be used to sort in descending order instead." },
    ],
    zh: [{ a: "他把钥匙插进锁里，转了一圈。", b: "然后他推开门，走了进去。" }],
  },
  hint: (values) => (values.a?.trim() && values.b?.trim() ? null : say("order.hint")),
  body: (values) => ({ inputs: [[values.a, values.b], [values.b, values.a]] }),
  tools: (panel) => el("button", { type: "button", class: "swap",
    onclick: () => panel.set({ a: panel.state.values.b, b: panel.state.values.a }) },
    el("span", { "aria-hidden": "true" }, "⇅ "), say("order.swap")),
  show,
};

function show([given, swapped]) {
  const p = given.probability;
  const verdict = p >= SURE ? say("order.right") : p <= 1 - SURE ? say("order.wrong") : say("order.unsure");
  return {
    nodes: [el("p", { class: "verdict" }, verdict), el("p", { class: "soft small" }, say("order.scale")), scale(say("order.ab"), p, true), scale(say("order.ba"), swapped.probability, false)],
    spoken: say("order.say", { p: percent(p) }),
  };
}

/** From "wrong" at the left over the middle to "right". */
function scale(name, probability, isGiven) {
  return el("div", { class: `scale${isGiven ? " given" : ""}` },
    el("span", { class: "name" }, name),
    el("span", { class: "track", "aria-hidden": "true" }, el("i", { style: { width: `${100 * probability}%` } }), el("b", {})),
    el("span", { class: "value" }, percent(probability)));
}
