// One vertex, beside the graph: subtasks, metrics, back-pressure, watermarks, TaskManagers, accumulators.

import { url } from "../core/api.js";
import { h } from "../core/dom.js";
import { UNKNOWN, bytes, count, descriptionLines, duration, number, percent } from "../core/format.js";
import { href } from "../core/router.js";
import { badge, facts, meter, none, table, tabs, timeOf } from "../parts/common.js";
import { loadMetrics, metricsView } from "../parts/metrics.js";
import { name, records } from "./overview.js";

const USUAL = [
  "numRecordsInPerSecond",
  "numRecordsOutPerSecond",
  "busyTimeMsPerSecond",
  "backPressuredTimeMsPerSecond",
];

/** Columns of what came and what went. */
const RECORDS = [
  {
    title: "Records in",
    number: true,
    sort: (each) => each.metrics?.["read-records"],
    cell: (each) => records(each.metrics, "read"),
  },
  {
    title: "Records out",
    number: true,
    sort: (each) => each.metrics?.["write-records"],
    cell: (each) => records(each.metrics, "write"),
  },
];

const SECTIONS = {
  subtasks: { title: "Subtasks", view: subtasks },
  metrics: {
    title: "Metrics",
    view: metricsView,
    load: (ctx, root) =>
      loadMetrics(ctx, {
        address: `${root}/subtasks/metrics`,
        whole: `${root}/jm-operator-metrics`,
        kind: "vertex",
        usual: USUAL,
        aggregated: true,
      }),
  },
  backpressure: {
    title: "Back-pressure",
    load: (ctx, root) => ctx.getIfAny(`${root}/backpressure`),
    view: backPressure,
  },
  watermarks: { title: "Watermarks", load: (ctx, root) => ctx.getIfAny(`${root}/watermarks`), view: watermarks },
  taskmanagers: {
    title: "TaskManagers",
    load: (ctx, root) => ctx.getIfAny(`${root}/taskmanagers`),
    view: taskManagers,
  },
  accumulators: {
    title: "Accumulators",
    load: (ctx, root) => ctx.getIfAny(`${root}/accumulators`),
    view: accumulators,
  },
};

export async function load(ctx, job, [id, section = "subtasks"]) {
  const root = url`jobs/${job.jid}/vertices/${id}`;
  const part = SECTIONS[section] ?? SECTIONS.subtasks;
  const details = await ctx.get(root);
  return { id, section: part, details, data: part.load ? await part.load(ctx, root) : details };
}

export function view(ctx, job, { id, section, details, data }) {
  const vertex = job.vertices.find((each) => each.id === id) ?? {};
  const description = descriptionLines(job.plan?.nodes?.find((node) => node.id === id)?.description ?? "");
  const close = href("job", job.jid);
  return h(
    "section",
    {
      class: "drawer",
      role: "region",
      "aria-labelledby": "vertex-title",
      onkeydown: (event) => {
        if (event.key === "Escape" && !event.defaultPrevented) location.hash = close;
      },
      key: `vertex-${id}`,
      ref: (drawer) => queueMicrotask(() => enter(drawer, job.jid, id)),
    },
    h(
      "div",
      { class: "bar" },
      h("h2", { id: "vertex-title", tabindex: -1 }, name(details)),
      h("a", { class: "button", href: close, "aria-label": "Close the vertex" }, "Close"),
    ),
    facts(
      [
        ["State", badge(vertex.status)],
        ["Parallelism", count(details.parallelism)],
        ["Max. parallelism", count(details.maxParallelism)],
        ["Records in", records(vertex.metrics, "read")],
        ["Records out", records(vertex.metrics, "write")],
        ["Duration", duration(vertex.duration)],
      ],
      "facts line",
    ),
    description.length
      ? h(
          "details",
          {},
          h("summary", {}, "Operators"),
          h("pre", { tabindex: 0, role: "region", "aria-label": "Operators" }, description.join("\n")),
        )
      : null,
    tabs(
      "Parts of the vertex",
      Object.entries(SECTIONS).map(([key, each]) => [
        href("job", job.jid, "vertex", id, key),
        each.title,
        each === section,
      ]),
    ),
    data === null ? none("This server does not have it.") : section.view(ctx, data, details),
  );
}

/** The reader is led into what was opened, and back to the box it was opened from. */
function enter(drawer, job, id) {
  drawer.querySelector("h2").focus({ preventScroll: true });
  const observer = new MutationObserver(() => {
    if (drawer.isConnected) return;
    observer.disconnect();
    if (document.activeElement !== document.body) return;
    const address = href("job", job, "vertex", id);
    const box = [...document.querySelectorAll("a.vertex")].find((each) => each.getAttribute("href") === address);
    box?.focus();
  });
  observer.observe(document.getElementById("main"), { childList: true });
}

