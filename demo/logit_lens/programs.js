/** The Python behind each picture and text (programs.py): shown below it, changed, and run again. */

import { make } from "../../web/views/parts.js";

const element = (id) => document.getElementById(id);

/** A text without and with a change. */
export function showPair(id, { without, steered }) {
  element(id).hidden = false;
  element(id).querySelectorAll("dd").forEach((shown, k) => (shown.textContent = [without, steered][k]));
}

/** Texts below each other. */
export function showList(id, texts) {
  element(id).hidden = false;
  element(id).replaceChildren(...texts.map((text) => make("li", { dir: "auto" }, text)));
}

/** Put a program's field below a panel; `run(text)` runs it. It is hidden until a program is `written`. */
export function programField(name, panel, run) {
  const text = make("textarea", { rows: "16", spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", "aria-label": `Python of ${name}` });
  const again = make("button", { type: "button" }, "Run again");
  again.addEventListener("click", () => run(text.value));
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    run(text.value);
  });
  const hint = make("span", { class: "quiet" }, "What it leaves in ", make("code", {}, "picture"), " is shown. ", make("kbd", {}, "Ctrl"), "+", make("kbd", {}, "Enter"), " runs it.");
  const field = make("details", { id: `${name}-code`, class: "program", hidden: "" }, make("summary", {}, "The Python behind it"), text, make("div", { class: "line" }, again, hint));
  element(`${panel}-panel`).append(field);
  return field;
}

/** Show a program in its field. */
export function written(name, text) {
  element(`${name}-code`).hidden = false;
  element(`${name}-code`).querySelector("textarea").value = text;
}
