// The page around the model: one text field, one button, bars.

import { MASK, loadModel } from "./model.js";

const WORDS = {
  en: {
    loading: "Loading the model…",
    note: "Everything is computed in this browser; nothing you type is sent anywhere.",
    fill: "Guess the word",
    classify: "Classify",
    order: "Which comes first?",
    follows: ["A, then B", "B, then A"],
    text: "Text",
    first: "A",
    then: "B",
    second: "Second text",
    secondIfPair: "Second text (if it is a pair)",
    noPair: "Two texts are needed.",
    noMask: `Write ${MASK} in the place of the word to guess.`,
    tooLong: "The text is too long for this model.",
    failed: "The model could not be loaded: ",
    empty: "Write some text first.",
    took: (ms) => `${ms} ms`,
  },
  zh: {
    loading: "正在加载模型…",
    note: "一切都在本浏览器中计算，您输入的内容不会发送到任何地方。",
    fill: "猜词",
    classify: "分类",
    order: "哪一句在前？",
    follows: ["先 A 后 B", "先 B 后 A"],
    text: "文本",
    first: "A",
    then: "B",
    second: "第二段文本",
    secondIfPair: "第二段文本（若为句对）",
    noPair: "需要两段文本。",
    noMask: `请在要猜的词的位置写上 ${MASK}。`,
    tooLong: "文本超过了模型的长度。",
    failed: "模型无法加载：",
    empty: "请先输入文本。",
    took: (ms) => `${ms} 毫秒`,
  },
};
const words = navigator.language.startsWith("zh") ? WORDS.zh : WORDS.en;
const find = (id) => document.getElementById(id);

function show(message, isError = false) {
  find("status").textContent = message;
  find("status").classList.toggle("error", isError);
}

function bar(name, share) {
  const row = document.createElement("li");
  const label = document.createElement("span");
  const track = document.createElement("meter");
  const number = document.createElement("span");
  label.textContent = name;
  label.className = "name";
  track.max = 1;
  track.value = share;
  track.setAttribute("aria-hidden", "true");
  number.textContent = `${(100 * share).toFixed(1)} %`;
  number.className = "share";
  row.append(label, track, number);
  return row;
}

function list(rows) {
  const bars = document.createElement("ol");
  bars.append(...rows);
  return bars;
}

const asWord = (piece) => piece.replace(/^▁/, "").replace(/^##/, "…") || "␣";

async function answer(model) {
  find("results").replaceChildren(); // what stood there was the answer to another text
  const text = find("text").value;
  if (!text.trim()) return show(words.empty, true);
  const startedAt = performance.now();
  let results;
  try {
    results = await ANSWERS[model.facts.head](model, text, find("second").value.trim());
  } catch (error) {
    const known = { "no mask": words.noMask, "too long": words.tooLong, "no pair": words.noPair }[error.message];
    return show(known ?? String(error), true);
  }
  find("results").replaceChildren(...results);
  return show(words.took(Math.round(performance.now() - startedAt)));
}

// for each head what is shown of its answer
const ANSWERS = {
  async mlm(model, text) {
    const guesses = await model.fillMask(text);
    return guesses.map((some) => list(some.map(({ piece, probability }) => bar(asWord(piece), probability))));
  },
  async sentence(model, text, second) {
    const share = await model.order(text, second);
    return [list([bar(words.follows[0], share), bar(words.follows[1], 1 - share)])];
  },
  async classification(model, text, second) {
    const found = await model.classify(text, second);
    if (found.labels) return [list(found.labels.map(({ label, probability }) => bar(label, probability)))];
    const number = document.createElement("p");
    number.textContent = found.number.toFixed(3);
    return [number];
  },
};

async function start() {
  document.documentElement.lang = words === WORDS.zh ? "zh" : "en";
  show(words.loading);
  let model;
  try {
    model = await loadModel();
  } catch (error) {
    return show(words.failed + error.message, true);
  }
  globalThis.model = model; // for those who look from the console
  const { head, title, num_texts: numTexts } = model.facts;
  document.title = title;
  find("title").textContent = title;
  find("text-label").textContent = head === "sentence" ? words.first : words.text;
  find("second-label").textContent = head === "sentence" ? words.then : numTexts === 2 ? words.second : words.secondIfPair;
  find("go").textContent = { mlm: words.fill, sentence: words.order, classification: words.classify }[head];
  find("pair").hidden = numTexts === 1;
  find("text").value = model.facts.example;
  find("go").disabled = false;
  find("form").addEventListener("submit", (event) => {
    event.preventDefault();
    answer(model);
  });
  find("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) answer(model);
  });
  find("note").textContent = words.note;
  return show("");
}

start();
