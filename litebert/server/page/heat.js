// The attention map on a canvas: a row per query token, a column per key token.

import { el } from "./dom.js";

/** A piece without its word-start marker; a continuation keeps its marker. */
export function readable(piece) {
  return piece.replace(/^[▁Ġ]/, "") || "␣";
}

export function drawMap(host, trace, state, choose, { label, room }) {
  const { attention } = trace.layers[state.layer];
  const names = trace.tokens.map((token) => readable(token.piece));
  const colours = readColours();
  const size = measure(names, colours.font, room);
  const canvas = el("canvas", { role: "img", "aria-label": label });
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.ceil(size.width * scale);
  canvas.height = Math.ceil(size.height * scale);
  canvas.style.width = `${size.width}px`;
  canvas.style.height = `${size.height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.font = colours.font;
  drawCells(pen, attention, size, colours);
  drawNames(pen, names, state.token, size, colours);
  const tip = el("p", { class: "tip small", "aria-hidden": "true" });
  const at = (event) => place(event, canvas, size, names.length);
  const tell = ({ row, column }) => {
    tip.textContent = row === null ? " " : `${names[row]} → ${names[column]}: ${(100 * attention[row][column]).toFixed(1)} %`;
  };
  tell({ row: null });
  canvas.addEventListener("pointermove", (event) => tell(at(event)));
  canvas.addEventListener("pointerleave", () => tell({ row: null }));
  canvas.addEventListener("click", (event) => {
    const { row } = at(event);
    if (row !== null) choose(row, false);
  });
  host.replaceChildren(el("div", { class: "scroll" }, canvas), tip);
}

function readColours() {
  const style = getComputedStyle(document.body);
  const get = (name) => style.getPropertyValue(name).trim();
  return { ink: get("--ink"), soft: get("--soft"), accent: get("--accent"), heat: get("--heat"), paper: get("--card-2"),
    font: `13px ${style.fontFamily}` };
}

function measure(names, font, room) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = font;
  const label = Math.min(110, Math.max(...names.map((name) => pen.measureText(name).width)) + 12);
  const cell = Math.max(12, Math.min(34, Math.floor((room - label - 8) / names.length)));
  const edge = cell * names.length;
  return { label, cell, edge, width: label + edge + 8, height: label + edge + 4 };
}

function drawCells(pen, attention, { label, cell, edge }, { heat, paper }) {
  pen.fillStyle = paper;
  pen.fillRect(label, label, edge, edge);
  pen.fillStyle = heat;
  attention.forEach((row, r) => {
    const most = Math.max(...row);
    row.forEach((value, c) => {
      pen.globalAlpha = value / most; // relative to the largest weight of its row; a row sums to one
      pen.fillRect(label + c * cell + 0.5, label + r * cell + 0.5, cell - 1, cell - 1);
    });
  });
  pen.globalAlpha = 1;
}

function drawNames(pen, names, chosen, { label, cell, edge }, { ink, soft, accent }) {
  names.forEach((name, number) => {
    const middle = label + (number + 0.5) * cell;
    pen.fillStyle = number === chosen ? accent : soft;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    pen.fillText(name, label - 6, middle, label - 8);
    pen.save();
    pen.translate(middle, label - 6);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "left";
    pen.fillStyle = soft;
    pen.fillText(name, 0, 0, label - 8);
    pen.restore();
  });
  pen.strokeStyle = ink;
  pen.lineWidth = 1.5;
  pen.strokeRect(label, label + chosen * cell, edge, cell);
}

function place(event, canvas, { label, cell }, count) {
  const box = canvas.getBoundingClientRect();
  const column = Math.floor((event.clientX - box.left - label) / cell);
  const row = Math.floor((event.clientY - box.top - label) / cell);
  const isInside = row >= 0 && row < count && column >= 0 && column < count;
  return isInside ? { row, column } : { row: null, column: null };
}
