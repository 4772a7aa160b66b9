// What the job was started with.

import { url } from "../core/api.js";
import { h } from "../core/dom.js";
import { count } from "../core/format.js";
import { card, facts, none, options } from "../parts/common.js";

export async function load(ctx, job) {
  const [config, cluster] = await Promise.all([
    ctx.getIfAny(url`jobs/${job.jid}/config`),
    ctx.getIfAny(url`jobs/${job.jid}/jobmanager/config`),
  ]);
  return { config: config?.["execution-config"] ?? null, cluster };
}

export function view(ctx, job, { config, cluster }) {
  const parameters = Object.entries(config?.["user-config"] ?? {}).map(([key, value]) => ({ key, value }));
  const yes = (value) => (value ? "yes" : "no");
  return [
    card(
      "Execution",
      config
        ? facts([
            ["Type", job["job-type"] ?? "–"],
            ["Parallelism", count(config["job-parallelism"])],
            ["Restart strategy", config["restart-strategy"] ?? "–"],
            config["object-reuse-mode"] === undefined ? null : ["Object reuse", yes(config["object-reuse-mode"])],
            job.schedulerType ? ["Scheduler", job.schedulerType] : null,
          ])
        : none("This server does not have it."),
    ),
    card(
      "Parameters of the job",
      options(ctx, "parameters", "Parameters of the job", parameters, "The program has set none."),
    ),
    cluster
      ? card(
          "Options",
          h("p", { class: "quiet" }, "Of the job, and of the cluster where the job has none of its own."),
          options(
            ctx,
            "job-options",
            "Options",
            cluster.filter((entry) => entry.key),
            "No option is set.",
          ),
        )
      : null,
  ];
}
