// Classify and choose: one answer in large letters, and a bar for each that was possible.

import { bar, el, percent, splitLines } from "./dom.js";
import { has, say } from "./words.js";

export const classify = {
  id: "classify",
  fields: (model) => [
    { name: "text", label: say("text"), rows: 3 },
    model.num_texts === 2 && { name: "second", label: say("second"), rows: 2 },
    model.num_texts === 0 && { name: "second", label: say("second_if_pair"), rows: 2, optional: true },
  ].filter(Boolean),
  examples: {
    pair_zh: [
      { text: "一个男人在街上弹吉他。", second: "有人在演奏音乐。" },
      { text: "你多大了？", second: "你的年龄是多少？" },
    ],
    pair_en: [
      { text: "A man is playing a guitar on the street.", second: "Somebody is making music." },
      { text: "How old are you?", second: "What is your age?" },
      { text: "The company was founded in 1987.", second: "When did the company begin?" },
    ],
    en: [
      { text: "A charming and often affecting journey." },
      { text: "What a dull, lifeless waste of two hours." },
      { text: "The plot is thin, but the actors are a joy to watch." },
    ],
    zh: [{ text: "这部电影太好看了，推荐给大家。" }, { text: "服务很差，再也不会来了。" }],
  },
  toValues: (input) => (Array.isArray(input) ? { text: input[0], second: input[1] } : { text: input }),
  kind: (model) => (model.num_texts === 2 ? `pair_${model.language}` : model.language),
  hint: (values, model) => {
    if (!values.text?.trim()) return say("empty");
    return model.num_texts === 2 && !values.second?.trim() ? say("classify.hint") : null;
  },
  body: (values, state) => ({
    inputs: [values.second?.trim() ? [values.text, values.second] : values.text],
    patience: state.patience ?? 0,
  }),
  tools: (panel) => panel.model.has_exits && buildPatience(panel),
  show: showLabels,
};

function buildPatience(panel) {
  // with a patience of n at least n + 1 layers are computed: more than these would save none
  const options = Array.from({ length: Math.max(1, panel.model.num_layers - 1) }, (_, patience) => {
    const option = el("option", { value: patience }, patience ? String(patience) : say("classify.all_layers"));
    option.selected = patience === (panel.state.patience ?? 0);
    return option;
  });
  const pick = (event) => {
    panel.state.patience = Number(event.target.value);
    panel.rerun();
  };
  return el("div", { class: "field inline" }, el("label", { for: "patience", title: say("classify.patience_hint") }, say("classify.patience")),
    el("select", { id: "patience", title: say("classify.patience_hint"), onchange: pick }, options));
}

export const choose = {
  id: "choose",
  fields: () => [
    { name: "context", label: say("passage"), rows: 4 },
    { name: "question", label: say("question"), rows: 1 },
    { name: "choices", label: say("choices"), rows: 4 },
  ],
  examples: {
    en: [
      {
        context: "It had rained all night. In the morning the children put on their boots and ran out to jump into every puddle they could find.",
        question: "The children went out to _ .",
        choices: "play in the water\nbuy new boots\nlook for shelter\ngo to school",
      },
      {
        context: "The baker rises at three. By the time the village wakes, the shelves are full and the ovens are cooling down.",
        question: "When does the baker begin to work?",
        choices: "Before the others wake up.\nWhen the village wakes.\nIn the afternoon.\nAfter dinner.",
      },
    ],
    zh: [
      {
        context: "昨晚下了一夜的雨。早上，孩子们穿上雨靴，跑出去踩每一个水坑。",
        question: "孩子们出去做什么？",
        choices: "踩水玩\n买新靴子\n躲雨\n上学",
      },
    ],
  },
  toValues: ({ context, question, choices }) => ({ context, question, choices: choices.join("\n") }),
  chip: (one) => one.question || one.choices.split("\n")[0],
  hint: (values) => {
    const n = choiceLines(values).length;
    if (n > MAX_CHOICES) return say("choose.too_many", { n, most: MAX_CHOICES });
    return n < 2 ? say("choose.hint") : null;
  },
  body: (values) => ({ inputs: [{ context: values.context ?? "", question: values.question ?? "", choices: choiceLines(values) }] }),
  show: showChoices,
};

const MAX_CHOICES = 16;
const choiceLines = (values) => splitLines(values.choices);

/** GLUE's labels are numbers for some tasks: say what they mean. */
function nameLabel(label, model) {
  const key = `label.${model.task}.${label}`;
  return has(key) ? say(key) : label;
}

function showLabels([result], { model }) {
  const entries = Object.entries(result.probabilities).sort((a, b) => b[1] - a[1]);
  if (!entries.length) {
    const number = new Intl.NumberFormat(undefined, { maximumFractionDigits: 3 }).format(result.label);
    return { nodes: [el("p", { class: "verdict" }, number), el("p", { class: "soft" }, say("classify.number"))], spoken: number };
  }
  const isSet = Array.isArray(result.label);
  const label = isSet ? result.label.join(", ") || say("classify.none") : nameLabel(String(result.label), model);
  const isBest = (name) => (isSet ? result.label.includes(name) : name === result.label);
  const bars = entries.map(([name, probability]) => bar({ name: nameLabel(name, model), probability, isBest: isBest(name), level: isSet ? 0.5 : null }));
  return {
    nodes: [el("p", { class: "verdict" }, label), el("p", { class: "soft small" }, say(isSet ? "each_alone" : "shares")), el("ul", { class: "bars" }, bars)],
    spoken: say("classify.say", { label, p: percent(entries[0][1]) }),
  };
}

function showChoices([result], { values }) {
  const names = choiceLines(values);
  const bars = result.probabilities.map((probability, number) =>
    bar({ name: names[number], probability, isBest: number === result.number }));
  return {
    nodes: [el("p", { class: "verdict" }, result.text), el("p", { class: "soft small" }, say("shares")), el("ul", { class: "bars long" }, bars)],
    spoken: say("choose.say", { text: result.text, p: percent(result.probabilities[result.number]) }),
  };
}
