// Metrics over time: which to show, their values collected from poll to poll, and charts of them.

import { h } from "../core/dom.js";
import { bytes, bytesPerSecond, clock, duration, number, percent, short } from "../core/format.js";
import { remember, remembered } from "../core/session.js";
import { chart } from "./chart.js";
import { none } from "./common.js";

/** A quarter of an hour at Flink's refresh interval. */
const MOST_POINTS = 300;
const MOST_OFFERED = 200;
const AGGREGATES = ["min", "avg", "max"];
/** Address and metric → series name → points; kept while the page is open, so that going back shows them. */
const collected = new Map();

function add(address, metric, name, at, value) {
  const key = `${address} ${metric}`;
  if (!collected.has(key)) collected.set(key, new Map());
  const series = collected.get(key);
  if (!series.has(name)) series.set(name, []);
  const points = series.get(name);
  points.push([at, value]);
  if (points.length > MOST_POINTS) points.shift();
}

function seriesOf(address, metric) {
  return [...(collected.get(`${address} ${metric}`) ?? [])].map(([name, points]) => ({ name, points: [...points] }));
}

/** The address of a metric's value: Flink separates names by commas. */
function query(names) {
  return names.map(encodeURIComponent).join(",");
}

/**
 * Load names and the chosen metrics' newest values.
 *
 * @param {{address: string, whole?: string, kind: string, usual: string[], aggregated?: boolean}} source
 *   `address` of the metrics, `whole` of those that are not measured by subtask; choices are remembered by
 *   `kind`; of `usual` those are shown first that exist
 */
export async function loadMetrics(ctx, source) {
  const { address, whole, kind, usual, aggregated } = source;
  const [listed, ofWhole] = await Promise.all([ctx.getIfAny(address), whole ? ctx.getIfAny(whole) : null]);
  if (listed === null) return null;
  const bySubtask = new Set(listed.map((metric) => metric.id).filter(Boolean));
  const names = [...new Set([...bySubtask, ...(ofWhole ?? []).map((metric) => metric.id)])].sort();
  const chosen = remembered(
    `metrics.${kind}`,
    usual.filter((name) => names.includes(name)),
  );
  const asked = chosen.filter((name) => bySubtask.has(name));
  const askedOfWhole = chosen.filter((name) => !bySubtask.has(name) && names.includes(name));
  if (asked.length || askedOfWhole.length) {
    const [values, valuesOfWhole] = await Promise.all([
      asked.length
        ? ctx.get(`${address}?get=${query(asked)}${aggregated ? "&agg=min,max,avg,sum" : ""}`)
        : [],
      askedOfWhole.length ? ctx.get(`${whole}?get=${query(askedOfWhole)}`) : [],
    ]);
    const now = Date.now();
    for (const metric of [...values, ...valuesOfWhole]) {
      for (const name of ["value", ...AGGREGATES, "sum"]) {
        const value = number(metric[name]);
        if (value !== null) add(address, metric.id, name, now, value);
        else if (metric[name] !== undefined) add(address, metric.id, "text", now, metric[name]);
      }
    }
  }
  return { ...source, names, chosen };
}

export function metricsView(ctx, data) {
  if (data === null) return none("This server has no metrics of it.");
  const { address, kind, names, chosen, aggregated } = data;
  const choose = (wanted) => {
    remember(`metrics.${kind}`, wanted);
    ctx.refresh();
  };
  const sums = ctx.state.sums ?? false;
  return h(
    "div",
    {},
    h(
      "div",
      { class: "bar" },
      picker(
        ctx,
        names.filter((name) => !chosen.includes(name)),
        (name) => choose([...chosen, name]),
      ),
      aggregated
        ? h(
            "div",
            { class: "filter" },
            h("label", { for: "metrics-sums" }, "Of the subtasks"),
            h(
              "select",
              {
                id: "metrics-sums",
                value: sums ? "sum" : "spread",
                onchange: (event) => {
                  ctx.state.sums = event.target.value === "sum";
                  ctx.redraw();
                },
              },
              h("option", { value: "spread" }, "least, mean, most"),
              h("option", { value: "sum" }, "sum"),
            ),
          )
        : null,
    ),
    chosen.length
      ? h(
          "div",
          { class: "charts" },
          chosen.map((name) =>
            h(
              "div",
              { key: name },
              oneMetric(address, name, aggregated, sums, () => choose(chosen.filter((other) => other !== name))),
            ),
          ),
        )
      : none(names.length ? "No metric is chosen." : "There are no metrics yet."),
    chosen.length
      ? h("p", { class: "quiet note" }, "Values are collected while this page is open.")
      : null,
  );
}

