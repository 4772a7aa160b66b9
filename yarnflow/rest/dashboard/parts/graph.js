// A graph drawn: vertices as boxes with whatever content, edges as lines behind them.

import { h } from "../core/dom.js";
import { reachable } from "./common.js";
import { layout } from "./layout.js";

const BOX = { width: 248, height: 138 };
/** Where there is no room to the right, the flow goes down. */
const NARROW = window.matchMedia("(max-width: 620px)");
const MARGIN = 12;

/**
 * @param {{label: string, nodes: object[], edges: {from, to, label}[], box: function(object): object}} graph
 *   `box(node)` describes what stands in a vertex's place
 */
export function graph({ label, nodes, edges, box }) {
  const down = NARROW.matches;
  const [along, across] = down ? [BOX.height, BOX.width] : [BOX.width, BOX.height];
  const made = layout(
    nodes.map((node) => node.id),
    edges,
    { along, across, layerGap: down ? 46 : 84, gap: 24 },
  );
  const at = ({ along: one, across: other }) =>
    (down ? [other, one] : [one, other]).map((value) => Math.round(value) + MARGIN);
  const [width, height] = (down ? [made.across, made.along] : [made.along, made.across]).map(
    (size) => Math.round(size) + 2 * MARGIN,
  );
  return h(
    "div",
    { class: "scroll graph", role: "group", "aria-label": label, key: "graph", ref: reachable },
    h(
      "div",
      { class: "sheet", style: { width: `${width}px`, height: `${height}px` } },
      h(
        "svg",
        { width, height, "aria-hidden": "true" },
        h(
          "defs",
          {},
          h(
            "marker",
            {
              id: "arrow",
              viewBox: "0 0 8 8",
              refX: 7,
              refY: 4,
              markerWidth: 7,
              markerHeight: 7,
              orient: "auto-start-reverse",
            },
            h("path", { d: "M0 0.5 8 4 0 7.5z", class: "arrow" }),
          ),
        ),
        made.routes.map((route) => line(route, at, down)),
      ),
      nodes.map((node) => {
        const [left, top] = at(made.places.get(node.id));
        return h(
          "div",
          {
            class: "place",
            key: node.id,
            style: { left: `${left}px`, top: `${top}px`, width: `${BOX.width}px`, height: `${BOX.height}px` },
          },
          box(node),
        );
      }),
    ),
  );
}

function line(route, at, down) {
  const points = route.points.map(at);
  let path = `M${points[0]}`;
  for (let index = 1; index < points.length; index++) {
    const [[x1, y1], [x2, y2]] = [points[index - 1], points[index]];
    const middle = down ? (y1 + y2) / 2 : (x1 + x2) / 2;
    path += down ? `C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}` : `C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
  }
  const [[x1, y1], [x2, y2]] = points;
  return h(
    "g",
    { key: `${route.from} ${route.to}` },
    h("path", { d: path, class: "edge", "marker-end": "url(#arrow)" }),
    route.label
      ? h("text", { x: (x1 + x2) / 2, y: (y1 + y2) / 2 - (down ? 0 : 6), "text-anchor": "middle" }, route.label)
      : null,
  );
}

/** Nodes and edges of a plan in Flink's form; vertices without a plan stand alone. */
export function planGraph(plan, vertices) {
  const nodes = plan?.nodes ?? [];
  const ids = new Set(vertices.map((vertex) => vertex.id));
  return nodes.flatMap((node) =>
    (node.inputs ?? [])
      .filter((input) => ids.has(node.id) && ids.has(input.id))
      .map((input) => ({ from: input.id, to: node.id, label: input.ship_strategy ?? "" })),
  );
}
