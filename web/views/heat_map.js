/**
 * A table of numbers as colours, on a canvas: activation patching, activations, anything by rows and columns.
 *
 *   data      { rows: [label], columns: [label], values: Float32Array(rows * columns), name, from, to }
 *             from, to: of the colours; the largest size among the values on either side of 0 if not given
 *   selected  { row, column, value }
 */
import { choose, follow } from "./model.js";
import { between, canvasOf, colours, make, numbers, reach, short, visible } from "./parts.js";
import { colourScale, SCALE_WIDTH } from "./scale.js";

const LABEL = 12; // characters of a column's label at most
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** What the bar of the colours shows: the sides of 0 on which values lie, up to where colours change no more. */
function sides(values, low, high, colour) {
  const [below, above] = [values.some((value) => value < 0), !values.every((value) => value < 0)];
  const [from, to] = [below ? -low : 0, above ? high : 0];
  const zero = -from / (to - from);
  const marks = [[0, `${values.some((value) => value < from) ? "≤ " : ""}${short(from)}`]];
  if (zero > 0 && zero < 1) marks.push([zero, "0"]);
  marks.push([1, `${values.some((value) => value > to) ? "≥ " : ""}${short(to)}`]);
  return { marks, colour: (share) => colour(from + share * (to - from)) };
}

function render({ model, el, signal }) {
  const canvas = make("canvas", { tabindex: "0", role: "img" });
  const told = make("p", { class: "told", role: "status" });
  const box = make("div", { class: "pellucid heat-map" }, make("div", { class: "scroller" }, canvas), told);
  el.append(box);
  let at = null; // [row, column]
  let place; // where the cells lie
  let data = null;

  const draw = (given) => {
    data = given && { ...given, values: numbers(given.values) };
    canvas.hidden = !data?.rows.length;
    told.textContent = canvas.hidden ? "" : `${reach("arrow keys")}.`;
    if (canvas.hidden) return;
    const { rows, columns, values } = data;
    const room = el.clientWidth || 600;
    const measure = canvas.getContext("2d");
    measure.font = "11px ui-monospace, monospace";
    const left = Math.ceil(Math.max(...rows.map((row) => measure.measureText(row).width))) + 8;
    const width = Math.max(14, Math.min(56, Math.floor((room - left - 4) / columns.length)));
    const height = Math.max(9, Math.min(18, Math.floor(420 / rows.length)));
    const longest = Math.max(...columns.map((column) => measure.measureText(visible(column).slice(0, LABEL)).width));
    const slanted = longest > width - 2;
    const bottom = slanted ? Math.ceil(0.87 * longest) + 14 : 18; // at 60 degrees
    place = { left, width, height };
    const [cold, heat, cool, ink] = colours(box, "--cold", "--heat", "--cool", "--text");
    const text = `rgb(${ink.join(" ")})`;
    const most = Math.max(...[...values].filter(Number.isFinite).map(Math.abs), 1e-30);
    const [low, high] = [Math.abs(data.from ?? most), Math.abs(data.to ?? most)];
    const colour = (value) => {
      const share = Math.min(1, value < 0 ? -value / low : value / high);
      return between(cold, value < 0 ? cool : heat, Number.isNaN(share) ? 0 : share);
    };
    const wide = Math.max(left + width * columns.length + (slanted ? 8 : 0), SCALE_WIDTH + 4);
    const scale = colourScale({ name: data.name, ...sides(values, low, high, colour) }, wide - 4);
    const context = canvasOf(canvas, wide, height * rows.length + bottom + 6 + scale.height);
    rows.forEach((_, row) =>
      columns.forEach((_, column) => {
        // Rows begin at the bottom, as layers do.
        context.fillStyle = colour(values[row * columns.length + column]);
        context.fillRect(left + column * width, (rows.length - 1 - row) * height, width - 1, height - 1);
      }),
    );
    scale.paint(context, 2, height * rows.length + bottom + 6, text);
    context.fillStyle = text;
    context.font = "11px ui-monospace, monospace";
    context.textBaseline = "middle";
    context.textAlign = "right";
    const each = Math.ceil(12 / height); // as many labels as have room
    rows.forEach((row, k) => k % each === 0 && context.fillText(row, left - 5, (rows.length - 0.5 - k) * height));
    columns.forEach((column, k) => {
      const label = visible(column);
      const cut = label.length > LABEL ? `${label.slice(0, LABEL - 1)}…` : label;
      context.save();
      context.translate(left + (k + 0.5) * width, rows.length * height + (slanted ? 6 : 9));
      if (slanted) context.rotate(-Math.PI / 3);
      context.textAlign = slanted ? "right" : "center";
      context.fillText(cut, 0, 0);
      context.restore();
    });
    const largest = values.reduce((best, value, k) => (Math.abs(value) > Math.abs(values[best]) ? k : best), 0);
    const where = `${rows[Math.floor(largest / columns.length)]}, ${visible(columns[largest % columns.length])}`;
    canvas.setAttribute(
      "aria-label",
      `${data.name ?? "Heat map"}: ${rows.length} rows by ${columns.length} columns; the largest value, ${short(values[largest])}, at ${where}. ${scale.spoken}. Arrow keys read the cells.`,
    );
    if (at && at[0] < rows.length && at[1] < columns.length) mark(context);
  };

  function mark(context = canvas.getContext("2d")) {
    const [text] = colours(box, "--text");
    context.strokeStyle = `rgb(${text.join(" ")})`;
    context.lineWidth = 2;
    const y = (data.rows.length - 1 - at[0]) * place.height;
    context.strokeRect(place.left + at[1] * place.width, y, place.width - 1, place.height - 1);
    told.textContent = `${data.rows[at[0]]} · ${visible(data.columns[at[1]])}: ${short(value())}`;
  }

  const value = () => data.values[at[0] * data.columns.length + at[1]];
  const look = (row, column) => {
    if (!data || (at?.[0] === row && at[1] === column)) return;
    at = [row, column];
    draw(data);
  };
  const under = ({ offsetX, offsetY }) => {
    if (!place) return null;
    const column = Math.floor((offsetX - place.left) / place.width);
    const row = data.rows.length - 1 - Math.floor(offsetY / place.height);
    return row >= 0 && row < data.rows.length && column >= 0 && column < data.columns.length ? [row, column] : null;
  };
  canvas.addEventListener("pointermove", (event) => under(event) && look(...under(event)), { signal });
  canvas.addEventListener("click", (event) => {
    if (!under(event)) return;
    look(...under(event));
    choose(model, { row: at[0], column: at[1], value: value() });
  }, { signal });
  canvas.addEventListener("keydown", (event) => {
    if (!data?.rows.length || event.altKey || event.metaKey) return;
    if (event.key === "Enter" && at) choose(model, { row: at[0], column: at[1], value: value() });
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    const [row, column] = at ?? [data.rows.length, -1];
    const keep = (k, count) => Math.max(0, Math.min(count - 1, k));
    look(keep(row - move[0], data.rows.length), keep(column + move[1], data.columns.length));
  }, { signal });
  return follow(model, draw, signal);
}

export default { render };
