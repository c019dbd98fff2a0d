// Answer: the passage with the answer marked where it stands, and what came next best.

import { bar, el, percent, slicer } from "./dom.js";
import { say } from "./words.js";

export const answer = {
  id: "answer",
  fields: () => [
    { name: "question", label: say("question"), rows: 1 },
    { name: "context", label: say("passage"), rows: 6 },
  ],
  examples: {
    en: [
      {
        question: "What was the first person to walk on the Moon called?",
        context: "Apollo 11 landed on the Moon on 20 July 1969. Its commander, Neil Armstrong, was the first person to step onto the surface. Buzz Aldrin joined him nineteen minutes later, while Michael Collins stayed in orbit.",
      },
      {
        question: "Who was Armstrong joined by?",
        context: "Apollo 11 landed on the Moon on 20 July 1969. Its commander, Neil Armstrong, was the first person to step onto the surface. Buzz Aldrin joined him nineteen minutes later, while Michael Collins stayed in orbit.",
      },
      {
        question: "When is the bakery open?",
        context: "The bakery on Mill Street is open from six in the morning until noon. On Sundays it stays closed, and the baker goes fishing with her brother.",
      },
    ],
    zh: [
      {
        question: "故宫建于哪一年？",
        context: "故宫位于北京市中心，始建于1406年，历时十四年建成。明清两代共有二十四位皇帝在此居住。今天它是故宫博物院，每年接待上千万游客。",
      },
    ],
  },
  toValues: (input) => input,
  hint: (values) => (values.question?.trim() && values.context?.trim() ? null : say("answer.hint")),
  body: (values) => ({ inputs: [{ question: values.question, context: values.context }] }),
  show,
};

function show([result], { values }) {
  const found = result.answer;
  const cut = slicer(values.context);
  const passage = el("p", { class: "passage", dir: "auto" },
    found ? [cut(0, found.start), el("mark", { class: "answer" }, cut(found.start, found.end)), cut(found.end)] : values.context);
  const others = result.others.length > 0 && el("details", {}, el("summary", {}, say("answer.others")),
    el("ul", { class: "bars long" }, result.others.map((span) => bar({ name: span.text, probability: span.probability }))));
  const verdict = el("p", { class: "verdict" }, found ? found.text : say("answer.none"));
  const sureness = found && el("p", { class: "soft small" }, say("probability", { p: percent(found.probability) }));
  return {
    nodes: [verdict, sureness, passage, others].filter(Boolean),
    spoken: found ? say("answer.say", { text: found.text, p: percent(found.probability) }) : say("answer.none"),
  };
}
