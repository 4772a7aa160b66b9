// Small parts that many pages have: states, tabs, tables, lists of facts.

import { h } from "../core/dom.js";
import { UNKNOWN, time } from "../core/format.js";

/** State of a job, task or checkpoint → how it looks. Words always stand beside the colour. */
const TONES = {
  RUNNING: "good",
  COMPLETED: "good",
  FINISHED: "done",
  FAILED: "bad",
  FAILING: "bad",
  RESTARTING: "warn",
  RECONCILING: "warn",
  CANCELLING: "warn",
  CANCELING: "warn",
  SUSPENDED: "warn",
  CREATED: "soon",
  SCHEDULED: "soon",
  DEPLOYING: "soon",
  INITIALIZING: "soon",
  IN_PROGRESS: "soon",
};

export function tone(state) {
  return TONES[state] ?? "idle";
}

export function badge(state, words = state) {
  return h("span", { class: `badge ${tone(state)}` }, words ?? UNKNOWN);
}

/** How many tasks are in which state, without the states that none is in. */
export function taskCounts(tasks) {
  const states = Object.entries(tasks ?? {}).filter(([state, many]) => state !== "total" && many > 0);
  if (!states.length) return h("span", { class: "quiet" }, UNKNOWN);
  return h(
    "span",
    { class: "counts" },
    states.map(([state, many]) =>
      h("span", { class: `badge ${tone(state.toUpperCase())}` }, `${many} ${state.toLowerCase()}`),
    ),
  );
}

export function timeOf(ms) {
  const text = time(ms);
  return text === UNKNOWN ? text : h("time", { datetime: new Date(Number(ms)).toISOString() }, text);
}

/** Links between the parts of a page: [[address, name, is current], …]. */
export function tabs(label, links, className = "") {
  return h(
    "nav",
    { class: `tabs ${className}`, "aria-label": label },
    links.map(([address, name, current]) => h("a", { href: address, "aria-current": current ? "page" : null }, name)),
  );
}

/** The way back to where this page was reached from. */
export function crumbs(address, words) {
  return h("p", { class: "crumbs" }, h("a", { href: address }, h("span", { "aria-hidden": "true" }, "‹ "), words));
}

/** Name and value pairs: [[name, value], …]; pairs that are null are left out. */
export function facts(pairs, className = "facts") {
  return h(
    "dl",
    { class: className },
    pairs.filter(Boolean).map(([name, ...value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

export function card(title, ...content) {
  return h("section", { class: "card" }, h("h2", {}, title), content);
}

/** Something may be missing: then a word instead of nothing. */
export function none(text) {
  return h("p", { class: "quiet none" }, text);
}

/** A share of a whole, drawn; the words beside it say the same. */
export function meter(ratio, className = "") {
  const share = Math.min(1, Math.max(0, Number(ratio) || 0));
  return h(
    "span",
    { class: `meter ${className}`, "aria-hidden": "true" },
    h("span", { style: { width: `${share * 100}%` } }),
  );
}

/**
 * A table whose columns can be sorted.
 *
 * A column: `title`, `cell(row)`, and as needed `sort(row)` → what is compared, `number` (to the right),
 * `low` (left out on a phone), `key` when titles repeat. `state` is where the page keeps the order.
 */
export function table(
  ctx,
  { caption, columns, rows, name, key = (row) => row.id, empty = "None.", showCaption = false, rowClass },
) {
  if (!rows.length) return none(empty);
  const order = (ctx.state.orders ??= {})[name];
  const column = order && columns.find((candidate) => candidate.title === order.title);
  const sorted = column?.sort
    ? [...rows].sort((one, other) => order.sign * compare(column.sort(one), column.sort(other)))
    : rows;
  const sortBy = (title) => {
    ctx.state.orders[name] = { title, sign: order?.title === title ? -order.sign : 1 };
    ctx.redraw();
  };
  const classes = ({ number, low }) => [number && "number", low && "low"].filter(Boolean).join(" ") || null;
  return h(
    "div",
    { class: "scroll", role: "region", "aria-label": caption, key: `table-${name}`, ref: reachable },
    h(
      "table",
      {},
      h("caption", { class: showCaption ? null : "hidden" }, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((each) => {
            const sorting = column === each ? (order.sign > 0 ? "ascending" : "descending") : null;
            return h(
              "th",
              { scope: "col", class: classes(each), "aria-sort": sorting },
              each.sort
                ? h("button", { type: "button", class: "sort", onclick: () => sortBy(each.title) }, each.title)
                : each.title,
            );
          }),
        ),
      ),
      h(
        "tbody",
        {},
        sorted.map((row, index) =>
          h(
            "tr",
            { key: `${key(row, index)}`, class: rowClass?.(row) },
            columns.map((each, place) =>
              h(place ? "td" : "th", { class: classes(each), scope: place ? null : "row" }, each.cell(row)),
            ),
          ),
        ),
      ),
    ),
  );
}

const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const box = target.closest(".scroll");
    if (!target.isConnected || !box) widths.unobserve(target);
    else if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
});

/** What is wider than its place is scrolled with the keyboard too; only then is it a stop of the tab key. */
export function reachable(box) {
  widths.observe(box);
  widths.observe(box.firstElementChild);
}

function compare(one, other) {
  // what is not known comes first, or last
  if (one === null || one === undefined || other === null || other === undefined)
    return (one ?? null) === (other ?? null) ? 0 : one === null || one === undefined ? -1 : 1;
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one ?? "").localeCompare(String(other ?? ""), "en", { numeric: true });
}

/** So many are seen at a glance. */
const FEW = 8;

/** Options, key → value, with a field that narrows them down. */
export function options(ctx, name, caption, entries, empty) {
  const wanted = (ctx.state.filters?.[name] ?? "").toLowerCase();
  const rows = [...entries]
    .sort((one, other) => one.key.localeCompare(other.key))
    .filter(({ key, value }) => `${key} ${value}`.toLowerCase().includes(wanted));
  return [
    entries.length > FEW ? filterField(ctx, name, "Filter") : null,
    table(ctx, {
      caption,
      name,
      rows,
      key: (row) => row.key,
      empty: wanted ? "Nothing has this text in it." : empty,
      columns: [
        { title: "Key", cell: (row) => h("code", {}, row.key), sort: (row) => row.key },
        { title: "Value", cell: (row) => h("code", { class: "value" }, String(row.value)), sort: (row) => row.value },
      ],
    }),
  ];
}

export function filterField(ctx, name, label) {
  const id = `filter-${name}`;
  const filters = (ctx.state.filters ??= {});
  return h(
    "div",
    { class: "filter" },
    h("label", { for: id }, label),
    h("input", {
      id,
      type: "search",
      value: filters[name] ?? "",
      spellcheck: "false",
      oninput: (event) => {
        filters[name] = event.target.value;
        ctx.redraw();
      },
    }),
  );
}
