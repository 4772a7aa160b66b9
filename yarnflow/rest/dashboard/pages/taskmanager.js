// One TaskManager: its slots, memory, metrics, logs and threads.

import { url } from "../core/api.js";
import { h } from "../core/dom.js";
import { bytes, count, duration, number, percent } from "../core/format.js";
import { href } from "../core/router.js";
import { card, crumbs, facts, meter, none, table } from "../parts/common.js";
import { PROCESS_METRICS, loadPart, partTabs, partView } from "./processes.js";
import { heartbeat } from "./taskmanagers.js";

/** Parts of a TaskManager's memory, in the words of the options. */
const MEMORY = [
  ["frameworkHeap", "Framework heap"],
  ["taskHeap", "Task heap"],
  ["frameworkOffHeap", "Framework off-heap"],
  ["taskOffHeap", "Task off-heap"],
  ["managedMemory", "Managed"],
  ["networkMemory", "Network"],
  ["jvmMetaspace", "JVM metaspace"],
  ["jvmOverhead", "JVM overhead"],
];

/** What processes below a TaskManager have got from the system. */
const USED = [
  ["Status.JVM.Memory.Resident", "JVMs of executors"],
  ["Status.Python.Workers.Memory.Resident", "Python workers"],
  ["Status.Python.Memory.Resident", "TaskManager itself"],
];
const LOADS = [
  ["Status.JVM.CPU.Load", "JVMs of executors"],
  ["Status.Python.Workers.CPU.Load", "Python workers"],
  ["Status.Python.CPU.Load", "TaskManager itself"],
];

export const title = (ctx) => `TaskManager ${ctx.params.taskManager}`;

export async function load(ctx) {
  const process = described(ctx);
  const [details, measured] = await Promise.all([
    ctx.get(process.root),
    ctx.rest.length ? null : ctx.getIfAny(`${process.root}/metrics?get=${[...USED, ...LOADS].map(([id]) => id)}`),
  ]);
  ctx.details = details;
  ctx.measured = new Map((measured ?? []).map((metric) => [metric.id, metric.value]));
  return { process, details, part: await loadPart(ctx, process) };
}

function described(ctx) {
  const id = ctx.params.taskManager;
  return {
    root: url`taskmanagers/${id}`,
    link: ["taskmanager", id],
    kind: "taskmanager",
    usual: PROCESS_METRICS,
    own: { overview: { title: "Overview", load: () => null, view: () => overview(ctx, ctx.details) } },
  };
}

export function view(ctx, { process, details, part }) {
  return [
    crumbs("#/taskmanagers", "TaskManagers"),
    h("h1", { class: "long" }, details.id),
    facts(
      [
        ["Address", h("code", {}, details.path)],
        ["Slots in use", `${count(details.slotsNumber - details.freeSlots)} of ${count(details.slotsNumber)}`],
        ["Tasks", count(details.assignedTasks)],
        ["Cores", count(details.hardware?.cpuCores)],
        ["Memory of the machine", bytes(details.hardware?.physicalMemory)],
        ["Last heartbeat", heartbeat(details)],
      ],
      "facts line",
    ),
    partTabs(process, part),
    partView(ctx, process, part),
  ];
}

function overview(ctx, details) {
  const slots = details.allocatedSlots ?? [];
  return h(
    "div",
    { class: "columns" },
    card(
      "Slots",
      table(ctx, {
        caption: "Allocated slots",
        name: "slots",
        rows: slots,
        key: (slot, index) => index,
        empty: details.freeSlots ? "All slots are free." : "It has not said which jobs its slots belong to.",
        columns: [
          {
            title: "Job",
            cell: (slot) => h("a", { href: href("job", slot.jobId) }, h("code", { class: "id" }, slot.jobId)),
          },
          { title: "Tasks", number: true, cell: (slot) => count(slot.assignedTasks) },
          { title: "Cores", number: true, cell: (slot) => count(slot.resource?.cpuCores) },
        ],
      }),
    ),
    card("Memory", memory(ctx, details.memoryConfiguration ?? {})),
    card("In use", used(ctx, details)),
  );
}

