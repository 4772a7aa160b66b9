// Tables of jobs.

import { h } from "../core/dom.js";
import { duration } from "../core/format.js";
import { href } from "../core/router.js";
import { badge, table, taskCounts, timeOf } from "./common.js";

const OVER = new Set(["FINISHED", "CANCELED", "FAILED"]);

export function isOver(state) {
  return OVER.has(state);
}

export function jobsTable(ctx, name, caption, jobs, empty) {
  const over = jobs.some((job) => isOver(job.state));
  return table(ctx, {
    caption,
    name,
    rows: jobs,
    empty,
    key: (job) => job.jid,
    columns: [
      {
        title: "Name",
        sort: (job) => job.name,
        cell: (job) => [
          h("a", { href: href("job", job.jid) }, job.name || job.jid),
          job["waiting-for"] ? h("div", { class: "waiting" }, `waiting: ${job["waiting-for"]}`) : null,
        ],
      },
      { title: "State", sort: (job) => job.state, cell: (job) => badge(job.state) },
      { title: "Started", sort: (job) => job["start-time"], cell: (job) => timeOf(job["start-time"]), low: true },
      over
        ? { title: "Ended", sort: (job) => job["end-time"], cell: (job) => timeOf(job["end-time"]), low: true }
        : null,
      { title: "Duration", number: true, sort: (job) => job.duration, cell: (job) => duration(job.duration) },
      { title: "Tasks", cell: (job) => taskCounts(job.tasks), low: true },
      { title: "Job id", sort: (job) => job.jid, cell: (job) => h("code", { class: "id" }, job.jid), low: true },
    ].filter(Boolean),
  });
}

/** Say which jobs changed their states between two looks. */
export function announceChanges(ctx, jobs) {
  const before = ctx.state.jobStates;
  ctx.state.jobStates = new Map(jobs.map((job) => [job.jid, job.state]));
  if (!before) return;
  const changes = jobs
    .filter((job) => before.get(job.jid) !== job.state)
    .map((job) => `Job ${job.name} is ${job.state}.`);
  if (changes.length) ctx.shell.announce(changes.join(" "));
}
