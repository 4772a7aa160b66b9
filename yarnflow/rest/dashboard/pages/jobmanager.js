// The JobManager: who leads, its configuration and environment, metrics, logs and threads.

import { h } from "../core/dom.js";
import { bytes, count } from "../core/format.js";
import { card, facts, none, options, table, timeOf } from "../parts/common.js";
import { PROCESS_METRICS, loadPart, partTabs, partView } from "./processes.js";

const PROCESS = {
  root: "jobmanager",
  link: ["jobmanager"],
  kind: "jobmanager",
  usual: PROCESS_METRICS,
  own: {
    configuration: {
      title: "Configuration",
      load: (ctx) => ctx.get("jobmanager/config"),
      view: (ctx, entries) =>
        card(
          "Options",
          options(
            ctx,
            "configuration",
            "Configuration",
            entries.filter((entry) => entry.key),
            "No option is set.",
          ),
        ),
    },
    leadership: {
      title: "Leadership",
      load: (ctx) => ctx.getIfAny("jobmanager/leadership"),
      view: leadership,
    },
    environment: { title: "Environment", load: (ctx) => ctx.get("jobmanager/environment"), view: environment },
  },
};

export const title = () => "JobManager";

export async function load(ctx) {
  return loadPart(ctx, PROCESS);
}

export function view(ctx, part) {
  return [h("h1", {}, "JobManager"), partTabs(PROCESS, part), partView(ctx, PROCESS, part)];
}

function leadership(ctx, answer) {
  if (answer === null)
    return none("This server does not say who leads.");
  const { leader, standbys = [] } = answer;
  return h(
    "div",
    { class: "columns" },
    card(
      "Leader",
      leader
        ? facts([
            ["Address", h("code", {}, leader.address ?? "–")],
            leader["web-address"] ? ["Web address", h("code", {}, leader["web-address"])] : null,
            ["Leader id", h("code", {}, leader.id ?? "–")],
            ["Epoch", count(leader.epoch)],
            leader.since ? ["Since", timeOf(leader.since)] : null,
          ])
        : none("Nobody leads just now."),
    ),
    card(
      `Standbys (${standbys.length})`,
      table(ctx, {
        caption: "Standbys",
        name: "standbys",
        rows: standbys,
        key: (row) => row.id ?? row.address,
        empty: "There is no standby: when this JobManager ends, nobody takes over at once.",
        columns: [
          { title: "Id", cell: (row) => h("code", {}, row.id ?? "–") },
          { title: "Address", cell: (row) => h("code", {}, row.address ?? "–") },
          { title: "Web address", cell: (row) => h("code", {}, row["web-address"] || "–") },
          { title: "YARN application", cell: (row) => row["application-id"] || "–" },
        ],
      }),
    ),
  );
}

function environment(ctx, { jvm, python, process, classpath = [], ...others }) {
  const groups = Object.entries({ python, process, ...others }).filter(
    ([, values]) => values && typeof values === "object",
  );
  return h(
    "div",
    { class: "columns" },
    groups.map(([name, values]) =>
      card(
        name[0].toUpperCase() + name.slice(1),
        facts(Object.entries(values).map(([key, value]) => [key, h("code", { class: "value" }, shown(key, value))])),
      ),
    ),
    jvm
      ? card(
          isPython(jvm) ? "Python" : "JVM",
          facts([
            ["Version", jvm.version ?? "–"],
            ["Architecture", jvm.arch ?? "–"],
          ]),
          list(isPython(jvm) ? "Command line" : "Options", perOption(jvm.options)),
        )
      : null,
    classpath.length
      ? card(isPython(jvm) ? "Module path" : "Class path", lines("Directories and archives", classpath))
      : null,
  );
}

function shown(key, value) {
  if (/bytes$/.test(key) && typeof value === "number") return bytes(value);
  return Array.isArray(value) ? value.join(" ") : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Flink's answer has the JVM's place for what runs the JobManager. */
function isPython(jvm) {
  return /python|pypy/i.test(jvm?.version ?? "");
}

/** An option and its value are one line. */
function perOption(words = []) {
  const found = [];
  for (const word of words.map(String)) {
    if (found.length && !word.startsWith("-") && /^-\S+$/.test(found.at(-1))) found.push(`${found.pop()} ${word}`);
    else found.push(word);
  }
  return found;
}

function list(title, items) {
  return items.length ? [h("h3", {}, title), lines(title, items)] : null;
}

function lines(label, items) {
  return h(
    "ul",
    { class: "plain", "aria-label": label },
    items.map((item) => h("li", {}, h("code", { class: "value" }, String(item)))),
  );
}
