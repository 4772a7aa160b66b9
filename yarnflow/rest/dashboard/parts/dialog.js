// Questions that stop everything else until they are answered.

import { h, render } from "../core/dom.js";

/**
 * Ask for values; resolves to them by name, or to null when the reader does not want to.
 *
 * A field: `name`, `label`, and an input's `type`, `value`, `placeholder`, `required`, `note`.
 */
export function ask({ title, text, fields = [], confirm = "OK", danger = false }) {
  const dialog = document.createElement("dialog");
  const before = document.activeElement;
  dialog.setAttribute("aria-labelledby", "dialog-title");
  render(
    dialog,
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "dialog-title" }, title),
      text ? h("p", {}, text) : null,
      fields.map(field),
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", onclick: () => dialog.close() }, "Back"),
        h("button", { class: danger ? "danger" : "primary", value: "yes" }, confirm),
      ),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const form = dialog.querySelector("form");
      const values = {};
      for (const { name, type } of fields) {
        values[name] = type === "checkbox" ? form.elements[name].checked : form.elements[name].value;
      }
      const said = dialog.returnValue === "yes";
      dialog.remove();
      if (before?.isConnected) before.focus();
      resolve(said ? values : null);
    });
  });
}

/** One labelled input of a form. */
export function field({ name, label, note, type = "text", ...rest }) {
  const id = `field-${name}`;
  const described = note ? `${id}-note` : null;
  const input = h("input", {
    id,
    name,
    type,
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": described,
    ...rest,
  });
  return h(
    "div",
    { class: type === "checkbox" ? "field check" : "field" },
    type === "checkbox" ? [input, h("label", { for: id }, label)] : [h("label", { for: id }, label), input],
    note ? h("p", { id: described, class: "quiet" }, note) : null,
  );
}
