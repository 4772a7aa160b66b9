// A job's graph, and the same as a table.

import { url } from "../core/api.js";
import { h } from "../core/dom.js";
import { UNKNOWN, count, descriptionLines, duration, number, percent, short } from "../core/format.js";
import { href } from "../core/router.js";
import { badge, card, meter, none, table, taskCounts, tone } from "../parts/common.js";
import { graph, planGraph } from "../parts/graph.js";
import { isOver } from "../parts/jobs.js";

/** One request per vertex has all that is measured of it. */
const MEASURED = [
  "numRecordsInPerSecond",
  "numRecordsOutPerSecond",
  "busyTimeMsPerSecond",
  "backPressuredTimeMsPerSecond",
  "currentInputWatermark",
];
/** Of a larger graph not everything is asked for every few seconds. */
const MOST_MEASURED = 40;
const BUSY = 0.7;
const HELD_BACK = 0.5;

export async function load(ctx, job) {
  const plan = job.plan ?? (ctx.state.plan ??= (await ctx.getIfAny(url`jobs/${job.jid}/plan`))?.plan ?? {});
  const live = !isOver(job.state) && !ctx.shell.features["web-history"];
  const asked = live ? job.vertices.slice(0, MOST_MEASURED) : [];
  const measured = await Promise.all(
    asked.map(async (vertex) => {
      const path = url`jobs/${job.jid}/vertices/${vertex.id}`;
      const [subtasks, whole] = await Promise.all([
        ctx.getIfAny(`${path}/subtasks/metrics?get=${MEASURED}&agg=min,max,sum`),
        // native operators are measured as a whole only; Flink has other metrics there
        ctx.state.noWhole ? null : ctx.getIfAny(`${path}/jm-operator-metrics?get=${MEASURED}`),
      ]);
      ctx.state.noWhole ||= whole === null;
      return [vertex.id, values(subtasks ?? [], whole ?? [])];
    }),
  );
  return { plan, measured: new Map(measured) };
}

function values(subtasks, whole) {
  const [bySubtask, ofWhole] = [subtasks, whole].map((metrics) => new Map(metrics.map((each) => [each.id, each])));
  const of = (name, aggregate) => number(bySubtask.get(name)?.[aggregate] ?? ofWhole.get(name)?.value);
  const share = (name) => {
    const ms = of(name, "max");
    return ms === null ? null : ms / 1000;
  };
  return {
    inPerSecond: of("numRecordsInPerSecond", "sum"),
    outPerSecond: of("numRecordsOutPerSecond", "sum"),
    busy: share("busyTimeMsPerSecond"),
    heldBack: share("backPressuredTimeMsPerSecond"),
    watermark: of("currentInputWatermark", "min"),
  };
}

export function view(ctx, job, { plan, measured }) {
  if (!job.vertices.length)
    return none(isOver(job.state) ? "The job has no vertices." : "The job has no vertices yet.");
  const rows = job.vertices.map((vertex) => ({ ...vertex, ...(measured.get(vertex.id) ?? {}) }));
  const edges = planGraph(plan, job.vertices);
  return [
    card(
      "Graph",
      graph({
        label: `Graph of ${rows.length} vertices; the table of vertices below says the same`,
        nodes: rows,
        edges,
        box: (vertex) => box(ctx, job, vertex, edges, rows),
      }),
    ),
    card(
      "Vertices",
      vertexTable(ctx, job, rows),
      h("p", { class: "quiet note" }, "Held back: input had to wait for the batch before it. A dash: it is not measured."),
    ),
  ];
}

