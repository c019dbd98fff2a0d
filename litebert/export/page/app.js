// The page around the model: one text field, one button, bars.

import { MASK, loadModel } from "./model.js";

const WORDS = {
  en: {
    loading: "Loading the model…",
    note: "Everything is computed in this browser; nothing you type is sent anywhere.",
    fill: "Guess the word",
    classify: "Classify",
    text: "Text",
    second: "Second text (if the model reads pairs)",
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
    text: "文本",
    second: "第二段文本（若模型读取句对）",
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
  const text = find("text").value;
  if (!text.trim()) return show(words.empty, true);
  const startedAt = performance.now();
  let results;
  try {
    if (model.facts.head === "mlm") {
      const guesses = await model.fillMask(text);
      results = guesses.map((some) => list(some.map(({ piece, probability }) => bar(asWord(piece), probability))));
    } else {
      const found = await model.classify(text, find("second").value.trim());
      const number = document.createElement("p");
      number.textContent = found.number?.toFixed(3);
      results = [found.labels ? list(found.labels.map(({ label, probability }) => bar(label, probability))) : number];
    }
  } catch (error) {
    const known = { "no mask": words.noMask, "too long": words.tooLong }[error.message];
    return show(known ?? String(error), true);
  }
  find("results").replaceChildren(...results);
  return show(words.took(Math.round(performance.now() - startedAt)));
}

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
  const isFilling = model.facts.head === "mlm";
  document.title = model.facts.title;
  find("title").textContent = model.facts.title;
  find("text-label").textContent = words.text;
  find("second-label").textContent = words.second;
  find("go").textContent = isFilling ? words.fill : words.classify;
  find("pair").hidden = isFilling;
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
