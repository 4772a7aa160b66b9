// A log's end, followed as it grows. Only the end is asked for, where the server can cut.

import { ApiError, content, raw } from "../core/api.js";
import { h } from "../core/dom.js";
import { bytes } from "../core/format.js";
import { none } from "./common.js";

const FIRST_BYTES = 256 * 1024;
/** More lines make browsers slow; the whole file can be saved. */
const MOST_LINES = 5000;
/** The first level in a line is the line's. Lines without one belong to the line before. */
const LEVEL = /\b(?:(ERROR|FATAL|CRITICAL|SEVERE)|(WARN|WARNING)|TRACE|DEBUG|INFO)\b/;

/**
 * Load what is new of a log. The state of the page keeps what was there: `{text, end, whole}`.
 *
 * @param {string} address of the file
 */
export async function loadLog(ctx, address) {
  let log = ctx.state.log;
  if (log?.address !== address) log = { address, text: "", end: -1, missing: "" };
  // with the last byte once more: a range that begins at the end is an error
  const range = log.end < 1 ? `bytes=-${FIRST_BYTES}` : `bytes=${log.end - 1}-`;
  try {
    const answer = await raw(address, { signal: ctx.signal, headers: { Range: range } });
    if (answer.status === 206) {
      const [, first, last] = /bytes (\d+)-(\d+)/.exec(answer.headers.get("Content-Range") ?? "") ?? [];
      const part = new Uint8Array(await content(answer, "arrayBuffer"));
      const follows = log.end > 0 && Number(first) === log.end - 1;
      const text = new TextDecoder().decode(follows ? part.subarray(1) : part);
      log = {
        address,
        text: follows ? log.text + text : text,
        end: Number(last) + 1,
        cut: follows ? log.cut : Number(first) > 0,
      };
    } else if (answer.status === 416) {
      // empty, or begun anew and shorter than it was
      log = { address, text: "", end: -1, cut: false };
    } else {
      log = { address, text: await content(answer, "text"), end: -1, cut: false };
    }
    log.missing = "";
  } catch (error) {
    if (!(error instanceof ApiError) || error.lost || error.status === 401) throw error;
    log = { ...log, missing: error.message };
  }
  const lines = log.text.split("\n");
  if (lines.length > MOST_LINES) log = { ...log, text: lines.slice(-MOST_LINES).join("\n"), cut: true };
  ctx.state.log = log;
  return log;
}

export function logView(ctx, log, name) {
  const filters = (ctx.state.filters ??= {});
  const wanted = (filters.log ?? "").toLowerCase();
  const follow = ctx.state.follow ?? true;
  let lines = log.text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  if (log.cut && lines.length) lines.shift(); // most likely half a line
  const all = lines.length;
  if (wanted) lines = lines.filter((line) => line.toLowerCase().includes(wanted));
  return h(
    "section",
    { class: "log", "aria-label": name },
    h(
      "div",
      { class: "bar" },
      h(
        "div",
        { class: "filter" },
        h("label", { for: "log-filter" }, "Lines with"),
        h("input", {
          id: "log-filter",
          type: "search",
          value: filters.log ?? "",
          spellcheck: "false",
          oninput: (event) => {
            filters.log = event.target.value;
            ctx.redraw();
          },
        }),
      ),
      toggle(ctx, "follow", "Follow the end", follow),
      toggle(ctx, "wrap", "Break lines", ctx.state.wrap ?? false),
      h("button", { type: "button", onclick: () => save(ctx, log.address, name) }, "Save whole file"),
    ),
    log.missing ? h("p", { class: "alert warn" }, log.missing) : null,
    !log.missing && !all ? none("It is empty so far. New lines show here by themselves.") : null,
    all
      ? h(
          "p",
          { class: "quiet" },
          wanted
            ? `${lines.length} of the last ${all} lines`
            : `${log.cut ? "The last " : ""}${all} lines, ${bytes(log.text.length)}`,
        )
      : null,
    all
      ? h(
          "pre",
          {
            class: ctx.state.wrap ? "lines wrap" : "lines",
            tabindex: 0,
            role: "region",
            "aria-label": `Lines of ${name}`,
            key: log.address,
            ref: (element) => stayAtTheEnd(element, ctx),
          },
          blocks(lines).map(({ tone, text }) => h("span", { class: tone }, text)),
        )
      : null,
  );
}

/** Neighbouring lines of one look together: a log has thousands of lines and few warnings. */
function blocks(lines) {
  const found = [];
  let tone = "plain";
  for (const line of lines) {
    const level = LEVEL.exec(line.slice(0, 200));
    if (level) tone = level[1] ? "bad" : level[2] ? "warn" : "plain";
    if (found.at(-1)?.tone === tone) found.at(-1).lines.push(line);
    else found.push({ tone, lines: [line] });
  }
  return found.map((block) => ({ tone: block.tone, text: block.lines.join("\n") + "\n" }));
}

function toggle(ctx, name, label, checked) {
  return h(
    "label",
    { class: "check" },
    h("input", {
      type: "checkbox",
      checked,
      onchange: (event) => {
        ctx.state[name] = event.target.checked;
        ctx.redraw();
      },
    }),
    ` ${label}`,
  );
}

function stayAtTheEnd(element, ctx) {
  const { state } = ctx;
  const down = () => {
    if (state.follow ?? true) element.scrollTop = element.scrollHeight;
  };
  new MutationObserver(down).observe(element, { childList: true, subtree: true, characterData: true });
  requestAnimationFrame(down);
}

async function save(ctx, address, name) {
  await ctx.shell.operate(`Saving ${name}…`, async () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(await wholeFile(address)));
    link.download = name.split("/").at(-1);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    return `${name} is saved.`;
  });
}

/** All of a file, however much of it the server gives at once. */
async function wholeFile(address) {
  const parts = [];
  for (let end = 0, size = 1; end < size;) {
    const answer = await raw(address, { timeoutMs: 0, headers: { Range: `bytes=${end}-` } });
    if (answer.status === 416) break;
    parts.push(await content(answer, "blob"));
    const [, last, all] = /-(\d+)\/(\d+)$/.exec(answer.headers.get("Content-Range") ?? "") ?? [];
    if (answer.status !== 206 || !all) break;
    [end, size] = [Number(last) + 1, Number(all)];
  }
  return parts;
}
