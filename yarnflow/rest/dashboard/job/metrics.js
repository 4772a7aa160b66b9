// Metrics of the job as a whole.

import { url } from "../core/api.js";
import { loadMetrics, metricsView } from "../parts/metrics.js";

const USUAL = ["numberOfCompletedCheckpoints", "lastCheckpointDuration", "lastCheckpointSize", "numRestarts"];

export function load(ctx, job) {
  return loadMetrics(ctx, { address: url`jobs/${job.jid}/metrics`, kind: "job", usual: USUAL });
}

export function view(ctx, job, data) {
  return metricsView(ctx, data);
}
