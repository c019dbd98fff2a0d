// One function of a model as a form and its answer: fields, examples, asking while one types, errors.

import { ask } from "./api.js";
import { el } from "./dom.js";
import { getLanguage, has, say } from "./words.js";

const WAIT_WHILE_TYPING = 450; // milliseconds
const WAIT_UNTIL_TOLD = 1500; // milliseconds after which a screen reader hears that it takes long
const TELLING = ["invalid", "too_long", "too_large", "too_many", "not_loaded"]; // refusals whose message says more than their code

/**
 * A view describes a function:
 *   fields(model)            [{name, label, rows, optional}]
 *   examples[language]       [{name: value, ...}]; kind(model) chooses others, chip(example) names one
 *   toValues(input)          the fields' values for an input as the server takes it: the model's own examples come so
 *   hint(values, model)      why it cannot be asked yet, or null
 *   body(values, state)      what is sent
 *   show(results, context)   {nodes, spoken}: what is shown, and what a screen reader hears
 * `state` lives as long as the page; `values` are in it.
 */
export function buildPanel(view, model, state) {
  state.values ??= { ...examplesFor(view, model)[0] };
  const status = el("p", { class: "status", role: "status", "aria-live": "polite" });
  const output = el("div", { class: "output", id: `output-${view.id}` });
  const form = el("form", { class: "form", novalidate: true });
  const panel = { view, model, state, status, output, timer: null, running: null };
  const boxes = view.fields(model).map((field) => buildField(panel, field));
  panel.boxes = Object.fromEntries(boxes.map(({ name, box }) => [name, box]));
  const button = el("button", { type: "submit", class: "primary" }, say("run"));
  form.append(
    ...boxes.map(({ node }) => node),
    el("div", { class: "actions" }, button, view.tools?.(panel), el("span", { class: "soft small wide-only" }, say("run_hint"))),
    buildExamples(panel),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run(panel, true);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run(panel, true);
    }
  });
  panel.rerun = () => run(panel, false);
  panel.set = (values) => setValues(panel, values);
  output.append(el("p", { class: "soft" }, say("empty")));
  queueMicrotask(() => run(panel, false));
  return [el("p", { class: "about" }, say(`${view.id}.about`, { mask: model.mask })), form, status, output];
}

function examplesFor(view, model) {
  const own = model.examples?.[view.id];
  if (own?.length) return own.map(view.toValues);
  return view.examples[view.kind?.(model) ?? model.language].map((one) => (view.adapt ? view.adapt(one, model) : one));
}

function buildField(panel, { name, label, rows = 2, optional = false }) {
  const id = `field-${panel.view.id}-${name}`;
  const box = el("textarea", { id, rows, spellcheck: "false", dir: "auto", "aria-controls": panel.output.id });
  box.value = panel.state.values[name] ?? "";
  box.addEventListener("input", () => {
    panel.state.values[name] = box.value;
    clearTimeout(panel.timer);
    panel.timer = setTimeout(() => run(panel, false), WAIT_WHILE_TYPING);
  });
  const field = el("div", { class: "field" }, el("label", { for: id }, label), box);
  if (!optional) return { name, box, node: field };
  // a native disclosure: keyboard and screen readers know it
  const details = el("details", { class: "optional" }, el("summary", {}, say("add_second")), field);
  details.open = Boolean(box.value);
  return { name, box, node: details };
}

function buildExamples(panel) {
  const examples = examplesFor(panel.view, panel.model);
  if (examples.length < 2) return null;
  const buttons = examples.map((one) =>
    el("button", { type: "button", class: "chip", dir: "auto", onclick: () => panel.set({ ...one }) }, panel.view.chip?.(one) ?? Object.values(one)[0].split("\n")[0]));
  return el("div", { class: "examples" }, el("span", { class: "soft small" }, say("try")), ...buttons);
}

function setValues(panel, values) {
  panel.state.values = { ...values };
  for (const [name, box] of Object.entries(panel.boxes)) {
    box.value = values[name] ?? "";
    const details = box.closest("details");
    if (details) details.open = Boolean(box.value);
  }
  run(panel, true);
}

async function run(panel, isWished) {
  clearTimeout(panel.timer);
  const { view, model, state } = panel;
  panel.running?.abort();
  const hint = view.hint?.(state.values, model);
  if (hint) {
    panel.output.replaceChildren(el("p", { class: "soft" }, hint));
    tell(panel, isWished ? hint : "");
    return;
  }
  const abort = (panel.running = new AbortController());
  panel.output.setAttribute("aria-busy", "true");
  panel.output.dataset.working = say("working");
  const slow = setTimeout(() => tell(panel, say("working")), WAIT_UNTIL_TOLD);
  const report = (part, total) => { panel.output.dataset.working = say("working_part", { part, total }); };
  try {
    const results = await ask(view.id, { model: model.name, ...view.body(state.values, state) }, abort.signal, report);
    if (abort.signal.aborted) return;
    const { nodes, spoken } = view.show(results, { values: { ...state.values }, model, state, panel });
    const focused = panel.output.contains(document.activeElement) ? document.activeElement.id : "";
    const numCut = Math.max(0, ...results.map((result) => result.num_cut ?? 0));
    panel.output.replaceChildren(...nodes, ...(numCut ? [el("p", { class: "soft cut" }, say("cut", { n: numCut }))] : []));
    if (focused) document.getElementById(focused)?.focus();
    tell(panel, spoken);
  } catch (error) {
    if (error.name !== "AbortError") showError(panel, error);
  } finally {
    clearTimeout(slow);
    if (panel.running === abort) panel.output.removeAttribute("aria-busy");
  }
}

function tell(panel, words) {
  panel.status.textContent = words;
}

function showError(panel, error) {
  tell(panel, "");
  panel.output.replaceChildren(buildAlert(error));
  if (error.code === "unauthorized") document.dispatchEvent(new CustomEvent("litebert-unauthorized"));
}

/** What went wrong, in the page's own words where it has some; the message adds what a person can use. */
export function buildAlert(error) {
  const known = `error.${error.code}`;
  const message = has(known) ? say(known) : error.message;
  const adds = has(known) && error.message && TELLING.includes(error.code);
  // what the server says is English, whatever the page speaks
  const lang = getLanguage() === "en" ? null : "en";
  return el("div", { class: "alert", role: "alert" }, el("strong", {}, message), adds && el("span", { class: "small", lang }, error.message));
}
