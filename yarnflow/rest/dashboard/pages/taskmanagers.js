// All TaskManagers that are registered.

import { h } from "../core/dom.js";
import { UNKNOWN, bytes, count, duration, number } from "../core/format.js";
import { href } from "../core/router.js";
import { card, meter, table } from "../parts/common.js";

export const title = () => "TaskManagers";

export async function load(ctx) {
  return (await ctx.get("taskmanagers")).taskmanagers;
}

export function view(ctx, taskManagers) {
  return [
    h("h1", {}, "TaskManagers"),
    card(
      `Registered (${taskManagers.length})`,
      table(ctx, {
        caption: "TaskManagers",
        name: "taskmanagers",
        rows: taskManagers,
        empty: "No TaskManager is registered. Jobs wait until one is.",
        columns: [
          {
            title: "Id",
            sort: (each) => each.id,
            cell: (each) => h("a", { href: href("taskmanager", each.id) }, each.id),
          },
          { title: "Address", sort: (each) => each.path, cell: (each) => h("code", {}, each.path), low: true },
          {
            title: "Slots in use",
            number: true,
            sort: (each) => each.slotsNumber - each.freeSlots,
            cell: (each) => [
              `${count(each.slotsNumber - each.freeSlots)} of ${count(each.slotsNumber)} `,
              meter((each.slotsNumber - each.freeSlots) / each.slotsNumber, "small"),
            ],
          },
          {
            title: "Cores",
            number: true,
            sort: (each) => each.hardware?.cpuCores,
            cell: (each) => count(each.hardware?.cpuCores),
            low: true,
          },
          { title: "Process memory", number: true, sort: memory, cell: (each) => bytes(memory(each)), low: true },
          { title: "Last heartbeat", number: true, sort: heartbeatAge, cell: (each) => heartbeat(each) },
        ],
      }),
    ),
  ];
}

function memory(each) {
  return each.memoryConfiguration?.totalProcessMemory;
}

function heartbeatAge(each) {
  const at = number(each.timeSinceLastHeartbeat);
  return at ? Math.max(0, Date.now() - at) : null;
}

/** A time in spite of its name. */
export function heartbeat(each) {
  const age = heartbeatAge(each);
  if (age === null) return UNKNOWN;
  return `${age < 60_000 ? `${Math.round(age / 1000)} s` : duration(age)} ago`;
}
