// What can be done with a job: checkpoint, savepoint, stop, cancel.

import { ApiError, behindYarnProxy, get, reason, send, url } from "../core/api.js";
import { h } from "../core/dom.js";
import { wait } from "../core/live.js";
import { token } from "../core/session.js";
import { isOver } from "../parts/jobs.js";
import { ask } from "../parts/dialog.js";

const LOOK_EVERY_MS = 1000;
const DIRECTORY = {
  name: "directory",
  label: "Directory",
  placeholder: "hdfs:///savepoints",
  note: "Empty: the cluster's own (execution.checkpointing.savepoint-dir).",
};

export function actions(ctx, job) {
  if (isOver(job.state) || !ctx.shell.features["web-cancel"]) return null;
  const running = job.state === "RUNNING";
  const posts = running && !behindYarnProxy();
  const button = (words, act, props = {}) =>
    h("button", { type: "button", onclick: () => act(ctx, job), ...props }, words);
  return h(
    "div",
    { class: "actions", role: "group", "aria-label": "Do with the job" },
    button("Checkpoint", checkpoint, { disabled: !posts }),
    button("Savepoint…", savepoint, { disabled: !posts }),
    button("Stop…", stop, { disabled: !running, title: "Stop with a savepoint" }),
    button("Cancel…", cancel, { class: "danger", disabled: job.state === "CANCELLING" }),
  );
}

async function checkpoint(ctx, job) {
  await ctx.shell.operate(`Checkpoint of ${job.name}…`, async () => {
    const { "request-id": trigger } = await send("POST", url`jobs/${job.jid}/checkpoints`, {
      checkpointType: "CONFIGURED",
    });
    const made = await outcome(url`jobs/${job.jid}/checkpoints/${trigger}`);
    return `Checkpoint ${made.checkpointId ?? ""} of ${job.name} is complete.`;
  });
  ctx.refresh();
}

async function savepoint(ctx, job) {
  const answer = await ask({
    title: `Savepoint of ${job.name}`,
    text: "The job goes on.",
    fields: [DIRECTORY],
    confirm: "Take savepoint",
  });
  if (!answer) return;
  await ctx.shell.operate(`Savepoint of ${job.name}…`, async () => {
    const body = { "cancel-job": false };
    if (answer.directory.trim()) body["target-directory"] = answer.directory.trim();
    const { "request-id": trigger } = await send("POST", url`jobs/${job.jid}/savepoints`, body);
    const made = await outcome(url`jobs/${job.jid}/savepoints/${trigger}`);
    return `Savepoint of ${job.name}: ${made.location}`;
  });
  ctx.refresh();
}

async function stop(ctx, job) {
  const answer = await ask({
    title: `Stop ${job.name}?`,
    text: "A savepoint is taken, and the job ends with it.",
    fields: behindYarnProxy()
      ? []
      : [
          DIRECTORY,
          {
            name: "drain",
            label: "Drain: let all windows and timers fire; the job cannot be continued then",
            type: "checkbox",
          },
        ],
    confirm: "Stop with savepoint",
    danger: true,
  });
  if (!answer) return;
  await ctx.shell.operate(`Stopping ${job.name}…`, async () => {
    const body = { drain: answer.drain };
    if (answer.directory?.trim()) body.targetDirectory = answer.directory.trim();
    const { "request-id": trigger } = behindYarnProxy()
      ? await throughYarn(url`jobs/${job.jid}/yarn-stop`)
      : await send("POST", url`jobs/${job.jid}/stop`, body);
    const made = await outcome(url`jobs/${job.jid}/savepoints/${trigger}`);
    return `${job.name} is stopped; its savepoint: ${made.location}`;
  });
  ctx.refresh();
}

async function cancel(ctx, job) {
  const sure = await ask({
    title: `Cancel ${job.name}?`,
    text: "The job ends at once, without a savepoint. To continue it later, stop it instead.",
    confirm: "Cancel job",
    danger: true,
  });
  if (!sure) return;
  await ctx.shell.operate(`Canceling ${job.name}…`, async () => {
    if (behindYarnProxy()) await throughYarn(url`jobs/${job.jid}/yarn-cancel`);
    else await send("PATCH", url`jobs/${job.jid}?mode=cancel`);
    return `${job.name} is being canceled.`;
  });
  ctx.refresh();
}

/** YARN's proxy passes on GET and PUT, and no header that could hold the token. */
function throughYarn(path) {
  return send("PUT", path, { token: token() });
}

/** What became of an operation that was begun; a leader that is away meanwhile may know it when it is back. */
async function outcome(path) {
  const never = new AbortController().signal;
  for (;;) {
    try {
      const { status, operation } = await get(path);
      if (status.id === "COMPLETED") return succeeded(operation ?? {});
    } catch (error) {
      if (!(error instanceof ApiError) || !error.lost) throw error;
    }
    await wait(LOOK_EVERY_MS, never);
  }
}

function succeeded(operation) {
  const cause = operation["failure-cause"];
  if (!cause) return operation;
  throw new Error(reason(String(cause["stack-trace"] ?? cause.class ?? "It failed.")));
}
