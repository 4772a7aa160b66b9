// One visit of a page: its data are asked for again and again until the reader goes elsewhere.

import { ApiError, get, getIfAny } from "./api.js";
import { h, render } from "./dom.js";
import { seen, wait } from "./live.js";

const RETRY_MS = 2000;
/** However many events come, the server is not asked more often. */
const SHORTEST_PAUSE_MS = 400;
/** What the server tells by itself is asked for less often. */
const TOLD_FACTOR = 5;
/** Page → what its reader opened, sorted and typed there. */
const states = new Map();

/**
 * A page is a module with `load(ctx)`, which gives data or raises, and `view(ctx, data)`, which describes
 * them; besides `title(ctx, data)`. It sets `ctx.told` while events say when something changes.
 */
export class Visit {
  #stopping = new AbortController();
  #pause = null;
  /** The data have been asked for since the last load began. */
  #wanted = false;
  #data;
  #problem = null;
  #loaded = false;

  constructor(place, module, shell, main) {
    this.place = place;
    this.module = module;
    this.shell = shell;
    this.main = main;
    if (!states.has(place.key)) states.set(place.key, {});
    const { signal } = this.#stopping;
    this.ctx = {
      params: place.params,
      rest: place.rest,
      state: states.get(place.key),
      shell,
      signal,
      told: false,
      get: (path) => get(path, { signal }),
      getIfAny: (path) => getIfAny(path, { signal }),
      redraw: () => this.draw(),
      refresh: () => this.refresh(),
    };
  }

  /** Load and draw until stopped; resolves when the first data, or the first problem, are drawn. */
  start() {
    return new Promise((shown) => this.#run(shown));
  }

  stop() {
    this.#stopping.abort();
  }

  /** Ask for the data now, or again when those that are being loaded are there. */
  refresh() {
    this.#wanted = true;
    this.#pause?.abort();
  }

  async #run(shown) {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#wanted = false;
      await this.#load();
      if (signal.aborted) break;
      this.draw();
      shown();
      await wait(SHORTEST_PAUSE_MS, signal);
      await this.#sleep(this.#problem ? RETRY_MS : this.shell.refreshMs * (this.ctx.told ? TOLD_FACTOR : 1));
    }
    shown();
  }

  async #load() {
    try {
      this.#data = await this.module.load(this.ctx);
      this.#loaded = true;
      this.#problem = null;
      this.shell.connected();
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      this.#problem = error;
      if (error instanceof ApiError && error.lost) this.shell.lost(error.message);
      else if (error instanceof ApiError) this.shell.connected();
      else console.error(error);
      if (error.status === 401) this.shell.askForToken();
    }
  }

  /** Nobody looks at a hidden page, so it does not ask either. */
  async #sleep(ms) {
    this.#pause = new AbortController();
    if (this.#wanted) this.#pause.abort();
    const signal = AbortSignal.any([this.#pause.signal, this.#stopping.signal]);
    await wait(ms, signal);
    await seen(this.#stopping.signal);
  }

  draw() {
    if (this.#stopping.signal.aborted) return;
    let content = null;
    let title = "";
    try {
      if (this.#loaded) {
        content = this.module.view(this.ctx, this.#data);
        title = this.module.title?.(this.ctx, this.#data) ?? "";
      }
      render(this.main, this.#alert(), content);
    } catch (error) {
      console.error(error);
      render(this.main, h("p", { class: "alert bad", role: "alert" }, `This page cannot be drawn: ${error.message}`));
    }
    this.main.setAttribute("aria-busy", "false");
    document.title = title ? `${title} · yarnflow` : "yarnflow";
  }

  #alert() {
    const error = this.#problem;
    if (!error) return null;
    if (error.lost) return this.#loaded ? null : h("h1", {}, "Waiting for the JobManager…");
    const heading = (words) => (this.#loaded ? null : h("h1", {}, words));
    if (error.status === 401) return [heading("A token is needed"), this.shell.tokenNeeded()];
    if (error.status === 404 && !this.#loaded) {
      return [heading("Not found"), h("p", {}, error.message), h("p", {}, h("a", { href: "#/jobs" }, "All jobs"))];
    }
    return [heading("No data"), h("p", { class: "alert bad", role: "alert" }, error.message)];
  }
}
