// Values over time as lines, with the numbers in words below.

import { h } from "../core/dom.js";
import { bytes, bytesPerSecond, clock, short } from "../core/format.js";

/**
 * @param {{title: string, series: {name: string, points: [number, number][]}[], format?: function(number): string,
 *   top?: number, actions?: object}} chart points are (milliseconds, value), oldest first; the axis goes up to
 *   `top` at least
 */
export function chart({ title, series, format = short, top: atLeast = 0, actions = null }) {
  const points = series.flatMap((each) => each.points);
  if (!points.length) {
    return h(
      "figure",
      { class: "chart" },
      h("figcaption", {}, h("strong", {}, title), actions),
      h("p", { class: "quiet none" }, "No values yet."),
    );
  }
  const times = points.map(([at]) => at);
  const [from, to] = [least(times), Math.max(most(times), least(times) + 1)];
  const values = points.map(([, value]) => value);
  // a time of the day has no zero to be measured from
  const bottom = format === clock ? least(values) : Math.min(0, least(values));
  const base = format === bytes || format === bytesPerSecond ? 1024 : 10;
  const top =
    format === clock ? Math.max(most(values), bottom + 1000) : Math.max(atLeast, niceTop(most(values), bottom, base));
  const x = (at) => round(((at - from) / (to - from)) * 100);
  const y = (value) => round(100 - ((value - bottom) / (top - bottom)) * 100);
  const said = series.map((each) => describe(each, format));
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", {}, h("strong", {}, title), actions),
    h(
      "div",
      {
        class: "plot",
        onpointermove: (event) => point(event, series, from, to, format),
        onpointerleave: (event) => leave(event),
      },
      h("span", { class: "axis top", "aria-hidden": "true" }, format(top)),
      h("span", { class: "axis bottom", "aria-hidden": "true" }, format(bottom)),
      h(
        "svg",
        {
          viewBox: "0 0 100 100",
          preserveAspectRatio: "none",
          role: "img",
          "aria-label": `${title}, ${said.join("; ")}`,
        },
        [25, 50, 75].map((at) => h("line", { class: "grid", x1: 0, x2: 100, y1: at, y2: at })),
        series.map((each, index) =>
          h("polyline", {
            class: `line s${index % 8}`,
            // one point alone is no line: it becomes a level
            points: (each.points.length === 1 ? [each.points[0], [to, each.points[0][1]]] : each.points)
              .map(([at, value]) => `${x(at)},${y(value)}`)
              .join(" "),
          }),
        ),
        h("line", { class: "cursor", x1: -1, x2: -1, y1: 0, y2: 100 }),
      ),
      h("output", { class: "reading", own: true, "aria-hidden": "true" }),
    ),
    h("div", { class: "span", "aria-hidden": "true" }, h("span", {}, clock(from)), h("span", {}, clock(to))),
    h(
      "ul",
      { class: "legend" },
      series.map((each, index) =>
        h("li", {}, h("span", { class: `key s${index % 8}`, "aria-hidden": "true" }), said[index]),
      ),
    ),
  );
}

function describe({ name, points }, format) {
  if (!points.length) return `${name}: no values`;
  const values = points.map(([, value]) => value);
  return `${name}: ${format(values.at(-1))} (${format(least(values))} to ${format(most(values))})`;
}

// not Math.min(...values): there may be more values than arguments
function least(values) {
  return values.reduce((one, other) => Math.min(one, other), Infinity);
}

function most(values) {
  return values.reduce((one, other) => Math.max(one, other), -Infinity);
}

/** The next round number above, so that the axis does not change with every value. */
function niceTop(value, bottom, base) {
  const height = value - bottom;
  if (height <= 0) return bottom + 1;
  const steps = base === 10 ? [1, 2, 2.5, 5, 10] : [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
  const power = base ** Math.floor(Math.log(height) / Math.log(base) + 1e-9);
  return bottom + (steps.find((step) => step * power >= height) ?? base) * power;
}

function round(value) {
  return Math.round(value * 100) / 100;
}

function point(event, series, from, to, format) {
  const plot = event.currentTarget;
  const box = plot.getBoundingClientRect();
  const at = from + ((event.clientX - box.left) / box.width) * (to - from);
  const near = series.map(({ points }) =>
    points.reduce((best, each) => (Math.abs(each[0] - at) < Math.abs(best[0] - at) ? each : best), points[0]),
  );
  const found = near.find(Boolean);
  if (!found) return;
  const share = round(((found[0] - from) / (to - from)) * 100);
  const cursor = plot.querySelector(".cursor");
  cursor.setAttribute("x1", share);
  cursor.setAttribute("x2", share);
  plot.querySelector(".reading").textContent = [
    clock(found[0]),
    ...near.map((each, index) =>
      each ? `${series.length > 1 ? `${series[index].name} ` : ""}${format(each[1])}` : "",
    ),
  ].join("  ");
}

function leave(event) {
  const plot = event.currentTarget;
  for (const end of ["x1", "x2"]) plot.querySelector(".cursor").setAttribute(end, -1);
  plot.querySelector(".reading").textContent = "";
}
