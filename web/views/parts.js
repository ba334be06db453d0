/** What views share: elements, tokens as they can be seen, numbers, colours of the page for canvases. */

const SIGNS = { " ": "·", "\n": "⏎", "\t": "⇥", "\r": "␍" };
const UNSEEN = /[\p{White_Space}\p{Control}\p{Default_Ignorable_Code_Point}]/gu;

/** A token as it can be seen: spaces, line ends and characters without a shape have signs of their own. */
export function visible(token) {
  const name = (sign) => `⟨${sign.codePointAt(0).toString(16).padStart(4, "0")}⟩`;
  return token.replace(UNSEEN, (sign) => SIGNS[sign] ?? name(sign)) || "∅";
}

export function percent(probability) {
  const value = 100 * probability;
  if (value > 99.9 && value < 100) return "> 99.9 %";
  return value >= 0.1 || value === 0 ? `${value.toFixed(1)} %` : "< 0.1 %";
}

/** A number of any size in few digits. */
export function short(value) {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  return size !== 0 && (size < 0.001 || size >= 1e5) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

/** How a cell is come to: by touch, or otherwise. */
export function reach(keys) {
  return matchMedia("(pointer: coarse)").matches ? "Tap a cell" : `Point at a cell, or move there with the ${keys}`;
}

export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "style") made.style.cssText = value; // as an attribute, a strict policy would refuse it
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** Numbers as an array that can be indexed, whatever the host sent them as. */
export function numbers(values) {
  if (values instanceof DataView) return new Float32Array(values.buffer.slice(values.byteOffset, values.byteOffset + values.byteLength));
  return values;
}

/** Colours of the page by the names of its variables, as [red, green, blue]. */
export function colours(el, ...names) {
  const probe = make("span");
  el.append(probe);
  const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const found = names.map((name) => {
    probe.style.color = `var(${name})`;
    context.fillStyle = getComputedStyle(probe).color;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data.subarray(0, 3)];
  });
  probe.remove();
  return found;
}

/** The colour between two, as a CSS colour; `share` from 0 to 1. */
export function between(from, to, share) {
  return `rgb(${from.map((value, k) => Math.round(value + (to[k] - value) * share)).join(" ")})`;
}

/** A canvas of a size in CSS pixels that is sharp on any screen. */
export function canvasOf(canvas, width, height) {
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
