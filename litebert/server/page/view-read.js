// Attention of the selected token in a layer, the whole attention map, and how far each layer moves tokens.

import { lineChart } from "./chart.js";
import { el } from "./dom.js";
import { drawMap, readable } from "./heat.js";
import { say } from "./words.js";

export const read = {
  id: "read",
  fields: () => [
    { name: "text", label: say("text"), rows: 2 },
    { name: "second", label: say("second_if_pair"), rows: 2, optional: true },
  ],
  examples: {
    en: [
      { text: "The function returns a list of strings." },
      { text: "He put the key into the lock.", second: "Then he pushed the door open." },
      { text: "The trophy does not fit into the suitcase because it is too large." },
    ],
    zh: [{ text: "他把钥匙插进锁里，然后推开了门。" }, { text: "今天天气很好，我们去公园吧。" }],
  },
  hint: (values) => (values.text?.trim() ? null : say("empty")),
  body: (values, state) => ({
    inputs: [values.second?.trim() ? [values.text, values.second] : values.text],
    head: state.head ?? null,
  }),
  show,
};

let shown = null; // the current map's listener; the previous map's would keep its whole trace alive

function show([trace], { model, state, panel }) {
  state.layer = Math.min(state.layer ?? 0, trace.layers.length - 1);
  state.token = Math.min(state.token ?? 1, trace.tokens.length - 1);
  const chips = el("ul", { class: "tokens", role: "listbox", "aria-label": say("read.tokens") });
  const map = el("div", { class: "map" });
  const charts = el("div", { class: "charts" });
  const drawHeat = () => drawMap(map, trace, state, choose, { label: mapLabel(trace, state), room: panel.output.clientWidth });
  const draw = () => {
    drawChips(chips, trace, state, choose);
    drawHeat();
    charts.replaceChildren(...drawCharts(trace, state));
  };
  const choose = (token, isFocused) => {
    state.token = token;
    draw();
    if (isFocused) chips.children[token].focus();
  };
  chips.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    choose((state.token + step + trace.tokens.length) % trace.tokens.length, true);
  });
  draw();
  shown?.abort();
  shown = new AbortController();
  // a canvas keeps the colours and the width it was drawn with
  document.addEventListener("litebert-colours", () => map.isConnected && drawHeat(), { signal: shown.signal });
  return {
    nodes: [
      trace.is_cut && el("p", { class: "note small" }, say("read.cut")),
      el("div", { class: "reading-controls" }, buildLayers(trace, state, draw), buildHeads(model, state, panel)),
      section(say("read.tokens"), say("read.tokens_hint"), chips),
      el("div", { class: "beside" }, section(say("read.map"), say("read.map_hint"), map),
        section(say("read.figure"), say("read.figure_hint"), charts)),
    ].filter(Boolean),
    spoken: say("read.say", { n: trace.tokens.length, layers: trace.layers.length }),
  };
}

function section(title, hint, content) {
  return el("section", { class: "part" }, el("h2", {}, title), el("p", { class: "soft small" }, hint), content);
}

function buildLayers(trace, state, draw) {
  const count = trace.layers.length;
  const shown = el("output", { for: "layer" }, `${state.layer + 1} / ${count}`);
  const slider = el("input", { type: "range", id: "layer", min: 1, max: count, value: state.layer + 1, disabled: count === 1 });
  slider.addEventListener("input", () => {
    state.layer = Number(slider.value) - 1;
    shown.textContent = `${slider.value} / ${count}`;
    draw();
  });
  return el("div", { class: "field inline" }, el("label", { for: "layer" }, say("read.layer")), slider, shown);
}

function buildHeads(model, state, panel) {
  const options = [null, ...Array(model.num_heads).keys()].map((head) => {
    const option = el("option", { value: head ?? "" }, head === null ? say("read.mean") : String(head + 1));
    option.selected = head === (state.head ?? null);
    return option;
  });
  const pick = (event) => {
    state.head = event.target.value === "" ? null : Number(event.target.value);
    panel.rerun();
  };
  return el("div", { class: "field inline" }, el("label", { for: "head" }, say("read.head")), el("select", { id: "head", onchange: pick }, options));
}

function drawChips(list, trace, state, choose) {
  const { attention, l2 } = trace.layers[state.layer];
  const looked = attention[state.token];
  const most = Math.max(...looked);
  const furthest = Math.max(...trace.layers.flatMap((layer) => layer.l2));
  list.replaceChildren(...trace.tokens.map((token, at) => {
    const isChosen = at === state.token;
    return el("li", { role: "option", "aria-selected": String(isChosen), tabindex: isChosen ? 0 : -1, onclick: () => choose(at, true),
      class: `token${token.is_special ? " special" : ""}`,
      "aria-label": `${readable(token.piece)} ${(100 * looked[at]).toFixed(0)} %`,
      style: { "--share": (looked[at] / most).toFixed(3) } },
      el("span", {}, readable(token.piece)),
      el("i", { "aria-hidden": "true", style: { width: `${(100 * l2[at]) / furthest}%` } }));
  }));
}

function mapLabel(trace, state) {
  const row = trace.layers[state.layer].attention[state.token];
  const to = row.indexOf(Math.max(...row));
  return say("read.map_label", { n: trace.tokens.length, layer: state.layer + 1, from: trace.tokens[state.token].piece, to: trace.tokens[to].piece });
}

function drawCharts(trace, state) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const name = readable(trace.tokens[state.token].piece);
  return ["l2", "degrees"].map((kind) => {
    const faint = trace.tokens.map((_, token) => ({ values: trace.layers.map((layer) => layer[kind][token]), kind: "faint" }));
    return lineChart(say(`read.${kind}`), [
      ...faint,
      { name: say("read.all"), values: trace.layers.map((layer) => mean(layer[kind])), kind: "mean" },
      { name, values: trace.layers.map((layer) => layer[kind][state.token]), kind: "token" },
    ]);
  });
}
