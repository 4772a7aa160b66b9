// Which page an address after "#" is for.

const PAGES = [
  ["overview", () => import("../pages/overview.js")],
  ["jobs", () => import("../pages/jobs.js")],
  ["submit", () => import("../pages/submit.js")],
  ["taskmanagers", () => import("../pages/taskmanagers.js")],
  ["taskmanager/:taskManager", () => import("../pages/taskmanager.js")],
  ["jobmanager", () => import("../pages/jobmanager.js")],
  ["job/:job", () => import("../job/page.js")],
];

/** Addresses of Flink's own dashboard, which other programs print. */
const ALIASES = [
  [/^job\/(running|completed)\/(?=\w{32})/, "job/"],
  [/^job\/(running|completed)$/, "jobs"],
  [/^task-manager\/(?=.)/, "taskmanager/"],
  [/^task-manager\/?$/, "taskmanagers"],
  [/^job-manager/, "jobmanager"],
];

/** A link to a page: href("job", id, "checkpoints"). */
export function href(...segments) {
  return "#/" + segments.map(encodeURIComponent).join("/");
}

/**
 * The page of the current address: `key` is the same for all parts of one page, `rest` are the segments that
 * choose the part; null when there is no such page.
 */
export function match(hash) {
  let path = hash.replace(/^#?\/?/, "").replace(/\/$/, "") || "overview";
  for (const [alias, name] of ALIASES) path = path.replace(alias, name);
  const segments = path.split("/").map(decode);
  for (const [pattern, load] of PAGES) {
    const names = pattern.split("/");
    if (segments.length < names.length) continue;
    const params = {};
    const fits = names.every((name, index) => {
      if (name.startsWith(":")) params[name.slice(1)] = segments[index];
      return name.startsWith(":") || name === segments[index];
    });
    if (!fits) continue;
    return {
      page: names[0],
      key: segments.slice(0, names.length).join("/"),
      params,
      rest: segments.slice(names.length),
      load,
    };
  }
  return null;
}

function decode(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
