// What stands around every page: navigation, state of the connection, messages, the token.

import { ApiError, get } from "./api.js";
import { h, render } from "./dom.js";
import { clock } from "./format.js";
import { wait } from "./live.js";
import { setTheme, setToken, theme, token } from "./session.js";
import { ask } from "../parts/dialog.js";

const DEFAULT_REFRESH_MS = 3000;
const NOTICE_MS = 8000;
const PAGES = [
  ["overview", "Overview"],
  ["jobs", "Jobs"],
  ["taskmanagers", "TaskManagers"],
  ["jobmanager", "JobManager"],
  ["submit", "Submit"],
];
/** Parts of these belong to the page of the list they are reached from. */
const PARENTS = { job: "jobs", taskmanager: "taskmanagers" };

const element = (id) => document.getElementById(id);

/** Where there is no room for all links, the current one is in sight. */
export function showCurrent(place) {
  for (const link of place.querySelectorAll("nav [aria-current]"))
    link.scrollIntoView({ block: "nearest", inline: "nearest" });
}

export class Shell {
  refreshMs = DEFAULT_REFRESH_MS;
  version = "";
  /** What the server allows; until it has said so, nothing that changes something is offered. */
  features = {};
  #page = "";
  #lost = null;
  #asking = null;
  #refused = false;
  #notices = [];
  #numbers = 0;

  /** The page's settings, asked for until they are had. */
  async configure(onChange) {
    for (;;) {
      try {
        const config = await get("config");
        this.refreshMs = Math.max(500, Number(config["refresh-interval"]) || DEFAULT_REFRESH_MS);
        this.version = config["yarnflow-version"] ?? config["flink-version"] ?? "";
        this.features = config.features ?? {};
        this.draw();
        return onChange();
      } catch (error) {
        if (error instanceof ApiError && error.absent) return;
        await wait(DEFAULT_REFRESH_MS, new AbortController().signal);
      }
    }
  }

  at(page) {
    this.#page = PARENTS[page] ?? page;
    this.#within = page in PARENTS;
    this.draw();
  }
  #within = false;

  draw() {
    const archive = this.features["web-history"];
    const pages = PAGES.filter(
      ([page]) => (page !== "submit" || this.features["web-submit"]) && (!archive || page === "jobs"),
    );
    render(
      element("top"),
      h(
        "a",
        { class: "brand", href: "#/" },
        h("img", { src: "dashboard/icon.svg", alt: "", width: 22, height: 22 }),
        "yarnflow",
        archive ? h("span", { class: "quiet" }, " history") : null,
      ),
      h(
        "nav",
        { "aria-label": "Main" },
        pages.map(([page, name]) =>
          h(
            "a",
            { href: `#/${page}`, "aria-current": page === this.#page ? (this.#within ? "true" : "page") : null },
            name,
          ),
        ),
      ),
      h(
        "div",
        { class: "tools" },
        this.version ? h("span", { class: "quiet version" }, this.version) : null,
        token() || this.#refused
          ? h("button", { type: "button", class: "plain", onclick: () => this.askForToken(true) }, "Token")
          : null,
        h(
          "select",
          { "aria-label": "Colours", value: theme(), onchange: (event) => setTheme(event.target.value) },
          [
            ["", "System colours"],
            ["light", "Light colours"],
            ["dark", "Dark colours"],
          ].map(([value, name]) => h("option", { value }, name)),
        ),
      ),
    );
    showCurrent(element("top"));
  }

  connected() {
    if (!this.#lost) return;
    this.#lost = null;
    render(element("connection"));
    this.announce("Connected again.");
  }

  lost(why) {
    this.#lost ??= Date.now();
    render(
      element("connection"),
      h(
        "p",
        { class: "alert warn" },
        `No connection since ${clock(this.#lost)}. ${why} Trying again; what is shown may be old.`,
      ),
    );
  }

  /** Say it to screen readers, where what changed is seen by others. */
  announce(text) {
    render(element("announcer"), text);
  }

  /** One dialog at a time; `wanted`: the reader asked for it, others are not asked twice. */
  askForToken(wanted = false) {
    if (this.#refused && !wanted) return this.#asking ?? Promise.resolve(false);
    this.#refused = true;
    this.#asking ??= ask({
      title: "Token",
      text:
        "This cluster asks for a token. The one that is entered here is kept in this tab until the tab is closed. " +
        "The link that `yarnflow dashboard` prints lets a browser in without one.",
      fields: [{ name: "token", label: "Token", type: "password", value: "" }],
      confirm: "Use token",
    }).then((answer) => {
      this.#asking = null;
      if (answer) setToken(answer.token.trim());
      this.draw();
      if (answer) {
        this.#refused = false;
        const again = () => window.dispatchEvent(new Event("hashchange"));
        again();
        this.configure(again);
      }
      return Boolean(answer);
    });
    return this.#asking;
  }

  tokenNeeded() {
    return h(
      "div",
      { class: "alert warn", role: "alert" },
      h("p", {}, token() ? "The token is not accepted." : "This cluster shows nothing without a token."),
      h("button", { type: "button", onclick: () => this.askForToken(true) }, "Enter a token"),
    );
  }

  /**
   * Show what is done with an operation: `work` gives the words for its success. Errors become words too.
   * An operation the token is too weak for is tried once more with another.
   */
  async operate(text, work) {
    const notice = { number: ++this.#numbers, text, state: "busy" };
    this.#notices.push(notice);
    this.#drawNotices();
    try {
      notice.text = await this.#withToken(work);
      notice.state = "good";
      setTimeout(() => this.#dismiss(notice), NOTICE_MS);
    } catch (error) {
      notice.text = `${text} ${error.message}`;
      notice.state = "bad";
    }
    this.#drawNotices();
    return notice.state === "good";
  }

  async #withToken(work) {
    try {
      return await work();
    } catch (error) {
      // 403: the one there is may only read
      const weak = error.status === 401 || (error.status === 403 && token());
      if (!weak || !(await this.askForToken(true))) throw error;
      return work();
    }
  }

  #dismiss(notice) {
    this.#notices = this.#notices.filter((other) => other !== notice);
    this.#drawNotices();
  }

  #drawNotices() {
    render(
      element("notices"),
      h(
        "div",
        { role: "status" },
        this.#notices.map((notice) =>
          h(
            "p",
            { key: notice.number, class: `alert ${notice.state}` },
            h("span", {}, notice.text),
            notice.state === "busy"
              ? null
              : h("button", { type: "button", class: "plain", onclick: () => this.#dismiss(notice) }, "Dismiss"),
          ),
        ),
      ),
    );
  }
}
