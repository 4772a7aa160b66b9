// What TaskManager and JobManager have in common: logs, standard output, threads, metrics.

import { ApiError, url } from "../core/api.js";
import { h } from "../core/dom.js";
import { bytes } from "../core/format.js";
import { href } from "../core/router.js";
import { crumbs, filterField, none, table, tabs, timeOf } from "../parts/common.js";
import { loadLog, logView } from "../parts/logs.js";
import { loadMetrics, metricsView } from "../parts/metrics.js";

/** What is shown first of those that a process has: the JobManager has no JVM here, one of Flink's no Python. */
export const PROCESS_METRICS = [
  "Status.JVM.CPU.Load",
  "Status.JVM.Memory.Heap.Used",
  "Status.JVM.Memory.NonHeap.Used",
  "Status.JVM.Memory.Resident",
  "Status.JVM.Threads.Count",
  "Status.Python.Workers.CPU.Load",
  "Status.Python.Workers.Memory.Resident",
  "Status.Python.CPU.Load",
  "Status.Python.Memory.Resident",
  "numRunningJobs",
  "taskSlotsAvailable",
];

/** Parts every process has: name in the address → title. */
const SHARED = { metrics: "Metrics", logs: "Logs", stdout: "Standard output", threads: "Threads" };

/**
 * The current part of a process's page.
 *
 * @param {{root: string, link: string[], kind: string, usual: string[], own: object}} process `root` of its
 *   REST paths, `link` of its page, `own` parts of its own: name → {title, load, view}
 */
export async function loadPart(ctx, process) {
  const [name = Object.keys(process.own)[0], file] = ctx.rest;
  try {
    return { name, file, data: await partData(ctx, process, name, file) };
  } catch (error) {
    // the rest of the page is good without this part
    if (!(error instanceof ApiError) || error.lost || error.status === 401) throw error;
    return { name, file, problem: error.message };
  }
}

async function partData(ctx, { root, kind, usual, own }, name, file) {
  if (own[name]) return own[name].load(ctx);
  switch (name) {
    case "metrics":
      return loadMetrics(ctx, { address: `${root}/metrics`, kind, usual });
    case "logs":
      return file ? loadLog(ctx, `${root}/${url`logs/${file}`}`) : ctx.get(`${root}/logs`);
    case "stdout":
      return loadLog(ctx, `${root}/stdout`);
    case "threads":
      return once(ctx, `${root}/thread-dump`);
    default:
      throw new ApiError(404, "There is no such part of the page.");
  }
}

/** A dump of all threads costs the process something: it is asked for when somebody wants it. */
async function once(ctx, address) {
  const kept = ctx.state.dump;
  if (kept && !ctx.state.again) return kept;
  ctx.state.again = false;
  ctx.state.dump = { ...(await ctx.get(address)), at: Date.now() };
  return ctx.state.dump;
}

export function partTabs(process, part) {
  const titles = {
    ...Object.fromEntries(Object.entries(process.own).map(([name, { title }]) => [name, title])),
    ...SHARED,
  };
  return tabs(
    "Parts",
    Object.entries(titles).map(([name, title]) => [href(...process.link, name), title, name === part.name]),
  );
}

export function partView(ctx, process, part) {
  if (part.problem) return h("p", { class: "alert warn" }, part.problem);
  const { name, file, data } = part;
  if (process.own[name]) return process.own[name].view(ctx, data);
  const panel = (...content) => h("section", { class: "card" }, content);
  switch (name) {
    case "metrics":
      return metricsView(ctx, data);
    case "logs":
      return file
        ? panel(
            crumbs(href(...process.link, "logs"), "All logs"),
            h("h2", { class: "value" }, file),
            logView(ctx, data, file),
          )
        : panel(logList(ctx, process, data.logs));
    case "stdout":
      return panel(logView(ctx, data, "standard output"));
    default:
      return threads(ctx, data);
  }
}

function logList(ctx, { link }, logs) {
  return table(ctx, {
    caption: "Logs",
    name: "logs",
    rows: logs,
    key: (log) => log.name,
    empty: "There are no logs.",
    columns: [
      {
        title: "File",
        sort: (log) => log.name,
        cell: (log) => h("a", { href: href(...link, "logs", log.name) }, log.name),
      },
      { title: "Size", number: true, sort: (log) => log.size, cell: (log) => bytes(log.size) },
      { title: "Changed", sort: (log) => log.mtime, cell: (log) => timeOf(log.mtime) },
    ],
  });
}

/** Name → stacks: threads of a pool, whose names differ by their last number, stand together. */
function pools(found) {
  const groups = new Map();
  for (const { threadName, stringifiedThreadInfo } of found) {
    const stack = String(stringifiedThreadInfo).trim();
    const name = threadName ?? stack.split("\n")[0];
    const pool = name.replace(/([-#_ ])\d+$/, "$1…");
    if (!groups.has(pool)) groups.set(pool, []);
    groups.get(pool).push({ name, stack });
  }
  return [...groups].map(([pool, members]) => [
    members.length > 1 ? pool : members[0].name,
    members.map(({ stack }) => stack),
  ]);
}

function threads(ctx, dump) {
  const wanted = (ctx.state.filters?.threads ?? "").toLowerCase();
  const all = dump.threadInfos ?? [];
  const found = all.filter((thread) =>
    `${thread.threadName} ${thread.stringifiedThreadInfo}`.toLowerCase().includes(wanted),
  );
  return [
    h(
      "div",
      { class: "bar" },
      filterField(ctx, "threads", "Threads with"),
      h(
        "button",
        {
          type: "button",
          onclick: () => {
            ctx.state.again = true;
            ctx.refresh();
          },
        },
        "New dump",
      ),
      h("span", { class: "quiet" }, `${found.length} of ${all.length} threads, `, timeOf(dump.at)),
    ),
    found.length
      ? h(
          "section",
          { class: "card threads", "aria-label": "Threads" },
          pools(found).map(([name, stacks]) =>
            h(
              "details",
              { class: "thread", key: name },
              h(
                "summary",
                {},
                h("span", { class: "value" }, name),
                stacks.length > 1 ? h("span", { class: "quiet" }, `${stacks.length} threads`) : null,
              ),
              h(
                "pre",
                { tabindex: 0, role: "region", "aria-label": `Stack of ${name}` },
                stacks.join("\n\n"),
              ),
            ),
          ),
        )
      : none("No thread has this text in it."),
  ];
}
