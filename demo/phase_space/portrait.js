/** Draws a cloud of dots with fading trails, and a curve of energy drift. */

const LOW = [59, 82, 200];
const HIGH = [235, 110, 40];
const SHADES = 24; // colours, so that dots of one are drawn together
const EDGE = 44; // room for words
const FADE = 0.16; // of a trail, at each picture

/** Make a canvas as fine as the screen; gives its context and its size in CSS pixels. */
function sized(canvas) {
  const scale = globalThis.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  return { context, width, height };
}


/** The plane in which the systems are seen. */
export class Portrait {
  #canvas;
  #plane;
  #shades = []; // numbers of the dots of each colour

  constructor(canvas) {
    this.#canvas = canvas;
  }

  /** Begin anew: the ends and names of both axes, and the energy of each dot, a Float32Array. */
  begin({ x, y, names, energies }) {
    const { context, width, height } = sized(this.#canvas);
    this.#plane = { context, width, height, x, y, names };
    const low = energies.reduce((a, b) => Math.min(a, b), Infinity);
    const high = energies.reduce((a, b) => Math.max(a, b), -Infinity);
    this.#shades = Array.from({ length: SHADES }, () => []);
    energies.forEach((energy, k) => {
      const share = high > low ? (energy - low) / (high - low) : 0.5;
      this.#shades[Math.min(Math.floor(share * SHADES), SHADES - 1)].push(k);
    });
    context.clearRect(0, 0, width, height);
    this.#frame();
  }

  /** Draw where the systems are: two Float32Arrays. Returns how many are within the picture. */
  draw(xs, ys) {
    const { context, width, height, x, y } = this.#plane;
    // What was drawn fades, so that dots leave trails.
    context.save();
    context.globalCompositeOperation = "destination-out";
    context.fillStyle = `rgba(0, 0, 0, ${FADE})`;
    context.fillRect(0, 0, width, height);
    context.restore();
    const across = (width - EDGE) / (x[1] - x[0]);
    const up = (height - EDGE) / (y[1] - y[0]);
    const size = xs.length > 5000 ? 1.5 : 2.5;
    let seen = 0;
    this.#shades.forEach((dots, shade) => {
      const share = shade / (SHADES - 1);
      context.fillStyle = `rgb(${LOW.map((from, k) => Math.round(from + (HIGH[k] - from) * share)).join(" ")})`;
      for (const k of dots) {
        const left = EDGE + (xs[k] - x[0]) * across;
        const top = height - EDGE - (ys[k] - y[0]) * up;
        if (!(left >= EDGE && left <= width && top >= 0 && top <= height - EDGE)) continue;
        context.fillRect(left - size / 2, top - size / 2, size, size);
        seen++;
      }
    });
    this.#frame();
    return seen;
  }

  #frame() {
    const { context, width, height, x, y, names } = this.#plane;
    const text = getComputedStyle(this.#canvas).color;
    context.clearRect(0, height - EDGE, width, EDGE);
    context.clearRect(0, 0, EDGE, height);
    context.fillStyle = context.strokeStyle = text;
    context.lineWidth = 1;
    context.strokeRect(EDGE + 0.5, 0.5, width - EDGE - 1, height - EDGE - 1);
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "left";
    context.fillText(String(x[0]), EDGE, height - EDGE + 16);
    context.textAlign = "right";
    context.fillText(String(x[1]), width - 2, height - EDGE + 16);
    context.fillText(String(y[1]), EDGE - 4, 12);
    context.fillText(String(y[0]), EDGE - 4, height - EDGE - 2);
    context.textAlign = "center";
    context.fillText(names[0], (width + EDGE) / 2, height - EDGE + 32);
    context.save();
    context.translate(14, (height - EDGE) / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(names[1], 0, 0);
    context.restore();
  }
}

/** The largest change of an energy over time, by powers of ten. */
export class Drift {
  #canvas;
  #points = []; // [time, change]

  constructor(canvas) {
    this.#canvas = canvas;
  }

  clear() {
    this.#points = [];
    sized(this.#canvas);
  }

  add(time, change) {
    this.#canvas.setAttribute("aria-label", `Largest change of an energy: ${change.toExponential(1)} at time ${time.toFixed(2)}`);
    if (change > 0) this.#points.push([time, Math.log10(change)]);
    if (!this.#points.length) return;
    const { context, width, height } = sized(this.#canvas);
    const values = this.#points.map(([, value]) => value);
    const [low, high] = [Math.floor(Math.min(...values)), Math.ceil(Math.max(...values, Math.min(...values) + 1))];
    const last = this.#points.at(-1)[0] || 1;
    const at = ([when, value]) => [EDGE + (when / last) * (width - EDGE - 4), 6 + ((high - value) / (high - low)) * (height - EDGE - 6)];
    context.fillStyle = context.strokeStyle = getComputedStyle(this.#canvas).color;
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "right";
    for (let power = low; power <= high; power++) {
      const [, y] = at([0, power]);
      context.globalAlpha = 0.25;
      context.strokeRect(EDGE, y, width - EDGE - 4, 0);
      context.globalAlpha = 1;
      context.fillText(`1e${power}`, EDGE - 4, y + 4);
    }
    context.fillText(`t = ${last.toFixed(1)}`, width - 4, height - EDGE + 18);
    context.strokeStyle = "rgb(235 110 40)";
    context.lineWidth = 1.5;
    context.beginPath();
    for (const point of this.#points) context.lineTo(...at(point));
    context.stroke();
  }
}
