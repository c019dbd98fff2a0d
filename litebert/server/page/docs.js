// API documentation, rendered from /openapi.json without external resources: each endpoint, its example, a form to try it.

import { getLanguage, say, setLanguage } from "./docs-words.js";
import { el } from "./dom.js";

async function start() {
  const api = await (await fetch("openapi.json")).json();
  draw(api);
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

function draw(api) {
  const isChinese = getLanguage() === "zh";
  document.documentElement.lang = isChinese ? "zh-Hans" : "en";
  document.getElementById("version").textContent = `${say("version")} ${api.info.version}`;
  document.getElementById("playground").textContent = say("Playground");
  const button = document.getElementById("language");
  button.textContent = say("中文");
  button.lang = isChinese ? "en" : "zh-Hans";
  button.onclick = () => {
    setLanguage(isChinese ? "en" : "zh");
    draw(api);
  };
  const about = el("p", { class: "soft" }, ...code(say(api.info.description)));
  const calls = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, call]) => drawCall(api, path, method, call)));
  document.getElementById("main").replaceChildren(about, ...calls);
}

function drawCall(api, path, method, call) {
  const schema = resolve(api, call.requestBody?.content["application/json"].schema);
  const example = call.requestBody?.content["application/json"].example;
  const answer = call.responses["200"].content?.["application/json"]?.schema;
  return el("section", { class: "card call", id: path.slice(1).replaceAll("/", "-") },
    el("h2", {}, el("span", { class: "method" }, method.toUpperCase()), " ", path),
    el("p", {}, ...code(say(call.summary))),
    schema && [el("h3", {}, say("Request")), drawSchema(api, schema)],
    answer && [el("h3", {}, say("Answer")), drawSchema(api, resolve(api, answer))],
    drawRefusals(call),
    drawTry(path, method, example));
}

function drawTry(path, method, example) {
  const data = example ? ` \\\n  -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(example)}'` : "";
  const output = el("pre", { hidden: true, tabindex: 0, "aria-live": "polite" });
  const send = async () => {
    const token = sessionStorage.getItem("litebert-token");
    const headers = { ...(example && { "Content-Type": "application/json" }), ...(token && { Authorization: `Bearer ${token}` }) };
    const response = await fetch(path.slice(1), { method: method.toUpperCase(), headers, body: example && JSON.stringify(example) });
    const text = await response.text();
    output.hidden = false;
    output.textContent = `${response.status}\n${text.length > 4000 ? `${text.slice(0, 4000)} …` : text}`;
  };
  return [el("h3", {}, say("Try")), el("pre", { tabindex: 0 }, `curl ${new URL(path.slice(1), location.href)}${data}`),
    el("div", { class: "actions" }, el("button", { type: "button", onclick: send }, say("Send"), el("span", { class: "soft small" }, ` ${path}`))), output];
}

function drawRefusals(call) {
  const rows = Object.entries(call.responses).filter(([status]) => status !== "200")
    .map(([status, one]) => el("tr", {}, el("th", { scope: "row" }, status), el("td", {}, say(one.description))));
  return rows.length > 0 && el("details", {}, el("summary", {}, say("Refusals")), el("table", {}, el("tbody", {}, rows)));
}

function drawSchema(api, schema, depth = 0) {
  const rows = Object.entries(schema.properties ?? {}).map(([name, one]) => {
    const inner = innermost(api, one);
    const isRequired = (schema.required ?? []).includes(name) || depth > 0;
    return el("li", {}, el("code", {}, name), " ", el("span", { class: "soft" }, describe(api, one), isRequired ? "" : `, ${say("optional")}`),
      one.description && [" – ", ...code(say(one.description))],
      inner?.properties && depth < 4 && drawSchema(api, inner, depth + 1));
  });
  return el("ul", { class: "depth" }, rows);
}

function resolve(api, schema) {
  return schema?.$ref ? api.components.schemas[schema.$ref.split("/").at(-1)] : schema;
}

function innermost(api, schema) {
  const one = resolve(api, schema);
  if (one.items) return innermost(api, one.items);
  return one.anyOf ? one.anyOf.map((any) => innermost(api, any)).find((any) => any.properties) : one;
}

function describe(api, schema) {
  const one = resolve(api, schema);
  if (one.anyOf) return one.anyOf.map((any) => describe(api, any)).join(` ${say("or")} `);
  if (one.prefixItems) return `[${one.prefixItems.map((any) => describe(api, any)).join(", ")}]`;
  if (one.type === "array") return `${say("list of")} ${describe(api, one.items)}`;
  if (one.type === "object" && one.additionalProperties) return `${describe(api, one.additionalProperties)} ${say("by name")}`;
  const names = { string: "text", integer: "whole number", number: "number", object: "object", boolean: "true or false", null: "null" };
  return say(names[one.type] ?? "value");
}

/** Text with `code` in it. */
function code(text) {
  return text.split("`").map((part, number) => (number % 2 ? el("code", {}, part) : part));
}

start();
