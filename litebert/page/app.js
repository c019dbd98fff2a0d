// The page: header with model, language and colours; a tab for each function that the chosen model has.
//
// It is the same for a server (serve/page) and for a folder without one (export/page): each has an api.js that answers,
// and a main.js that starts the page.

import { listModels } from "./api.js";
import { el } from "./dom.js";
import { buildAlert, buildPanel } from "./panel.js";
import { getLanguage, say, setLanguage } from "./words.js";

const THEMES = ["auto", "light", "dark"];
const SYMBOLS = { auto: "◐", light: "☀", dark: "☾" };
const WINDOWED = ["answer", "tokens"]; // functions that read a text of any length
const LANGUAGE = "litebert-language";
const THEME = "litebert-theme";

const page = { parts: null, models: [], model: null, chosen: null, states: {} };

/** `views` that there are, in their order; `privacy`, the key of what is said about it; `links`: [{href, words}]. */
export function start(parts) {
  page.parts = parts;
  setLanguage(localStorage.getItem(LANGUAGE) ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
  setTheme(localStorage.getItem(THEME) ?? "auto");
  window.addEventListener("hashchange", () => chooseView(location.hash.slice(1)));
  const redraw = () => document.dispatchEvent(new CustomEvent("litebert-colours"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  window.addEventListener("resize", redraw);
  load();
}

export async function load() {
  build();
  const main = document.getElementById("main");
  main.replaceChildren(el("p", { class: "soft late", role: "status" }, say("loading")));
  try {
    page.models = (await listModels()).models;
  } catch (error) {
    if (error.code === "unauthorized") document.dispatchEvent(new CustomEvent("litebert-unauthorized"));
    else main.replaceChildren(buildAlert(error));
    return;
  }
  page.model = page.models[0];
  page.chosen = location.hash.slice(1);
  build();
}

function build() {
  document.title = page.model ? `${page.model.name} · litebert` : "litebert";
  const skip = document.getElementById("skip");
  skip.textContent = say("skip");
  skip.onclick = (event) => { // the hash says which function is shown: it stays
    event.preventDefault();
    document.getElementById("panel")?.focus();
  };
  buildTop();
  buildFoot();
  if (page.model) buildMain();
}

function buildTop() {
  const controls = el("div", { class: "controls" },
    page.models.length > 1 && buildPicker(),
    el("button", { type: "button", class: "plain", lang: getLanguage() === "zh" ? "en" : "zh-Hans", title: say("language_label"),
      id: "language", onclick: switchLanguage }, say("language")),
    el("button", { type: "button", class: "plain symbol", id: "theme", onclick: switchTheme, "aria-label": say(`theme_${getTheme()}`),
      title: say(`theme_${getTheme()}`) }, SYMBOLS[getTheme()]));
  const brand = el("div", { class: "brand" }, el("img", { src: new URL("./icon.svg", import.meta.url), alt: "", width: 34, height: 34 }),
    el("div", {}, el("h1", {}, "litebert"), el("p", { class: "soft small" }, say("tagline"))));
  document.getElementById("top").replaceChildren(brand, controls);
}

function buildPicker() {
  const options = page.models.map((model) => {
    const option = el("option", { value: model.name }, model.name);
    option.selected = model === page.model;
    return option;
  });
  const pick = (event) => {
    page.model = page.models.find((model) => model.name === event.target.value);
    build();
    document.getElementById("model").focus();
  };
  return el("label", { class: "picker" }, el("span", { class: "small soft" }, say("model")), el("select", { id: "model", onchange: pick }, options));
}

function buildFacts() {
  const model = page.model;
  const number = new Intl.NumberFormat(getLanguage(), { notation: "compact", maximumSignificantDigits: 3 });
  const facts = [
    `${number.format(model.num_parameters)} ${say("parameters")}`,
    model.num_layers === 1 ? say("layers_one") : say("layers", { n: model.num_layers }),
    say(model.functions.some((name) => WINDOWED.includes(name)) ? "reads_windows" : "reads", { n: model.max_length }),
    model.task && say("task", { task: model.task }),
  ];
  return el("p", { class: "facts soft small" }, el("strong", {}, model.name), ...facts.filter(Boolean).map((fact) => ` · ${fact.replaceAll(" ", "\u00a0")}`));
}

function buildMain() {
  const views = page.parts.views.filter((view) => page.model.functions.includes(view.id));
  if (!views.some((view) => view.id === page.chosen)) page.chosen = views[0].id;
  const tabs = views.map((view) => {
    const isChosen = view.id === page.chosen;
    return el("button", { type: "button", role: "tab", id: `tab-${view.id}`, "aria-controls": "panel", "aria-selected": String(isChosen),
      tabindex: isChosen ? 0 : -1, onclick: () => chooseView(view.id, true) }, say(view.id));
  });
  const list = el("div", { class: "tabs", role: "tablist", "aria-label": say("functions"), onkeydown: moveAlong }, tabs);
  const view = views.find((one) => one.id === page.chosen);
  const key = `${page.model.name}/${view.id}`;
  const panel = el("section", { class: "card", id: "panel", role: "tabpanel", "aria-labelledby": `tab-${view.id}`, tabindex: -1 },
    buildPanel(view, page.model, (page.states[key] ??= {})));
  document.getElementById("main").replaceChildren(buildFacts(), list, panel);
  // not scrollIntoView: from there the first Tab would go on, past the skip link
  const chosen = list.querySelector("[aria-selected=true]");
  list.scrollLeft = chosen.offsetLeft - (list.clientWidth - chosen.offsetWidth) / 2;
}

function moveAlong(event) {
  const tabs = [...event.currentTarget.querySelectorAll("[role=tab]")];
  const at = tabs.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (to === undefined || at < 0) return;
  event.preventDefault();
  chooseView(tabs[(to + tabs.length) % tabs.length].id.slice("tab-".length), true);
}

function chooseView(id, isByHand = false) {
  if (!page.model?.functions.includes(id) || id === page.chosen) return;
  page.chosen = id;
  history.replaceState(null, "", `#${id}`);
  buildMain();
  if (isByHand) document.getElementById(`tab-${id}`).focus();
}

function buildFoot() {
  document.getElementById("foot").replaceChildren(
    el("p", { class: "soft small" }, say(page.parts.privacy)),
    ...page.parts.links.map(({ href, words }) => el("p", { class: "small" }, el("a", { href }, say(words)))));
}

function switchLanguage() {
  setLanguage(getLanguage() === "zh" ? "en" : "zh");
  localStorage.setItem(LANGUAGE, getLanguage());
  build();
  document.getElementById("language").focus();
}

function getTheme() {
  return document.documentElement.dataset.theme;
}

function setTheme(theme) {
  document.documentElement.dataset.theme = THEMES.includes(theme) ? theme : "auto";
}

function switchTheme() {
  setTheme(THEMES[(THEMES.indexOf(getTheme()) + 1) % THEMES.length]);
  localStorage.setItem(THEME, getTheme());
  buildTop();
  document.getElementById("theme").focus();
  document.dispatchEvent(new CustomEvent("litebert-colours"));
}
