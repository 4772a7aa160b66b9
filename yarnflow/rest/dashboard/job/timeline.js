// When the job and its subtasks were in which state.

import { url } from "../core/api.js";
import { h } from "../core/dom.js";
import { clock, duration } from "../core/format.js";
import { badge, card, none, table, timeOf, tone } from "../parts/common.js";
import { isOver } from "../parts/jobs.js";
import { name } from "./overview.js";

const ENDS = new Set(["FINISHED", "CANCELED", "FAILED"]);

export async function load(ctx, job) {
  const open = (ctx.state.openVertices ??= new Set());
  const times = await Promise.all(
    job.vertices
      .filter((vertex) => open.has(vertex.id))
      .map(async (vertex) => [vertex.id, await ctx.getIfAny(url`jobs/${job.jid}/vertices/${vertex.id}/subtasktimes`)]),
  );
  return new Map(times);
}

export function view(ctx, job, times) {
  const end = isOver(job.state) ? job["end-time"] : job.now;
  const range = { from: job["start-time"], to: Math.max(end, job["start-time"] + 1) };
  const states = spans(job.timestamps, end);
  return [
    card(
      "Job",
      h("div", { class: "times" }, ruler(range), row("State of the job", states, range)),
      table(ctx, {
        caption: "States of the job",
        name: "job-states",
        rows: states,
        key: (span) => span.state,
        columns: [
          { title: "State", cell: (span) => badge(span.state) },
          { title: "Entered", cell: (span) => timeOf(span.from) },
          {
            title: "Lasted",
            number: true,
            cell: (span) => (ENDS.has(span.state) ? "" : duration(span.to - span.from)),
          },
        ],
      }),
    ),
    card(
      "Vertices",
      job.vertices.length
        ? h(
            "div",
            { class: "times" },
            ruler(range, "indented"),
            job.vertices.map((vertex) => vertexRow(ctx, vertex, times.get(vertex.id), range, end)),
          )
        : none("The job has no vertices yet."),
    ),
  ];
}

/** From time of entry by state to spans, one after the other. */
export function spans(timestamps, end) {
  const entered = Object.entries(timestamps ?? {})
    .filter(([, at]) => at > 0)
    .sort((one, other) => one[1] - other[1]);
  return entered.map(([state, from], index) => ({ state, from, to: Math.max(from, entered[index + 1]?.[1] ?? end) }));
}

function vertexRow(ctx, vertex, times, range, end) {
  const from = vertex["start-time"];
  const to = vertex["end-time"] > 0 ? vertex["end-time"] : end;
  const whole = from > 0 ? [{ state: vertex.status, from, to }] : [];
  const open = ctx.state.openVertices;
  return h(
    "details",
    {
      key: vertex.id,
      open: open.has(vertex.id),
      ontoggle: (event) => {
        if (event.target.open === open.has(vertex.id)) return;
        if (event.target.open) open.add(vertex.id);
        else open.delete(vertex.id);
        ctx.refresh();
      },
    },
    h("summary", {}, row(name(vertex), whole, range, duration(vertex.duration), true)),
    times?.subtasks?.length
      ? times.subtasks.map((subtask) =>
          row(
            `Subtask ${subtask.subtask} ${subtask.endpoint ?? ""}`,
            spans(subtask.timestamps, to),
            range,
            duration(subtask.duration),
          ),
        )
      : none(times === null ? "This server has no times of subtasks." : "No subtask has begun."),
  );
}

function row(label, spansOfIt, { from, to }, length = "", plain = false) {
  const share = (at) => Math.min(100, Math.max(0, (100 * (at - from)) / (to - from)));
  const words = spansOfIt.map(
    (span) =>
      `${span.state} from ${clock(span.from)}${ENDS.has(span.state) ? "" : ` for ${duration(span.to - span.from)}`}`,
  );
  return h(
    "span",
    { class: "time-row" },
    h("span", { class: "name" }, label),
    h(
      "span",
      { class: "track", "aria-hidden": "true" },
      spansOfIt.map((span) =>
        h("span", {
          class: `span ${tone(span.state)}`,
          title: `${span.state} ${clock(span.from)}, ${duration(span.to - span.from)}`,
          style: { left: `${share(span.from)}%`, width: `${Math.max(0.4, share(span.to) - share(span.from))}%` },
        }),
      ),
    ),
    h("span", { class: "length" }, length),
    plain ? null : h("span", { class: "hidden" }, words.join(", ")),
  );
}

function ruler({ from, to }, className = "") {
  return h(
    "span",
    { class: `time-row ruler ${className}`, "aria-hidden": "true" },
    h("span", { class: "name" }),
    h(
      "span",
      { class: "track" },
      h("span", {}, clock(from)),
      h("span", {}, clock((from + to) / 2)),
      h("span", {}, clock(to)),
    ),
    h("span", { class: "length" }),
  );
}
