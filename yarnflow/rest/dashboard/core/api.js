// Requests to the JobManager's REST interface. All addresses are relative to the page's own.

import { token } from "./session.js";

const TIMEOUT_MS = 20_000;
/** A standby's way to say that there is no leader to ask just now, and that of any gateway before it. */
const NO_LEADER = 503;
const GATEWAYS = new Set([502, 503, 504]);

/** An answer that is not the one asked for; `lost`: there was nobody to answer. */
export class ApiError extends Error {
  constructor(status, message, lost = false) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.lost = lost;
  }

  /** The server has no such thing, or says that it never will. */
  get absent() {
    return this.status === 404 || this.status === 405 || this.status === 501;
  }
}

/** A path with everything that is put in encoded: url`jobs/${id}/plan`. */
export function url(parts, ...values) {
  return parts.reduce((path, part, index) => path + encodeURIComponent(values[index - 1]) + part);
}

/** `document.baseURI` keeps the path below which YARN's proxy shows the page. */
function address(path) {
  return new URL(path, document.baseURI);
}

/** The page is shown by YARN's proxy, which passes on GET and PUT only. */
export function behindYarnProxy() {
  return /\/proxy\/(redirect\/)?application_\d+_\d+(\/|$)/.test(location.pathname);
}

/** Request and answer as they are; raises for everything that is not 2xx, or 416 to a range. */
export async function raw(path, { method = "GET", body, headers = {}, signal, timeoutMs = TIMEOUT_MS } = {}) {
  const all = { ...headers };
  if (token()) all.Authorization = `Bearer ${token()}`;
  const signals = [signal, timeoutMs ? AbortSignal.timeout(timeoutMs) : null].filter(Boolean);
  let answer;
  try {
    answer = await fetch(address(path), {
      method,
      body,
      headers: all,
      cache: "no-store",
      credentials: "same-origin",
      signal: signals.length ? AbortSignal.any(signals) : undefined,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw unanswered(error);
  }
  if (answer.ok || (answer.status === 416 && all.Range)) return answer;
  const errors = await errorsOf(answer);
  // a JobManager says 502 and 504 of the processes that it asked itself
  const lost = errors.length ? answer.status === NO_LEADER : GATEWAYS.has(answer.status);
  throw new ApiError(answer.status, message(answer, errors, method), lost);
}

/** The body of an answer, as `text`, `blob` or `arrayBuffer`; its server may go away while it is read. */
export async function content(answer, kind) {
  try {
    return await answer[kind]();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unanswered(error);
  }
}

/** A module of the dashboard by `load`, such as `() => import("…")`. */
export async function moduleBy(load) {
  try {
    return await load();
  } catch (error) {
    console.error(error);
    throw new ApiError(0, "A part of the dashboard cannot be loaded.", true);
  }
}

function unanswered(error) {
  const slow = error.name === "TimeoutError";
  return new ApiError(0, slow ? "The JobManager does not answer." : "The JobManager cannot be reached.", true);
}

export async function get(path, options) {
  return json(await raw(path, { ...options, headers: { Accept: "application/json" } }));
}

/** `get`, or null for what this server does not have. */
export async function getIfAny(path, options) {
  try {
    return await get(path, options);
  } catch (error) {
    if (error instanceof ApiError && error.absent) return null;
    throw error;
  }
}

/** Write: a plain object goes as JSON, a FormData as it is. */
export async function send(method, path, body, options) {
  const form = body instanceof FormData;
  return json(
    await raw(path, {
      ...options,
      method,
      body: body === undefined || form ? body : JSON.stringify(body),
      headers: body === undefined || form ? {} : { "Content-Type": "application/json" },
    }),
  );
}

async function json(answer) {
  const text = await content(answer, "text");
  if (!text) return {};
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError(answer.status, "The answer is not from a JobManager: it is no JSON.");
  }
}

/** Flink's `errors` of an answer; none = it is a gateway's own page. */
async function errorsOf(answer) {
  try {
    const { errors } = JSON.parse(await answer.text());
    return Array.isArray(errors) ? errors : [];
  } catch {
    return [];
  }
}

/** What the server says is wrong: the first lines of its errors, without Java's frames. */
function message(answer, errors, method) {
  const lines = errors.map((error) => reason(String(error))).filter(Boolean);
  if (lines.length) return lines.at(-1);
  if (method !== "GET" && behindYarnProxy()) {
    return "YARN's proxy does not pass this on; open the dashboard at the JobManager's own address.";
  }
  return `The server answered ${answer.status} ${answer.statusText}`.trim() + ".";
}

/** The reason in an exception's text: its last cause, first line, without the class. */
export function reason(text) {
  const causes = text.split(/^Caused by: /m);
  const line = causes
    .at(-1)
    .replace(/^<Exception on server side:\s*/, "")
    .split("\n")[0];
  return line.replace(/^(?:[\w$]+\.)+[\w$]+(?:Exception|Error)?: /, "").trim();
}
