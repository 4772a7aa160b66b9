// Server-sent events, read with fetch: EventSource cannot send a token.

import { ApiError, raw } from "./api.js";

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 15_000;

/**
 * Call `onEvent(name, data)` for every event until the signal says so; the connection is made again when it
 * ends. Where there are no events (a proxy that keeps them back, an older server), it just ends: whoever
 * listens looks from time to time anyway.
 */
export async function follow(path, onEvent, signal) {
  let pause = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      const answer = await raw(path, { signal, timeoutMs: 0, headers: { Accept: "text/event-stream" } });
      if (!answer.headers.get("Content-Type")?.startsWith("text/event-stream")) return;
      await read(answer.body, (name, data) => {
        pause = FIRST_PAUSE_MS;
        onEvent(name, data);
      });
    } catch (error) {
      if (signal.aborted || (error instanceof ApiError && !error.lost && error.status < 500)) return;
      if (error instanceof ApiError && error.status === 501) return;
    }
    await wait(pause, signal);
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
  }
}

/** `follow` while somebody looks: browsers have few connections to one server, for all their tabs together. */
export async function followWhileSeen(path, onEvent, signal) {
  while (!signal.aborted) {
    const hidden = new AbortController();
    const look = () => document.hidden && hidden.abort();
    document.addEventListener("visibilitychange", look);
    if (!document.hidden) await follow(path, onEvent, AbortSignal.any([hidden.signal, signal]));
    document.removeEventListener("visibilitychange", look);
    if (!hidden.signal.aborted && !document.hidden) return;
    await seen(signal);
  }
}

/** Resolve when the page is seen, or the signal says so. */
export function seen(signal) {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look, { once: true });
    look();
  });
}

async function read(stream, onEvent) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = parse(block);
      if (event) onEvent(event.name, event.data);
    }
  }
}

function parse(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    const [, field, value] = /^(\w*): ?(.*)$/.exec(line) ?? [];
    if (field === "event") name = value;
    if (field === "data") data.push(value);
  }
  if (!data.length) return null; // a comment that keeps the connection open
  try {
    return { name, data: JSON.parse(data.join("\n")) };
  } catch {
    return { name, data: data.join("\n") };
  }
}

/** Resolve after a time, or at once when the signal says so. */
export function wait(ms, signal) {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
    signal.addEventListener("abort", done);
  });
}