function oneMetric(address, name, aggregated, sums, remove) {
  const all = seriesOf(address, name);
  const actions = h(
    "button",
    { type: "button", class: "plain", "aria-label": `Remove ${name}`, onclick: remove },
    "Remove",
  );
  const text = all.find((series) => series.name === "text");
  if (text) {
    return h(
      "figure",
      { class: "chart" },
      h("figcaption", {}, h("strong", {}, name), actions),
      h("p", {}, h("code", {}, String(text.points.at(-1)[1]))),
    );
  }
  const series = all.filter(({ name: of }) => of === "value" || !aggregated || (of === "sum") === sums);
  const look = formatOf(name);
  // -1 of a time or size stands for: there is none
  const counts = ([, value]) => value >= 0 || (look.format !== duration && look.format !== bytes);
  const said = series.map((each) => ({ name: WORDS[each.name] ?? each.name, points: each.points.filter(counts) }));
  return chart({ title: name, series: said, actions, ...look });
}

/** Name in an answer → in words. */
const WORDS = { value: "now", min: "least", avg: "mean", max: "most" };
/** What a metric's values are, told by its name, and what the axis ends with; the first that fits. */
const FORMATS = [
  [/bytes(In|Out)?PerSecond$/i, bytesPerSecond],
  [/Count$|Buffers|FileDescriptor/, short],
  [
    /bytes(In|Out)?$|\.(Resident|Peak|Used|Committed|Max|MemoryUsed|TotalCapacity|UsedMemory|TotalMemory|AvailableMemory)$|Size$/i,
    bytes,
  ],
  [/\.Load$/, percent, 1],
  [/MsPerSecond$/, (ms) => percent(ms / 1000), 1000],
  [/PerSecond$/, (value) => `${short(value)}/s`],
  [/Timestamp$|Watermark$/, clock],
  [/\.CPU\.Time$/, (ns) => duration(ns / 1e6)],
  [/^secondsSince/, (seconds) => duration(seconds * 1000)],
  [/Duration$|Time$|TimeMs$|^(up|down)time$|Age$/, duration],
];

function formatOf(name) {
  const [, format = short, top] = FORMATS.find(([pattern]) => pattern.test(name)) ?? [];
  return { format, top };
}

function picker(ctx, names, add) {
  const filters = (ctx.state.filters ??= {});
  const wanted = (filters.metrics ?? "").toLowerCase();
  const found = names.filter((name) => name.toLowerCase().includes(wanted)).slice(0, MOST_OFFERED);
  return h(
    "form",
    {
      class: "filter",
      onsubmit: (event) => {
        event.preventDefault();
        const choice = event.target.elements.metric.value;
        if (choice) add(choice);
      },
    },
    h("label", { for: "metrics-filter" }, "Metrics with"),
    h("input", {
      id: "metrics-filter",
      type: "search",
      value: filters.metrics ?? "",
      spellcheck: "false",
      oninput: (event) => {
        filters.metrics = event.target.value;
        ctx.redraw();
      },
    }),
    h(
      "select",
      { name: "metric", "aria-label": "Metric" },
      found.map((name) => h("option", { key: name, value: name }, name)),
    ),
    h("button", { disabled: !found.length }, "Add"),
  );
}
