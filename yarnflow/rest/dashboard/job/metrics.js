// Metrics of the job as a whole.

import { url } from "../core/api.js";
import { loadMetrics, metricsView } from "../parts/metrics.js";

const USUAL = [
  "secondsSinceLastCommit",
  "checkpointAge",
  "numberOfCompletedCheckpoints",
  "lastCheckpointDuration",
  "lastCheckpointFullSize",
  "numRestarts",
  "Status.JVM.Memory.Heap.Used",
  "executors.Heap.Peak",
  "Status.JVM.CPU.Load",
];

export function load(ctx, job) {
  return loadMetrics(ctx, { address: url`jobs/${job.jid}/metrics`, kind: "job", usual: USUAL });
}

export function view(ctx, job, data) {
  return metricsView(ctx, data);
}
