/**
 * Live plots of a training run: each value of the entries over the steps, drawn when an entry comes.
 *
 *     const plots = new TrainingPlots(element);
 *     await start({ onEvent: (name, value) => name === "training" && plots.add(value) });
 *
 * Python sends the entries: TrainingArguments(report_to=pellucid.train.plots.report). Those of a callback
 * pellucid.train.WeightHistograms come as the event "histograms", for addHistograms.
 */

const NAMES = ["loss", "eval_loss", "grad_norm", "learning_rate", "reward"];
const COLOURS = ["#2563eb", "#dc2626", "#16a34a", "#9333ea", "#d97706"];
const WIDTH = 480;
const HEIGHT = 140;
const LEFT = 64; // room for numbers
const EDGE = 14;

/** The plots below an element, one canvas for each value that came. */
export class TrainingPlots {
  #element;
  #plots = new Map(); // name -> { canvas, points: [[step, value]] }
  #weights = new Map(); // name of a parameter -> { canvas, entries: [[step, { low, high, counts }]] }

  constructor(element) {
    this.#element = element;
  }

  /** Take an entry of the history: numbers by name, with "step". */
  add(entry) {
    for (const name of NAMES) {
      if (typeof entry[name] !== "number") continue;
      const plot = this.#of(this.#plots, name, () => ({ canvas: this.#canvas(name), points: [] }));
      plot.points.push([entry.step, entry[name]]);
      this.#draw(name, plot);
    }
  }

  /** Take histograms of weights: { step, histograms: { name: { low, high, counts } } }. */
  addHistograms({ step, histograms }) {
    for (const [name, histogram] of Object.entries(histograms)) {
      const plot = this.#of(this.#weights, name, () => ({ canvas: this.#canvas(name), entries: [] }));
      plot.entries.push([step, histogram]);
      drawHistograms(name, plot);
    }
  }

  /** Forget what came. */
  clear() {
    this.#plots.clear();
    this.#weights.clear();
    this.#element.replaceChildren();
  }

  #of(plots, name, made) {
    if (!plots.has(name)) plots.set(name, made());
    return plots.get(name);
  }

  #canvas(name) {
    const canvas = document.createElement("canvas");
    const scale = globalThis.devicePixelRatio || 1;
    canvas.width = WIDTH * scale;
    canvas.height = HEIGHT * scale;
    canvas.style.width = `${WIDTH}px`;
    canvas.dataset.name = name;
    canvas.setAttribute("role", "img");
    canvas.getContext("2d").scale(scale, scale);
    this.#element.append(canvas);
    return canvas;
  }

  #draw(name, { canvas, points }) {
    const finite = points.filter(([, value]) => Number.isFinite(value));
    const values = finite.map(([, value]) => value);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const [first, last] = [finite[0]?.[0] ?? 0, finite.at(-1)?.[0] ?? 1];
    const x = (step) => LEFT + ((step - first) / Math.max(last - first, 1)) * (WIDTH - LEFT - EDGE);
    const y = (value) => HEIGHT - EDGE * 1.5 - ((value - low) / (high - low || 1)) * (HEIGHT - EDGE * 3);
    const context = framed(canvas, name, [low, high], [first, last]);
    context.strokeStyle = COLOURS[NAMES.indexOf(name) % COLOURS.length];
    context.lineWidth = 1.5;
    context.beginPath();
    for (const [step, value] of finite) context.lineTo(x(step), y(value));
    context.stroke();
    canvas.setAttribute("aria-label", `${name}: ${points.at(-1)[1]} at step ${points.at(-1)[0]}`);
  }
}

/** An empty plot with its name and the ends of its values and steps. */
function framed(canvas, name, [low, high], [first, last]) {
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, WIDTH, HEIGHT);
  context.font = "11px sans-serif";
  context.fillStyle = getComputedStyle(canvas).color;
  context.textAlign = "start";
  context.fillText(name, LEFT, EDGE);
  context.fillText(`step ${first}`, LEFT, HEIGHT - 3);
  context.textAlign = "end";
  context.fillText(String(last), WIDTH - EDGE, HEIGHT - 3);
  context.fillText(high.toPrecision(4), LEFT - 4, EDGE * 1.5 + 4);
  context.fillText(low.toPrecision(4), LEFT - 4, HEIGHT - EDGE * 1.5);
  return context;
}

/** How weights lie over the steps: a column for each histogram, dark where there are many. */
function drawHistograms(name, { canvas, entries }) {
  const low = Math.min(...entries.map(([, h]) => h.low));
  const high = Math.max(...entries.map(([, h]) => h.high));
  const context = framed(canvas, name, [low, high], [entries[0][0], entries.at(-1)[0]]);
  const wide = (WIDTH - LEFT - EDGE) / entries.length;
  const up = (HEIGHT - EDGE * 3) / (high - low || 1);
  context.fillStyle = COLOURS[0];
  entries.forEach(([, h], k) => {
    const width = (h.high - h.low) / h.counts.length;
    const most = Math.max(...h.counts);
    h.counts.forEach((count, j) => {
      context.globalAlpha = count / most;
      const top = HEIGHT - EDGE * 1.5 - (h.low + (j + 1) * width - low) * up;
      context.fillRect(LEFT + k * wide, top, wide, Math.max(width * up, 1));
    });
  });
  context.globalAlpha = 1;
  const { low: from, high: to } = entries.at(-1)[1];
  canvas.setAttribute("aria-label", `${name}: ${from.toPrecision(3)} to ${to.toPrecision(3)} at step ${entries.at(-1)[0]}`);
}
