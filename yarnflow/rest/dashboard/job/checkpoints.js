// Checkpoints and savepoints of a job: overview, history with details, summary, configuration.

import { url } from "../core/api.js";
import { h } from "../core/dom.js";
import { UNKNOWN, bytes, count, duration, number } from "../core/format.js";
import { href } from "../core/router.js";
import { badge, card, facts, none, table, tabs, timeOf } from "../parts/common.js";
import { chart } from "../parts/chart.js";

const SECTIONS = { overview: "Overview", history: "History", summary: "Summary", configuration: "Configuration" };
/** Fields of Flink's summary that can have values here → words and format. */
const MEASURES = [
  ["end_to_end_duration", "Duration", duration],
  ["checkpointed_size", "Checkpointed data", bytes],
  ["state_size", "Full state", bytes],
];

export async function load(ctx, job, [section = "overview", number]) {
  const root = url`jobs/${job.jid}/checkpoints`;
  const [all, config, details] = await Promise.all([
    ctx.get(root),
    section === "configuration" ? ctx.get(`${root}/config`) : null,
    section === "history" && number ? ctx.get(url`jobs/${job.jid}/checkpoints/details/${number}`) : null,
  ]);
  return { section, all, config, details };
}

export function view(ctx, job, { section, all, config, details }) {
  const content = { overview, history, summary, configuration }[section] ?? overview;
  return [
    tabs(
      "Parts of the checkpoints",
      Object.entries(SECTIONS).map(([name, title]) => [
        name === "overview" ? href("job", job.jid, "checkpoints") : href("job", job.jid, "checkpoints", name),
        title,
        name === section,
      ]),
      "sub",
    ),
    content(ctx, job, { all, config, details }),
  ];
}

function overview(ctx, job, { all }) {
  const { counts, latest } = all;
  return [
    facts(
      [
        ["Triggered", count(counts.total)],
        ["In progress", count(counts.in_progress)],
        ["Completed", count(counts.completed)],
        ["Failed", count(counts.failed)],
        ["Restored", count(counts.restored)],
        all.directory ? ["Directory", h("code", { class: "value" }, all.directory)] : null,
      ],
      "facts line",
    ),
    h(
      "div",
      { class: "columns wide" },
      card("Latest completed", latest.completed ? made(job, latest.completed) : none("No checkpoint is complete yet.")),
      card("Latest savepoint", latest.savepoint ? made(job, latest.savepoint) : none("No savepoint was taken.")),
      card("Latest failed", latest.failed ? made(job, latest.failed) : none("None has failed.")),
      card(
        "Restored",
        latest.restored
          ? restored(latest.restored)
          : none("The job has not started from a checkpoint or savepoint."),
      ),
    ),
    charts(all.history),
  ];
}

function made(job, checkpoint) {
  return facts([
    ["Id", link(job, checkpoint)],
    ["Triggered", timeOf(checkpoint.trigger_timestamp)],
    ["Duration", duration(checkpoint.end_to_end_duration)],
    ["Full state", bytes(checkpoint.state_size)],
    checkpoint.external_path ? ["Path", path(checkpoint)] : null,
    checkpoint.failure_message ? ["Failure", checkpoint.failure_message] : null,
  ]);
}

function restored(latest) {
  return facts([
    ["Id", count(latest.id)],
    ["Restored", timeOf(latest.restore_timestamp)],
    ["Kind", latest.is_savepoint ? "savepoint" : "checkpoint"],
    latest.external_path ? ["Path", h("code", { class: "value" }, latest.external_path)] : null,
    latest["claim-mode"] ? ["Claim mode", latest["claim-mode"]] : null,
  ]);
}

function link(job, checkpoint) {
  return checkpoint.id > 0
    ? h("a", { href: href("job", job.jid, "checkpoints", "history", checkpoint.id) }, checkpoint.id)
    : UNKNOWN;
}

/** Of those in the job's own directory, which is shown on the overview, the name is enough. */
function path(checkpoint, directory = null) {
  const whole = checkpoint.external_path;
  const short = directory && whole.startsWith(`${directory}/`) ? whole.slice(directory.length + 1) : whole;
  return [
    h("code", { class: "value", title: short === whole ? null : whole }, short),
    checkpoint.discarded ? h("span", { class: "quiet" }, " (discarded)") : null,
  ];
}

