/**
 * The colour scale (legend) of what is drawn in colours: a bar in the colours of the cells, what they stand for, and of what.
 *
 *   const { height, paint, spoken } = colourScale({ name, marks, colour }, width);
 *   paint(context, x, y, text);                      // on the canvas of the cells, so that its picture has the scale
 *
 *   name     of what is measured; lines of it stand above the bar
 *   marks    [[share, label]]: 0 is the left end of the bar, 1 the right one
 *   colour   of a share, as the cells are painted
 *   spoken   the same for who hears it
 */
import { canvasOf, colours } from "./parts.js";

const BAR = 8; // pixels high
const STEPS = 96; // colours of the bar
const LINE = 14; // pixels from line to line
const TYPE = "11px ui-monospace, monospace";
export const SCALE_WIDTH = 150; // pixels: what a bar with three labels needs

export function colourScale({ name = "", marks, colour }, width) {
  const measure = new OffscreenCanvas(1, 1).getContext("2d");
  measure.font = TYPE;
  const lines = broken(name, (text) => measure.measureText(text).width <= width);
  const long = Math.min(width, 180);
  const paint = (context, x, y, text) => {
    context.save();
    context.font = TYPE;
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillStyle = text;
    lines.forEach((line, k) => context.fillText(line, x, y + (k + 0.5) * LINE, width));
    const top = y + lines.length * LINE + 2;
    for (let k = 0; k < STEPS; k++) {
      context.fillStyle = colour((k + 0.5) / STEPS);
      const from = Math.round((k * long) / STEPS);
      context.fillRect(x + from, top, Math.round(((k + 1) * long) / STEPS) - from, BAR);
    }
    context.fillStyle = context.strokeStyle = text;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, top + 0.5, long - 1, BAR - 1);
    const wide = ([share, label]) => {
      const size = measure.measureText(label).width;
      const from = share * (long - size); // the first one begins with the bar, the last one ends with it
      return [from, from + size];
    };
    const ends = [wide(marks[0]), wide(marks.at(-1))];
    for (const mark of marks) {
      context.fillRect(x + Math.round(mark[0] * (long - 1)), top + BAR, 1, 3);
      const [from, to] = wide(mark);
      const isEnd = mark === marks[0] || mark === marks.at(-1);
      if (isEnd || (from > ends[0][1] + 4 && to < ends[1][0] - 4)) context.fillText(mark[1], x + from, top + BAR + 10);
    }
    context.restore();
  };
  const told = marks.map(([, label]) => label);
  return { height: lines.length * LINE + BAR + 18, paint, spoken: `Colours go from ${told.slice(0, -1).join(" over ")} to ${told.at(-1)}` };
}

/** A scale on a canvas of its own, beside cells that are no canvas. */
export function drawScale(canvas, scale) {
  const { height, paint, spoken } = colourScale(scale, SCALE_WIDTH);
  const [text] = colours(canvas.parentElement, "--text");
  paint(canvasOf(canvas, SCALE_WIDTH, height), 0, 0, `rgb(${text.join(" ")})`);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${scale.name}: ${spoken}`);
}

/** Lines of a text that fit, broken between words; a word that does not fit is a line, and is drawn narrower. */
function broken(text, fits) {
  const lines = [];
  for (const word of text.split(" ").filter(Boolean)) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && fits(longer)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
