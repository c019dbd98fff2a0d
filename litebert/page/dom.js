// Elements in one line each; text is always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

export function el(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) node.style.setProperty(key, one);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function percent(probability, digits = 0) {
  const value = 100 * probability;
  return `${value >= 99.5 && value < 100 ? value.toFixed(1) : value.toFixed(value < 10 ? Math.max(1, digits) : digits)} %`;
}

/** A word or label with its probability, as a bar; with `pick` it can be chosen. */
export function bar({ name, probability, isBest = false, pick = null, isPicked = false, level = null }) {
  const track = el("span", { class: "track", "aria-hidden": "true" },
    el("i", { style: { width: `${100 * Math.max(probability, 0.002)}%` } }),
    level !== null && el("b", { style: { left: `${100 * level}%` } }));
  const parts = [el("span", { class: "name" }, name), track, el("span", { class: "value" }, percent(probability))];
  const kind = `bar${isBest ? " best" : ""}`;
  if (!pick) return el("li", { class: kind }, parts);
  return el("li", {}, el("button", { type: "button", class: kind, "aria-pressed": String(isPicked), onclick: pick }, parts));
}

/** Python counts letters (code points), JavaScript halves of some: cut a text as Python does. */
export function slicer(text) {
  const letters = Array.from(text);
  return (start, end) => letters.slice(start, end).join("");
}

/** The lines of a text that have something in them. */
export function splitLines(text) {
  return (text ?? "").split("\n").map((line) => line.trim()).filter(Boolean);
}