function charts(history) {
  const completed = history.filter((each) => each.status === "COMPLETED").reverse();
  if (completed.length < 2) return null;
  const series = (name, key) => [
    { name, points: completed.map((each) => [each.trigger_timestamp, Number(each[key])]) },
  ];
  return h(
    "div",
    { class: "charts" },
    chart({ title: "Duration", series: series("Duration", "end_to_end_duration"), format: duration }),
    chart({ title: "Full state", series: series("Full state", "state_size"), format: bytes }),
  );
}

function history(ctx, job, { all, details }) {
  return [
    details ? card(`Checkpoint ${details.id}`, detail(ctx, job, details)) : null,
    card(
      "History",
      table(ctx, {
        caption: "Checkpoints, newest first",
        name: "checkpoints",
        rows: all.history,
        key: (each, index) => (each.id > 0 ? each.id : `x${index}`),
        empty: "There are no checkpoints yet.",
        rowClass: (each) => (details?.id === each.id ? "chosen" : null),
        columns: [
          { title: "Id", sort: (each) => each.id, cell: (each) => link(job, each) },
          { title: "State", sort: (each) => each.status, cell: (each) => badge(each.status) },
          { title: "Kind", sort: kind, cell: kind },
          {
            title: "Triggered",
            sort: (each) => each.trigger_timestamp,
            cell: (each) => timeOf(each.trigger_timestamp),
          },
          {
            title: "Duration",
            number: true,
            sort: (each) => each.end_to_end_duration,
            cell: (each) => duration(each.end_to_end_duration),
          },
          {
            title: "Checkpointed",
            number: true,
            low: true,
            sort: (each) => each.checkpointed_size,
            cell: (each) => bytes(each.checkpointed_size),
          },
          {
            title: "Full state",
            number: true,
            sort: (each) => each.state_size,
            cell: (each) => bytes(each.state_size),
          },
          {
            title: "Failure or path",
            low: true,
            cell: (each) => each.failure_message ?? (each.external_path ? path(each, all.directory) : ""),
          },
        ],
      }),
    ),
  ];
}

function kind(checkpoint) {
  const words = {
    CHECKPOINT: "checkpoint",
    SAVEPOINT: "savepoint",
    SYNC_SAVEPOINT: "savepoint to stop",
    UNALIGNED_CHECKPOINT: "unaligned checkpoint",
  };
  return words[checkpoint.checkpoint_type] ?? (checkpoint.is_savepoint ? "savepoint" : "checkpoint");
}

function detail(ctx, job, checkpoint) {
  return [
    facts(
      [
        ["State", badge(checkpoint.status)],
        ["Kind", kind(checkpoint)],
        checkpoint.trigger ? ["Triggered by", checkpoint.trigger.toLowerCase()] : null,
        ["Triggered", timeOf(checkpoint.trigger_timestamp)],
        ["Complete", timeOf(checkpoint.latest_ack_timestamp)],
        ["Duration", duration(checkpoint.end_to_end_duration)],
        ...[
          ["commit-wait", "Waited for the commit"],
          ["pause", "Pause"],
          ["copy", "Copy"],
          ["persist", "Persist"],
        ].map(([key, words]) => (number(checkpoint[key]) > 0 ? [words, duration(checkpoint[key])] : null)),
        ["Checkpointed data", bytes(checkpoint.checkpointed_size)],
        ["Full state", bytes(checkpoint.state_size)],
      ],
      "facts line",
    ),
    checkpoint.external_path ? h("p", {}, "Path: ", path(checkpoint)) : null,
    checkpoint.failure_message ? h("p", { class: "alert bad" }, checkpoint.failure_message) : null,
    (checkpoint.queries ?? []).map((query) => [
      h("h3", {}, `Query ${query.name}, batch ${count(query["batch-id"])}`),
      h(
        "p",
        { class: "quiet" },
        "Committed ",
        timeOf(query.committed),
        number(query.watermark) > 0 ? [", watermark ", timeOf(query.watermark)] : null,
      ),
      table(ctx, {
        caption: `Sources of ${query.name}`,
        name: `offsets-${query.name}`,
        rows: query.sources ?? [],
        key: (row, index) => index,
        empty: "It has no sources.",
        columns: [
          { title: "Source", cell: (source) => h("code", { class: "value" }, source.description) },
          { title: "Read up to", cell: (source) => h("code", { class: "value" }, source["end-offset"]) },
          { title: "Rows", number: true, cell: (source) => count(source["input-rows"]) },
        ],
      }),
      query.operators?.length
        ? table(ctx, {
            caption: `State of ${query.name}`,
            name: `operators-${query.name}`,
            rows: query.operators,
            key: (row, index) => index,
            columns: [
              { title: "Stateful operator", cell: (operator) => operator.name },
              { title: "Rows", number: true, cell: (operator) => count(operator.rows) },
              { title: "Memory", number: true, cell: (operator) => bytes(operator.bytes) },
              { title: "Partitions", number: true, cell: (operator) => count(operator.partitions) },
            ],
          })
        : null,
    ]),
    tasks(ctx, job, checkpoint),
    h("p", {}, h("a", { href: href("job", job.jid, "checkpoints", "history") }, "Close")),
  ];
}

