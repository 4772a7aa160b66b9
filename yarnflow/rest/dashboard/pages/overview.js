// The cluster at a glance.

import { h } from "../core/dom.js";
import { count, percent } from "../core/format.js";
import { card, meter } from "../parts/common.js";
import { announceChanges, isOver, jobsTable } from "../parts/jobs.js";

const COMPLETED_SHOWN = 10;

export const title = () => "Overview";

export async function load(ctx) {
  const [cluster, { jobs }] = await Promise.all([ctx.get("overview"), ctx.get("jobs/overview")]);
  announceChanges(ctx, jobs);
  return { cluster, jobs };
}

export function view(ctx, { cluster, jobs }) {
  const [total, free] = [cluster["slots-total"], cluster["slots-available"]];
  const used = total - free;
  const running = jobs.filter((job) => !isOver(job.state));
  const completed = jobs.filter((job) => isOver(job.state));
  const more = completed.length - COMPLETED_SHOWN;
  return [
    h("h1", {}, "Overview"),
    h(
      "ul",
      { class: "tiles", "aria-label": "Cluster" },
      tile("Running jobs", cluster["jobs-running"]),
      tile(
        "Slots in use",
        h("span", {}, count(used), h("small", {}, ` of ${count(total)}`)),
        total
          ? [meter(used / total), h("span", { class: "quiet" }, `${percent(used / total)} used, ${count(free)} free`)]
          : h("span", { class: "quiet" }, "no slots registered"),
      ),
      tile("TaskManagers", h("a", { href: "#/taskmanagers" }, count(cluster.taskmanagers))),
      tile("Finished jobs", cluster["jobs-finished"]),
      tile("Canceled jobs", cluster["jobs-cancelled"]),
      tile("Failed jobs", cluster["jobs-failed"], null, cluster["jobs-failed"] > 0 ? "bad" : ""),
    ),
    card("Running jobs", jobsTable(ctx, "running", "Running jobs", running, empty(cluster))),
    card(
      "Completed jobs",
      jobsTable(ctx, "completed", "Completed jobs", completed.slice(0, COMPLETED_SHOWN), "No job has ended yet."),
      more > 0 ? h("p", {}, h("a", { href: "#/jobs" }, `${count(more)} more`)) : null,
    ),
  ];
}

function empty(cluster) {
  return cluster.taskmanagers
    ? ["No job is running. Start one with ", h("code", {}, "yarnflow submit program.py"), "."]
    : "No job is running, and no TaskManager is registered.";
}

function tile(name, value, below = null, className = "") {
  return h(
    "li",
    { class: `tile ${className}` },
    h("span", { class: "name" }, name),
    h("span", { class: "value" }, typeof value === "object" ? value : count(value)),
    below,
  );
}
