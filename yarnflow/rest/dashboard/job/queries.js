// The streaming queries of a job, as Spark reports their progress.

import { h } from "../core/dom.js";
import { UNKNOWN, bytes, count, duration, number, short } from "../core/format.js";
import { card, facts, none, table, timeOf } from "../parts/common.js";

export const load = () => null;

export function view(ctx, job) {
  const queries = job.queries ?? [];
  if (!queries.length) return none("No query has reported progress. Jobs that run as one batch have none.");
  return queries.map((query) =>
    card(query.name || "query", [
      facts(
        [
          ["Last batch", query["batch-id"] < 0 ? "none yet" : count(query["batch-id"])],
          ["Took", query["batch-id"] < 0 ? UNKNOWN : duration(query["batch-duration"])],
          ["Rows in, all batches", count(query["input-rows"])],
          ["Rows out, all batches", number(query["output-rows"]) < 0 ? UNKNOWN : count(query["output-rows"])],
          perSecond("Coming in", query["input-rows-per-second"]),
          perSecond("Processed", query["processed-rows-per-second"]),
          [
            "Watermark",
            number(query.watermark) > 0
              ? [timeOf(query.watermark), ` (${duration(job.now - query.watermark)} behind)`]
              : "none",
          ],
          query["state-rows"] === undefined
            ? null
            : ["State", `${count(query["state-rows"])} rows, ${bytes(query["state-bytes"])}`],
        ],
        "facts line",
      ),
      durations(query.durations),
      sources(ctx, query),
      operators(ctx, query),
    ]),
  );
}

function perSecond(name, value) {
  return number(value) === null ? null : [name, `${short(value)} rows/s`];
}

/** Parts of the last batch's time, in Spark's words; `triggerExecution` is all of it. */
function durations(parts) {
  const found = Object.entries(parts ?? {})
    .filter(([name, ms]) => name !== "triggerExecution" && ms > 0)
    .sort((one, other) => other[1] - one[1]);
  const total = found.reduce((sum, [, ms]) => sum + ms, 0);
  if (!total) return null;
  return h(
    "div",
    { class: "shares" },
    h("h3", {}, "Time of the last batch"),
    h(
      "div",
      { class: "stack", "aria-hidden": "true" },
      found.map(([name, ms], index) =>
        h("span", { class: `s${index % 8}`, title: name, style: { width: `${(100 * ms) / total}%` } }),
      ),
    ),
    h(
      "ul",
      { class: "legend" },
      found.map(([name, ms], index) =>
        h("li", {}, h("span", { class: `key s${index % 8}`, "aria-hidden": "true" }), `${name} ${duration(ms)}`),
      ),
    ),
  );
}

function sources(ctx, query) {
  const lags = (query.sources ?? []).some((source) => behind(source.behind) !== UNKNOWN);
  return table(ctx, {
    caption: `Sources of ${query.name}`,
    name: `sources-${query.name}`,
    rows: query.sources ?? [],
    key: (row, index) => index,
    empty: "It has no sources yet.",
    columns: [
      { title: "Source", cell: (source) => h("code", { class: "value" }, source.description) },
      { title: "Rows in the last batch", number: true, cell: (source) => count(source["input-rows"]) },
      lags ? { title: "Messages not read yet", number: true, cell: (source) => behind(source.behind) } : null,
    ].filter(Boolean),
  });
}

/** Messages that were not read yet: one number, or one per partition of Kafka. */
function behind(value) {
  if (value === null || value === undefined) return UNKNOWN;
  if (typeof value !== "object") return count(value);
  const partitions = Object.entries(value);
  if (!partitions.length) return UNKNOWN;
  const total = partitions.reduce((sum, [, many]) => sum + Number(many), 0);
  if (partitions.length === 1) return count(total);
  return h(
    "details",
    {},
    h("summary", {}, count(total)),
    h(
      "ul",
      { class: "plain" },
      partitions.map(([place, many]) => h("li", {}, `${place}: ${count(many)}`)),
    ),
  );
}

function operators(ctx, query) {
  if (!query.operators?.length) return null;
  return table(ctx, {
    caption: `State of ${query.name}`,
    name: `state-${query.name}`,
    rows: query.operators,
    key: (row, index) => index,
    columns: [
      { title: "Stateful operator", cell: (operator) => operator.name },
      { title: "Rows", number: true, cell: (operator) => count(operator.rows) },
      { title: "Memory", number: true, cell: (operator) => bytes(operator.bytes) },
      { title: "Updated", number: true, cell: (operator) => count(operator["rows-updated"]) },
      { title: "Removed", number: true, cell: (operator) => count(operator["rows-removed"]) },
      { title: "Partitions", number: true, cell: (operator) => count(operator.partitions) },
    ],
  });
}