/** Flink's split by vertex; what has no subtasks of a checkpoint has none here. */
function tasks(ctx, job, checkpoint) {
  const rows = Object.entries(checkpoint.tasks ?? {}).map(([id, task]) => ({ id, ...task }));
  if (!rows.length) return null;
  const names = new Map(job.vertices.map((vertex) => [vertex.id, vertex.name]));
  return table(ctx, {
    caption: "Vertices of the checkpoint",
    name: "checkpoint-vertices",
    rows,
    columns: [
      { title: "Vertex", cell: (row) => names.get(row.id) ?? row.id },
      {
        title: "Acknowledged",
        number: true,
        cell: (row) => `${count(row.num_acknowledged_subtasks)} of ${count(row.num_subtasks)}`,
      },
      { title: "Duration", number: true, cell: (row) => duration(row.end_to_end_duration) },
      { title: "Full state", number: true, cell: (row) => bytes(row.state_size) },
    ],
  });
}

function summary(ctx, job, { all }) {
  const columns = [
    ["min", "Least"],
    ["avg", "Mean"],
    ["max", "Most"],
    ["p50", "50 %"],
    ["p90", "90 %"],
    ["p95", "95 %"],
    ["p99", "99 %"],
    ["p999", "99.9 %"],
  ];
  const rows = MEASURES.filter(([key]) => all.summary?.[key]).map(([key, words, format]) => ({
    id: key,
    words,
    format,
    values: all.summary[key],
  }));
  return card(
    "Summary",
    h("p", { class: "quiet" }, "Of the completed checkpoints in the history."),
    table(ctx, {
      caption: "Summary",
      name: "summary",
      rows: all.counts.completed ? rows : [],
      empty: "No checkpoint is complete yet.",
      columns: [
        { title: "Of", cell: (row) => row.words },
        ...columns.map(([key, title]) => ({ title, number: true, cell: (row) => row.format(row.values[key]) })),
      ],
    }),
  );
}

/** Without one Flink says its largest number, which is not known here. */
function interval(ms) {
  if (ms === null) return "no periodic checkpoints";
  return ms > 0 ? duration(ms) : "every batch";
}

function configuration(ctx, job, { config }) {
  if (!config) return none("Loading…");
  const yes = (value) => (value ? "yes" : "no");
  const kept = config.externalization?.enabled
    ? config.externalization.delete_on_cancellation
      ? "until the job is canceled"
      : "when the job is canceled too"
    : "only while the job runs";
  return card(
    "Configuration",
    facts([
      ["Mode", String(config.mode).replaceAll("_", " ")],
      ["Interval", interval(number(config.interval))],
      ["Timeout", duration(config.timeout)],
      ["Pause between two", duration(config.min_pause)],
      ["Kept", kept],
      config.retained === undefined ? null : ["How many are kept", count(config.retained)],
      [
        "Failures that are tolerated",
        config.tolerable_failed_checkpoints >= 2 ** 31 - 1 ? "any number" : count(config.tolerable_failed_checkpoints),
      ],
      config.state_backend ? ["State backend", config.state_backend] : null,
      config.checkpoint_storage ? ["Storage", config.checkpoint_storage] : null,
      ["Unaligned", yes(config.unaligned_checkpoints)],
    ]),
  );
}
