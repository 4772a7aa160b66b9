// One job: what is always in sight of it, and the part that was chosen.

import { ApiError, moduleBy, url } from "../core/api.js";
import { h } from "../core/dom.js";
import { count, duration } from "../core/format.js";
import { followWhileSeen } from "../core/live.js";
import { href } from "../core/router.js";
import { badge, crumbs, facts, tabs, timeOf } from "../parts/common.js";
import { isOver } from "../parts/jobs.js";
import { actions } from "./actions.js";

/** Name in the address → title and module; `told`: events say all that changes there. */
const PARTS = {
  overview: { title: "Overview", module: () => import("./overview.js") },
  queries: { title: "Queries", module: () => import("./queries.js") },
  timeline: { title: "Timeline", module: () => import("./timeline.js"), told: true },
  exceptions: { title: "Exceptions", module: () => import("./exceptions.js"), told: true },
  checkpoints: { title: "Checkpoints", module: () => import("./checkpoints.js"), told: true },
  metrics: { title: "Metrics", module: () => import("./metrics.js") },
  configuration: { title: "Configuration", module: () => import("./configuration.js"), told: true },
};

export const title = (ctx, { job }) => `${job.name}: ${job.state}`;

export async function load(ctx) {
  const [name = "overview", ...rest] = ctx.rest;
  const job = await ctx.get(url`jobs/${ctx.params.job}`);
  listen(ctx, job, name);
  announce(ctx, job);
  // a vertex is shown beside the graph it is part of
  const part = await loadPart(ctx, PARTS[name === "vertex" ? "overview" : name], job, rest);
  const drawer = name === "vertex" ? await loadPart(ctx, { module: () => import("./vertex.js") }, job, rest) : null;
  return { job, name, part, drawer };
}

async function loadPart(ctx, part, job, rest) {
  if (!part) return { problem: "There is no such part of the page." };
  const module = await moduleBy(part.module);
  try {
    return { module, data: await module.load(ctx, job, rest) };
  } catch (error) {
    if (!(error instanceof ApiError) || error.lost || error.status === 401) throw error;
    return { problem: error.message };
  }
}

/** Begin to hear of changes; where there are no events, the page asks as often as others. */
function listen(ctx, job, name) {
  if (isOver(job.state)) {
    ctx.listening?.abort();
    ctx.told = false;
    return;
  }
  if (ctx.listening || ctx.shell.features["web-history"]) return;
  ctx.listening = new AbortController();
  const onEvent = (event) => {
    ctx.told = PARTS[name]?.told ?? false;
    // of progress there is news all the time; it concerns what shows numbers
    if (event !== "progress" || !ctx.told) ctx.refresh();
  };
  followWhileSeen(url`jobs/${ctx.params.job}/events`, onEvent, AbortSignal.any([ctx.listening.signal, ctx.signal]));
}

function announce(ctx, job) {
  const before = ctx.state.jobState;
  ctx.state.jobState = job.state;
  if (before && before !== job.state) ctx.shell.announce(`Job ${job.name} is ${job.state}.`);
}

export function view(ctx, { job, name, part, drawer }) {
  const id = ctx.params.job;
  const current = name === "vertex" ? "overview" : name;
  return [
    crumbs("#/jobs", "Jobs"),
    h("div", { class: "bar head" }, h("h1", {}, job.name || id), badge(job.state), actions(ctx, job)),
    job["waiting-for"] ? h("p", { class: "alert warn" }, h("strong", {}, "Waiting: "), job["waiting-for"]) : null,
    facts(
      [
        ["Job id", h("code", { class: "id" }, job.jid)],
        ["Started", timeOf(job["start-time"])],
        job["end-time"] > 0 ? ["Ended", timeOf(job["end-time"])] : null,
        ["Duration", duration(job.duration)],
        job["slots-required"] === undefined
          ? null
          : ["Slots", `${count(job["slots-allocated"])} of ${count(job["slots-required"])}`],
        job.restarts === undefined
          ? null
          : [
              "Restarts",
              job.restarts > 0
                ? h("a", { href: href("job", id, "exceptions") }, count(job.restarts))
                : count(job.restarts),
            ],
      ],
      "facts line",
    ),
    tabs(
      "Parts of the job",
      Object.entries(PARTS).map(([part, { title }]) => [
        part === "overview" ? href("job", id) : href("job", id, part),
        title,
        part === current,
      ]),
    ),
    part.problem ? h("p", { class: "alert warn" }, part.problem) : part.module.view(ctx, job, part.data),
    drawer
      ? drawer.problem
        ? h("p", { class: "alert warn" }, drawer.problem)
        : drawer.module.view(ctx, job, drawer.data)
      : null,
  ];
}