function memory(ctx, sizes) {
  const total = number(sizes.totalProcessMemory);
  const rows = MEMORY.filter(([key]) => number(sizes[key]) !== null).map(([key, name]) => ({
    id: key,
    name,
    size: sizes[key],
  }));
  return [
    h("p", {}, "Process in total: ", h("strong", {}, bytes(total))),
    table(ctx, {
      caption: "Configured memory",
      name: "memory",
      rows,
      empty: "Nothing is known of it.",
      columns: [
        { title: "Part", cell: (row) => row.name },
        { title: "Size", number: true, sort: (row) => row.size, cell: (row) => bytes(row.size) },
        {
          title: "Share",
          cell: (row) => (total ? [meter(row.size / total, "small"), ` ${percent(row.size / total)}`] : "–"),
        },
      ],
    }),
  ];
}

function used(ctx, details) {
  const [sizes, loads] = [measured(ctx, USED), measured(ctx, LOADS)];
  if (!sizes.length) return heap(ctx, details.metrics);
  const total = sizes.reduce((sum, { value }) => sum + value, 0);
  const most = number(details.memoryConfiguration?.totalProcessMemory);
  const share = most ? total / most : null;
  return [
    h("p", {}, "Memory in total: ", h("strong", {}, bytes(total)), most ? ` of ${bytes(most)}` : ""),
    share === null ? null : h("p", {}, meter(share)),
    table(ctx, {
      caption: "Memory and processors in use",
      name: "used",
      rows: sizes,
      columns: [
        { title: "Processes", cell: (row) => row.name },
        { title: "Memory", number: true, sort: (row) => row.value, cell: (row) => bytes(row.value) },
        {
          title: "Processors",
          number: true,
          cell: (row) => percent(loads.find((load) => load.name === row.name)?.value),
        },
      ],
    }),
    h("p", { class: "quiet note" }, "Processors: share of all of the machine. Memory that workers share counts for each."),
  ];
}

function measured(ctx, metrics) {
  return metrics
    .map(([id, name]) => ({ id, name, value: number(ctx.measured.get(id)) }))
    .filter(({ value }) => value !== null);
}

/** As Flink's TaskManagers tell it, which are one JVM each. */
function heap(ctx, metrics) {
  if (!metrics) return none("It has not reported yet.");
  const rows = ["heap", "nonHeap", "direct", "mapped"]
    .filter((name) => number(metrics[`${name}Used`]) !== null)
    .map((name) => ({
      id: name,
      used: metrics[`${name}Used`],
      most: metrics[`${name}Max`],
    }));
  const names = { heap: "JVM heap", nonHeap: "JVM non-heap", direct: "Direct buffers", mapped: "Mapped buffers" };
  return [
    table(ctx, {
      caption: "Memory in use",
      name: "used",
      rows,
      empty: "It has not reported yet.",
      columns: [
        { title: "Memory", cell: (row) => names[row.id] },
        { title: "Used", number: true, cell: (row) => bytes(row.used) },
        { title: "Most", number: true, cell: (row) => bytes(row.most) },
        {
          title: "Share",
          cell: (row) =>
            row.most > 0 ? [meter(row.used / row.most, "small"), ` ${percent(row.used / row.most)}`] : "–",
        },
      ],
    }),
    (metrics.garbageCollectors ?? []).length
      ? table(ctx, {
          caption: "Garbage collectors",
          name: "collectors",
          rows: metrics.garbageCollectors,
          key: (row) => row.name,
          columns: [
            { title: "Garbage collector", cell: (row) => row.name },
            { title: "Runs", number: true, cell: (row) => count(row.count) },
            { title: "Time", number: true, cell: (row) => duration(row.time) },
          ],
        })
      : null,
  ];
}
