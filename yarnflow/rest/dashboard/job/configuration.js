// What the job was started with.

import { url } from "../core/api.js";
import { h } from "../core/dom.js";
import { UNKNOWN, count } from "../core/format.js";
import { card, facts, none, options, table } from "../parts/common.js";

export async function load(ctx, job) {
  const [config, cluster, logs] = await Promise.all([
    ctx.getIfAny(url`jobs/${job.jid}/config`),
    ctx.getIfAny(url`jobs/${job.jid}/jobmanager/config`),
    ctx.getIfAny(url`jobs/${job.jid}/logs`),
  ]);
  return { config: config?.["execution-config"] ?? null, cluster, logs };
}

export function view(ctx, job, { config, cluster, logs }) {
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
    logs ? card("Logs", places(ctx, logs)) : null,
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

/** Where the logs of the job's processes are, and Spark's event log where the job writes one. */
function places(ctx, logs) {
  const events = logs["spark-event-logs"] ?? [];
  return [
    table(ctx, {
      caption: "Processes of the job",
      name: "log-places",
      rows: [logs.jobmanager, ...(logs.taskmanagers ?? [])],
      columns: [
        { title: "Process", cell: (row) => row.id },
        { title: "Host", cell: (row) => row.host || UNKNOWN },
        { title: "Container", cell: (row) => row.container || UNKNOWN },
        { title: "Directory", low: true, cell: (row) => h("code", { class: "value" }, row.directory || UNKNOWN) },
      ],
    }),
    events.length
      ? table(ctx, {
          caption: "Spark's event logs, one of each driver",
          name: "event-logs",
          rows: events,
          key: (row) => row["application-id"],
          columns: [
            { title: "Spark's application", cell: eventLog },
            { title: "Event log", cell: (row) => h("code", { class: "value" }, row.path) },
          ],
        })
      : null,
  ];
}

/** An archive may have been written by anybody: only a page is linked to. */
function eventLog(row) {
  const id = row["application-id"];
  return /^https?:\/\//.test(row.url ?? "") ? h("a", { href: row.url, rel: "noopener noreferrer" }, id) : id;
}
