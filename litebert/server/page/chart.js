// A small line chart over the layers: one thick line, one thin line, integers on the x axis.

import { el, svg } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [460, 220, 44, 30, 14, 12];

/** lines: [{name, values, kind}]; kind is a class: mean, token or faint. */
export function lineChart(title, lines) {
  const count = lines[0].values.length;
  const top = niceTop(Math.max(...lines.flatMap((line) => line.values)));
  const x = (layer) => (count === 1 ? (LEFT + WIDTH - RIGHT) / 2 : LEFT + ((WIDTH - LEFT - RIGHT) * layer) / (count - 1));
  const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * value) / top;
  const marks = [0, top / 2, top].map((value) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
    svg("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, format(value)),
  ]);
  const step = Math.ceil(count / 12);
  const layers = Array.from({ length: count }, (_, layer) =>
    layer % step === 0 && svg("text", { x: x(layer), y: HEIGHT - 8, "text-anchor": "middle" }, String(layer + 1)));
  const paths = lines.map(({ values, kind }) => [
    svg("polyline", { class: `line ${kind}`, points: values.map((value, layer) => `${x(layer)},${y(value)}`).join(" ") }),
    kind !== "faint" && values.map((value, layer) => svg("circle", { class: `dot ${kind}`, cx: x(layer), cy: y(value), r: 3.5 })),
  ]);
  const shown = lines.filter((line) => line.name);
  const label = `${title}. ${shown.map(({ name, values }) => `${name}: ${values.map(format).join(", ")}`).join(". ")}`;
  return el("figure", { class: "chart" }, el("figcaption", {}, title),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label }, marks, layers, paths),
    el("p", { class: "legend small", "aria-hidden": "true" }, shown.map(({ name, kind }) => el("span", { class: kind }, name))));
}

function niceTop(value) {
  const size = 10 ** Math.floor(Math.log10(Math.max(value, 1e-6)));
  return [1, 2, 4, 5, 6, 8, 10].map((n) => n * size).find((n) => n >= value) ?? 10 * size;
}

function format(value) {
  return value >= 10 || Number.isInteger(value) ? value.toFixed(0) : value.toPrecision(2);
}
