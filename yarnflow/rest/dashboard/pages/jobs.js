// All jobs the cluster knows, running and completed.

import { h } from "../core/dom.js";
import { card, filterField } from "../parts/common.js";
import { announceChanges, isOver, jobsTable } from "../parts/jobs.js";

export const title = () => "Jobs";

export async function load(ctx) {
  const { jobs } = await ctx.get("jobs/overview");
  announceChanges(ctx, jobs);
  return jobs;
}

export function view(ctx, jobs) {
  const wanted = (ctx.state.filters?.jobs ?? "").toLowerCase();
  const shown = jobs.filter((job) => `${job.name} ${job.jid} ${job.state}`.toLowerCase().includes(wanted));
  const running = shown.filter((job) => !isOver(job.state));
  const completed = shown.filter((job) => isOver(job.state));
  const empty = wanted ? "No job here has this name, id or state." : null;
  return [
    h("div", { class: "bar" }, h("h1", {}, "Jobs"), filterField(ctx, "jobs", "Name, id or state")),
    card(
      `Running (${running.length})`,
      jobsTable(ctx, "running", "Running jobs", running, empty ?? "No job is running."),
    ),
    card(
      `Completed (${completed.length})`,
      jobsTable(ctx, "completed", "Completed jobs", completed, empty ?? "No job has ended yet."),
    ),
  ];
}
