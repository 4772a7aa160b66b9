// What went wrong, newest first; of each the Python traceback before anything else.

import { url } from "../core/api.js";
import { h } from "../core/dom.js";
import { href } from "../core/router.js";
import { badge, none, timeOf } from "../parts/common.js";

/** How far up a failure had to go. */
const WENT_ON = {
  TASKS: "its tasks ran again",
  QUERY: "the query was started again",
  DRIVER: "the job got a new driver",
  MASTER: "another JobManager took the job over",
};

export async function load(ctx, job) {
  const { exceptionHistory } = await ctx.get(url`jobs/${job.jid}/exceptions?maxExceptions=${50}`);
  return exceptionHistory ?? { entries: [] };
}

export function view(ctx, job, { entries = [], truncated }) {
  if (!entries.length) return none("Nothing has failed.");
  return [
    h(
      "ol",
      { class: "exceptions", "aria-label": "Exceptions, newest first" },
      entries.map((entry, index) =>
        h(
          "li",
          { class: "card", key: `${entry.timestamp} ${entry.exceptionName} ${index}` },
          exception(entry, index === 0),
          (entry.concurrentExceptions ?? []).length
            ? h(
                "details",
                {},
                h("summary", {}, `${entry.concurrentExceptions.length} more at the same time`),
                entry.concurrentExceptions.map((other) => h("div", { class: "concurrent" }, exception(other))),
              )
            : null,
        ),
      ),
    ),
    truncated
      ? h("p", { class: "quiet" }, "There were more; older ones are not kept (web.exception-history-size).")
      : null,
  ];
}

function exception(entry, open = false) {
  const { first, python, rest } = split(entry.stacktrace ?? "");
  const { recovered, level, ...labels } = entry.failureLabels ?? {};
  return [
    h(
      "div",
      { class: "bar head" },
      h("h2", {}, entry.exceptionName),
      timeOf(entry.timestamp),
      recovered === "true"
        ? badge("FINISHED", WENT_ON[level] ?? "the job went on")
        : recovered === "false"
          ? badge("FAILED", "the job ended")
          : null,
      Object.entries(labels).map(([name, value]) => h("span", { class: "badge idle" }, `${name}: ${value}`)),
    ),
    h("p", { class: "message" }, first),
    python
      ? h("pre", { class: "python", tabindex: 0, role: "region", "aria-label": "Python traceback" }, python)
      : null,
    h(
      "p",
      { class: "quiet" },
      entry.taskName ? `${entry.taskName} ` : "",
      entry.taskManagerId
        ? ["at ", h("a", { href: href("taskmanager", entry.taskManagerId) }, entry.endpoint ?? entry.taskManagerId)]
        : entry.endpoint
          ? `at ${entry.endpoint}`
          : "",
    ),
    rest
      ? h(
          "details",
          { open: open && !python },
          h("summary", {}, python ? "Everything else" : "Stack"),
          h("pre", { tabindex: 0, role: "region", "aria-label": "Stack" }, rest),
        )
      : null,
  ];
}

/**
 * Take an exception's text apart: its first line, the traceback of the user's Python, and the rest.
 * Of several tracebacks the last is the one that began it: Spark puts the worker's into its own.
 */
export function split(text) {
  const lines = text.split("\n");
  const starts = lines.flatMap((line, index) => (/Traceback \(most recent call last\):\s*$/.test(line) ? [index] : []));
  if (!starts.length) return { first: lines[0], python: "", rest: lines.slice(1).join("\n").trim() };
  const start = starts.at(-1);
  let end = start + 1;
  // frames are indented, and the error's own line ends it; Java's frames never belong to it
  while (end < lines.length && /^\s+(?!at )/.test(lines[end])) end++;
  while (end < lines.length && lines[end].trim() && !/^\s+at |^Caused by:|^\s*\.\.\. \d+ more/.test(lines[end])) end++;
  const python = lines.slice(start, end);
  const cause = lines[start].slice(0, lines[start].indexOf("Traceback")).trim();
  const rest = [...lines.slice(start ? 1 : 0, start), ...(cause ? [cause] : []), ...lines.slice(end)];
  python[0] = python[0].slice(python[0].indexOf("Traceback"));
  return { first: start ? lines[0] : lines[end - 1], python: python.join("\n"), rest: rest.join("\n").trim() };
}