function subtasks(ctx, details) {
  const rows = details.subtasks ?? [];
  const sizes = rows.some((each) => known(each, "read") || known(each, "write"));
  return table(ctx, {
    caption: "Subtasks",
    name: "subtasks",
    rows,
    key: (each) => each.subtask,
    empty: "There are no subtasks.",
    columns: [
      { title: "Subtask", sort: (each) => each.subtask, cell: (each) => each.subtask },
      { title: "State", sort: (each) => each.status, cell: (each) => badge(each.status) },
      {
        title: "TaskManager",
        sort: taskManager,
        cell: taskManagerLink,
      },
      ...RECORDS,
      { title: "Duration", number: true, sort: (each) => each.duration, cell: (each) => duration(each.duration) },
      {
        title: "Attempt",
        number: true,
        low: true,
        sort: (each) => each.attempt,
        cell: (each) => count(each.attempt + 1),
      },
      ...(sizes ? [bytesColumn("Bytes in", "read"), bytesColumn("Bytes out", "write")] : []),
      { title: "Started", low: true, sort: (each) => each["start-time"], cell: (each) => timeOf(each["start-time"]) },
    ],
  });
}

function taskManager(each) {
  const id = each["taskmanager-id"];
  return id && id !== "(unassigned)" ? id : "";
}

function taskManagerLink(each) {
  const id = taskManager(each);
  if (!id) return each.endpoint || UNKNOWN;
  return h("a", { class: "nowrap", href: href("taskmanager", id) }, each.endpoint || id);
}

/** Sizes are measured where records go over the network as Flink's do. */
function bytesColumn(title, kind) {
  return {
    title,
    number: true,
    low: true,
    sort: (each) => each.metrics?.[`${kind}-bytes`],
    cell: (each) => (known(each, kind) ? bytes(each.metrics[`${kind}-bytes`]) : UNKNOWN),
  };
}

function known({ metrics }, kind) {
  return metrics !== undefined && metrics[`${kind}-bytes-complete`] !== false;
}

function backPressure(ctx, answer) {
  const rows = answer.subtasks ?? [];
  const share = (title, key, look) => ({
    title,
    sort: (each) => each[key],
    cell: (each) => [meter(each[key], look), ` ${percent(each[key])}`],
  });
  return [
    h(
      "p",
      {},
      "Level: ",
      h("strong", {}, answer.backpressureLevel ?? answer["backpressure-level"] ?? answer.status ?? "–"),
      h("span", { class: "quiet" }, answer["end-timestamp"] ? [", measured ", timeOf(answer["end-timestamp"])] : null),
    ),
    table(ctx, {
      caption: "Back-pressure",
      name: "backpressure",
      rows,
      key: (each) => each.subtask,
      empty: "It is not measured.",
      columns: [
        { title: "Subtask", sort: (each) => each.subtask, cell: (each) => each.subtask },
        share("Held back", "ratio", "small held"),
        share("Busy", "busyRatio", "small busy"),
        share("Idle", "idleRatio", "small"),
        { title: "Level", cell: (each) => each.backpressureLevel ?? each["backpressure-level"] ?? "–" },
      ],
    }),
  ];
}

function watermarks(ctx, rows, { now }) {
  return table(ctx, {
    caption: "Watermarks",
    name: "watermarks",
    rows,
    empty: "There are no watermarks: no operator has asked for event time.",
    columns: [
      { title: "Subtask", sort: (each) => Number.parseInt(each.id, 10), cell: (each) => each.id.split(".")[0] },
      {
        title: "Watermark",
        sort: (each) => number(each.value),
        cell: (each) => (number(each.value) > 0 ? timeOf(each.value) : "none yet"),
      },
      { title: "Behind", number: true, cell: (each) => (number(each.value) > 0 ? duration(now - each.value) : "–") },
    ],
  });
}

function taskManagers(ctx, answer) {
  return table(ctx, {
    caption: "TaskManagers",
    name: "vertex-taskmanagers",
    rows: answer.taskmanagers ?? [],
    empty: "It has no TaskManager yet.",
    key: (each) => each["taskmanager-id"],
    columns: [
      {
        title: "TaskManager",
        cell: taskManagerLink,
      },
      { title: "State", cell: (each) => badge(each.status) },
      ...RECORDS,
      { title: "Duration", number: true, cell: (each) => duration(each.duration) },
    ],
  });
}

function accumulators(ctx, answer) {
  return table(ctx, {
    caption: "Accumulators",
    name: "accumulators",
    rows: answer["user-accumulators"] ?? [],
    key: (each) => each.name,
    empty: "The program has none.",
    columns: [
      { title: "Name", cell: (each) => each.name },
      { title: "Type", cell: (each) => each.type },
      { title: "Value", cell: (each) => h("code", { class: "value" }, String(each.value)) },
    ],
  });
}
