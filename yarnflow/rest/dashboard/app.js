// Starts the dashboard: shows the page of the address, and the next one when the address changes.

import { moduleBy } from "./core/api.js";
import { h, render } from "./core/dom.js";
import { match } from "./core/router.js";
import { applyTheme } from "./core/session.js";
import { Shell, showCurrent } from "./core/shell.js";
import { Visit } from "./core/visit.js";

const main = document.getElementById("main");
const shell = new Shell();
let visit = null;
let turn = 0;

async function show() {
  const mine = ++turn;
  const place = match(location.hash);
  const samePage = place !== null && visit?.place.key === place.key;
  if (place?.page === "overview" && shell.features["web-history"]) {
    // an archive has no cluster
    location.replace("#/jobs");
    return;
  }
  visit?.stop();
  main.setAttribute("aria-busy", "true");
  shell.at(place?.page ?? "");
  if (!place) {
    visit = null;
    render(main, h("h1", { tabindex: -1 }, "Not found"), h("p", {}, "There is no such page."));
    main.setAttribute("aria-busy", "false");
    main.dataset.place = location.hash;
    return;
  }
  let module;
  try {
    module = await moduleBy(place.load);
  } catch (error) {
    shell.lost(error.message);
    setTimeout(() => mine === turn && show(), shell.refreshMs);
    return;
  }
  if (mine !== turn) return;
  const moved = visit !== null && !samePage;
  if (!samePage) render(main, h("p", { class: "quiet" }, "Loading…"));
  visit = new Visit(place, module, shell, main);
  await visit.start();
  if (mine !== turn) return;
  // what programs that look at the page wait for
  main.dataset.place = location.hash;
  showCurrent(main);
  if (moved) {
    // as after the load of a page: reading begins at its top
    window.scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address after "#" is the page's
  main.focus();
});
window.addEventListener("hashchange", show);
// graphs are drawn otherwise on narrow windows
window.matchMedia("(max-width: 620px)").addEventListener("change", () => visit?.draw());
applyTheme();
shell.draw();
shell.configure(() => (shell.features["web-history"] ? show() : visit?.refresh()));
show();
