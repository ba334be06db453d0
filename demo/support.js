/** What demos share: what a page needs of a browser and how to say that it is missing, notes, files, tabs. */

import { boot } from "../web/boot.js";
import { make } from "../web/views/parts.js";
import { SHIPPING, toSwitchOn } from "../web/webgpu_advice.js";

/**
 * What keeps WebGPU from working on this page, or null.
 * @returns {Promise<{ title: string, text: string, list?: string[] } | null>}
 */
async function missingOnPage() {
  if (!isSecureContext) {
    return {
      title: "WebGPU is hidden here",
      text: "Browsers offer it only on pages that come over https or from this computer. Open the page at an https address, or at 127.0.0.1.",
    };
  }
  if (!navigator.gpu) {
    return {
      title: "This browser has no WebGPU",
      text: `This page computes on the graphics processor, which it reaches through WebGPU. ${orOpen(toSwitchOn(false))}`,
      list: SHIPPING,
    };
  }
  const adapter = await navigator.gpu.requestAdapter().catch(() => null);
  if (adapter) return null;
  return {
    title: "WebGPU finds no graphics processor",
    text: `This browser has WebGPU, but it offers no adapter: the driver is missing or blocked, or hardware acceleration is switched off in the settings. Update the driver, switch acceleration on and restart the browser. ${orOpen(toSwitchOn(true))}`,
    list: SHIPPING,
  };
}

/** What can be done here, or else: the list of browsers follows. */
function orOpen(here) {
  return here ? `${here} Or open this page in one of these:` : "Please open this page in one of these:";
}

/** What keeps WebGPU from working inside the worker where Python runs, or null. */
function missingInWorker(info) {
  if (info.webgpu) return null;
  return {
    title: "WebGPU is missing in workers",
    text: `This browser offers WebGPU to pages, but not to the worker in which Python runs, so that the page never freezes. ${orOpen("")}`,
    list: SHIPPING,
  };
}

/** One line about the place: versions, and which optional features are there. */
function describe(info) {
  const waits = info.jspi ? "JSPI available, not needed" : "JSPI missing, not needed: every value is awaited";
  const isolation = info.isolated ? "cross-origin isolated" : "not cross-origin isolated, not needed";
  return `Python ${info.python} on Pyodide ${info.pyodide}, started in ${(info.milliseconds / 1000).toFixed(1)} s; ${waits}; ${isolation}.`;
}

/**
 * Start Python for a page: its worker, or null where the browser has not what it needs, which is said.
 * @param {(state: string, text: string) => void} show what the page is about
 * @param {Record<string, string>} stages texts of what is loaded
 * @param {object} settings further ones of `boot`
 */
export async function started(show, stages, settings) {
  const say = (missing) => {
    note(missing);
    show("missing", missing.title + ".");
    return null;
  };
  document.getElementById("notes").replaceChildren();
  show("starting", "Starting…");
  const missing = await missingOnPage();
  if (missing) return say(missing);
  const python = await boot({ onProgress: ({ stage }) => show("starting", stages[stage]), ...settings });
  document.getElementById("about").textContent = describe(python.info);
  const absent = missingInWorker(python.info);
  if (absent) python.terminate();
  return absent ? say(absent) : python;
}

/** An address that holds elsewhere, too; a hub name stays. */
export function absolute(source) {
  return /^(\/|https?:)/.test(source) ? new URL(source, location.href).href : source;
}

/** What an address is called on the page: its last part, as people read it. */
export function lastName(source) {
  const name = source.split("/").findLast(Boolean) ?? source;
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // a % that begins no escape
  }
}

/** 96200000 as "96.2 MB". */
export function bytes(count) {
  if (count < 1e6) return `${(count / 1e3).toFixed(1)} kB`;
  return count < 1e9 ? `${(count / 1e6).toFixed(1)} MB` : `${(count / 1e9).toFixed(2)} GB`;
}

/** A note with what happened and what to do about it; `trace` goes under a fold. */
export function note({ title, text, list, said, trace, button }) {
  const box = make("div", { class: "note" }, make("p", {}, make("strong", {}, title)));
  if (said) box.append(make("p", { class: "said" }, said));
  box.append(make("p", {}, text));
  if (list) box.append(make("ul", {}, ...list.map((item) => make("li", {}, item))));
  if (trace) box.append(make("details", {}, make("summary", {}, "Where it happened"), make("pre", {}, trace)));
  if (button) box.append(button);
  document.getElementById("notes").append(box);
}

/** A note that the worker is gone, with `start` on a button; `text` says what has to be done again. */
export function stopped(error, text, start) {
  const button = make("button", { type: "button" }, "Start again");
  button.addEventListener("click", start);
  note({ title: "Python has stopped", said: error.message, text, button });
}

/** Explain an exception of Python's by its class; what the library says is already a sentence for people. */
export function explain(error, advice) {
  const mark = error.message.lastIndexOf(`${error.type}: `);
  const said = mark < 0 ? error.message : error.message.slice(mark + error.type.length + 2);
  const unknown = { title: `Something went wrong (${error.type ?? error.name})`, text: "Try again, or reload the page." };
  note({ ...(advice[error.type] ?? unknown), said, trace: mark < 0 ? null : error.message });
}

/** Give a file to the person. */
export function give(name, content, type) {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000); // the download has begun by then
}

/** Make the page's tabs tabs: one is open, arrows, Home and End go to others; `opened` is told its panel. */
export function tabs(opened) {
  const all = [...document.querySelectorAll('[role="tab"]')];
  const list = all[0].parentElement; // which scrolls on a phone
  const reveal = () => {
    const tab = all.find((one) => one.tabIndex === 0);
    list.scrollLeft = Math.max(tab.offsetLeft - list.offsetLeft - list.clientWidth + tab.offsetWidth, Math.min(list.scrollLeft, tab.offsetLeft - list.offsetLeft));
  };
  new ResizeObserver(reveal).observe(list); // a phone that is turned
  const open = (tab) => {
    for (const other of all) {
      const isOpen = other === tab;
      other.setAttribute("aria-selected", String(isOpen));
      other.tabIndex = isOpen ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !isOpen;
    }
    reveal();
    opened(document.getElementById(tab.getAttribute("aria-controls")));
  };
  all.forEach((tab, k) => {
    tab.addEventListener("click", () => open(tab));
    tab.addEventListener("keydown", ({ key }) => {
      const next = { ArrowRight: all[(k + 1) % all.length], ArrowLeft: all.at(k - 1), Home: all[0], End: all.at(-1) }[key];
      if (!next) return;
      next.focus();
      open(next);
    });
  });
}
