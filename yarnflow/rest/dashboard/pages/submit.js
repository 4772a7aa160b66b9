// Programs uploaded to the cluster: upload, look at the plan, run, remove.

import { behindYarnProxy, send, url } from "../core/api.js";
import { h } from "../core/dom.js";
import { descriptionLines } from "../core/format.js";
import { href } from "../core/router.js";
import { badge, card, none, table, timeOf } from "../parts/common.js";
import { ask, field } from "../parts/dialog.js";
import { graph, planGraph } from "../parts/graph.js";

export const title = () => "Submit";

export async function load(ctx) {
  return ctx.getIfAny("jars");
}

export function view(ctx, answer) {
  const allowed = answer !== null && ctx.shell.features["web-submit"] && !behindYarnProxy();
  const chosen = answer?.files?.find((file) => file.id === ctx.state.chosen);
  return [
    h("h1", {}, "Submit"),
    allowed
      ? null
      : h(
          "p",
          { class: "alert warn" },
          behindYarnProxy()
            ? "YARN's proxy passes on no programs; open the dashboard at the JobManager's own address, or use: yarnflow submit"
            : "This cluster takes no programs here (web.submit.enable). Use: yarnflow submit",
        ),
    allowed ? card("Upload a program", uploadForm(ctx)) : null,
    allowed ? card("Uploaded", files(ctx, answer.files)) : null,
    chosen ? card(`Run ${chosen.name}`, runForm(ctx, chosen)) : null,
    chosen && ctx.state.plan?.file === chosen.id ? card("Plan", plan(ctx.state.plan)) : null,
  ];
}

function uploadForm(ctx) {
  const upload = async (event) => {
    event.preventDefault();
    const form = event.target;
    const [file] = form.elements.file.files;
    if (!file) return;
    await ctx.shell.operate(`Uploading ${file.name}…`, async () => {
      const body = new FormData();
      body.append("jarfile", file);
      const { filename } = await send("POST", "jars/upload", body, { timeoutMs: 0 });
      ctx.state.chosen = filename.split("/").at(-1);
      form.reset();
      return `${file.name} is uploaded.`;
    });
    ctx.refresh();
  };
  return h(
    "form",
    { class: "bar", onsubmit: upload },
    h(
      "div",
      { class: "field" },
      h("label", { for: "upload" }, "Python file, or .zip with a program"),
      h("input", { id: "upload", name: "file", type: "file", accept: ".py,.zip", required: true }),
    ),
    h("button", { class: "primary" }, "Upload"),
  );
}

function files(ctx, rows) {
  return table(ctx, {
    caption: "Uploaded programs",
    name: "files",
    rows,
    empty: "Nothing is uploaded.",
    columns: [
      { title: "Program", sort: (file) => file.name, cell: (file) => file.name },
      { title: "Uploaded", sort: (file) => file.uploaded, cell: (file) => timeOf(file.uploaded), low: true },
      { title: "Entry", cell: (file) => (file.entry ?? []).map((entry) => entry.name).join(", ") || "–", low: true },
      {
        title: "Actions",
        cell: (file) =>
          h(
            "span",
            { class: "actions" },
            h(
              "button",
              {
                type: "button",
                "aria-expanded": String(ctx.state.chosen === file.id),
                "aria-label": `Run ${file.name}`,
                onclick: () => {
                  ctx.state.chosen = ctx.state.chosen === file.id ? null : file.id;
                  ctx.redraw();
                },
              },
              "Run…",
            ),
            h(
              "button",
              {
                type: "button",
                class: "danger",
                "aria-label": `Remove ${file.name}`,
                onclick: () => remove(ctx, file),
              },
              "Remove",
            ),
          ),
      },
    ],
  });
}

async function remove(ctx, file) {
  const sure = await ask({
    title: `Remove ${file.name}?`,
    text: "Jobs that run from it are not touched.",
    confirm: "Remove",
    danger: true,
  });
  if (!sure) return;
  await ctx.shell.operate(`Removing ${file.name}…`, async () => {
    await send("DELETE", url`jars/${file.id}`);
    return `${file.name} is removed.`;
  });
  ctx.refresh();
}

function runForm(ctx, file) {
  const submit = async (event) => {
    event.preventDefault();
    const body = settings(event.target);
    if (event.submitter?.value === "plan") return showPlan(ctx, file, body);
    await ctx.shell.operate(`Starting ${file.name}…`, async () => {
      const { jobid } = await send("POST", url`jars/${file.id}/run`, body, { timeoutMs: 0 });
      if (jobid) location.hash = href("job", jobid);
      return `${file.name} runs as job ${jobid}.`;
    });
  };
  const entry = file.entry?.[0]?.name ?? "";
  return h(
    "form",
    { class: "form", key: file.id, onsubmit: submit },
    field({
      name: "entryClass",
      label: "Entry",
      placeholder: entry,
      note: "Which program in the archive; empty: the one it names.",
    }),
    field({
      name: "programArgs",
      label: "Arguments",
      note: "One after the other, separated by spaces; quotes keep spaces.",
    }),
    field({ name: "parallelism", label: "Parallelism", type: "number", min: 1, step: 1 }),
    field({ name: "savepointPath", label: "Start from savepoint", placeholder: "hdfs:///…/savepoint-…" }),
    field({
      name: "allowNonRestoredState",
      label: "Leave out state that belongs to no operator any more",
      type: "checkbox",
    }),
    h(
      "div",
      { class: "actions" },
      h("button", { value: "plan" }, "Show plan"),
      h("button", { class: "primary", value: "run" }, "Run"),
    ),
  );
}

function settings(form) {
  const { entryClass, programArgs, parallelism, savepointPath, allowNonRestoredState } = form.elements;
  const body = { allowNonRestoredState: allowNonRestoredState.checked };
  if (entryClass.value.trim()) body.entryClass = entryClass.value.trim();
  const list = splitArguments(programArgs.value);
  if (list.length) body.programArgsList = list;
  if (parallelism.value) body.parallelism = Number(parallelism.value);
  if (savepointPath.value.trim()) body.savepointPath = savepointPath.value.trim();
  return body;
}

/** As a shell takes them apart, without its other signs: a "b c" 'd' → a, b c, d. */
export function splitArguments(text) {
  return [...text.matchAll(/(?:"([^"]*)"|'([^']*)'|[^\s"'])+/g)].map(([word]) =>
    word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"),
  );
}

async function showPlan(ctx, file, body) {
  await ctx.shell.operate(`Making the plan of ${file.name}…`, async () => {
    const answer = await send("POST", url`jars/${file.id}/plan`, body, { timeoutMs: 0 });
    ctx.state.plan = { file: file.id, ...answer.plan };
    ctx.redraw();
    return `The plan of ${file.name} is shown below.`;
  });
}

function plan(made) {
  const nodes = made.nodes ?? [];
  if (!nodes.length) return none("The program has no plan: it is no graph until it runs.");
  return graph({
    label: `Plan of ${made.name}`,
    nodes,
    edges: planGraph(made, nodes),
    box: (node) =>
      h(
        "div",
        { class: "vertex" },
        h("span", { class: "title" }, descriptionLines(node.description).join(" ")),
        badge("", `parallelism ${node.parallelism}`),
      ),
  });
}