function box(ctx, job, vertex, edges, rows) {
  const to = edges
    .filter((edge) => edge.from === vertex.id)
    .map((edge) => name(rows.find((row) => row.id === edge.to)));
  return h(
    "a",
    {
      class: `vertex ${tone(vertex.status)} ${strain(vertex)}`,
      href: href("job", job.jid, "vertex", vertex.id),
      "aria-current": ctx.rest[1] === vertex.id ? "true" : null,
      title: name(vertex),
    },
    h("span", { class: "title" }, name(vertex)),
    h(
      "span",
      { class: "row" },
      badge(vertex.status),
      h("span", {}, `× ${vertex.parallelism}`),
      number(vertex.watermark) > 0
        ? h("span", { class: "quiet" }, `${duration(job.now - vertex.watermark)} behind`)
        : null,
    ),
    h(
      "span",
      { class: "numbers" },
      h("span", { class: "quiet" }, "in "),
      h("b", {}, records(vertex.metrics, "read", short)),
      rate(vertex.inPerSecond),
      h("span", { class: "quiet" }, "out "),
      h("b", {}, records(vertex.metrics, "write", short)),
      rate(vertex.outPerSecond),
    ),
    number(vertex.busy) === null
      ? null
      : h(
          "span",
          { class: "strain" },
          h("span", {}, `busy ${percent(vertex.busy)}`),
          meter(vertex.busy, "busy"),
          h("span", {}, ` held back ${percent(vertex.heldBack)}`),
          meter(vertex.heldBack, "held"),
        ),
    to.length ? h("span", { class: "hidden" }, `, goes to ${to.join(" and ")}`) : null,
  );
}

/** As Flink colours it: what is busy itself, and what waits for others. */
function strain({ status, busy, heldBack }) {
  if (status === "FAILED") return "failed";
  if (heldBack >= HELD_BACK) return "held";
  return busy >= BUSY ? "busy" : "";
}

export function name(vertex) {
  return descriptionLines(vertex?.name).join(" ") || vertex?.id || "";
}

/** Flink counts before it has heard of all tasks: a zero that is not complete is not known. */
export function records(metrics, kind, format = count) {
  const value = number(metrics?.[`${kind}-records`]);
  if (value === null || (value === 0 && metrics[`${kind}-records-complete`] === false)) return UNKNOWN;
  return metrics[`${kind}-records-complete`] === false ? `≥ ${format(value)}` : format(value);
}

function rate(perSecond) {
  return h("span", { class: "quiet" }, number(perSecond) === null ? "" : ` ${short(perSecond)}/s`);
}

function vertexTable(ctx, job, rows) {
  return table(ctx, {
    caption: "Vertices",
    name: "vertices",
    rows,
    columns: [
      {
        title: "Name",
        sort: name,
        cell: (vertex) => h("a", { href: href("job", job.jid, "vertex", vertex.id) }, name(vertex)),
      },
      { title: "State", sort: (vertex) => vertex.status, cell: (vertex) => badge(vertex.status) },
      {
        title: "Parallelism",
        number: true,
        sort: (vertex) => vertex.parallelism,
        cell: (vertex) => count(vertex.parallelism),
      },
      {
        title: "Records in",
        number: true,
        sort: (vertex) => vertex.metrics["read-records"],
        cell: (vertex) => [records(vertex.metrics, "read"), rate(vertex.inPerSecond)],
      },
      {
        title: "Records out",
        number: true,
        sort: (vertex) => vertex.metrics["write-records"],
        cell: (vertex) => [records(vertex.metrics, "write"), rate(vertex.outPerSecond)],
      },
      { title: "Busy", number: true, sort: (vertex) => vertex.busy, cell: (vertex) => percent(vertex.busy) },
      {
        title: "Held back",
        number: true,
        sort: (vertex) => vertex.heldBack,
        cell: (vertex) => percent(vertex.heldBack),
      },
      {
        title: "Watermark",
        number: true,
        low: true,
        cell: (vertex) => (number(vertex.watermark) > 0 ? `${duration(job.now - vertex.watermark)} behind` : UNKNOWN),
      },
      { title: "Tasks", low: true, cell: (vertex) => taskCounts(vertex.tasks) },
      {
        title: "Duration",
        number: true,
        low: true,
        sort: (vertex) => vertex.duration,
        cell: (vertex) => duration(vertex.duration),
      },
    ],
  });
}
