/**
 * Attention by head: an overview of all heads by layer, and the pattern of the one that was chosen.
 *
 *   data      { tokens: [text], layers, heads, probs: Float32Array(layers * heads * tokens * tokens) }, row: who looks
 *   selected  { layer, head }
 */
import { choose, follow } from "./model.js";
import { between, canvasOf, colours, make, numbers, percent, reach, visible } from "./parts.js";
import { colourScale, SCALE_WIDTH } from "./scale.js";

const BUDGET = 12; // milliseconds of a frame
// Colours go by the root, so that small shares are seen, too.
const SCALE = { name: "share of a row's attention", marks: [[0, "0 %"], [0.5, "25 %"], [1, "100 %"]] };
const MOVES = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function render({ model, el, signal }) {
  const overview = make("canvas", { tabindex: "0", role: "img", class: "overview" });
  const head = make("canvas", { tabindex: "0", role: "img", class: "head" });
  const title = make("h3", {});
  const told = make("p", { class: "told", role: "status" });
  const one = make("div", { class: "one" }, title, make("div", { class: "scroller" }, head), told);
  el.append(make("div", { class: "pellucid attention" }, make("div", { class: "scroller" }, overview), one));
  let data = null;
  let at = null; // layer, head
  let cell = null; // query, key
  let tile = 0;
  let side = 0;
  let left = 0;
  let whole = null; // the overview without the mark
  let cold, heat, text; // colours
  let painting = 0; // the frame that goes on with it

  const probability = (query, key, [layer, number] = at) => {
    const count = data.tokens.length;
    return data.probs[((layer * data.heads + number) * count + query) * count + key];
  };

  const draw = (given) => {
    data = given && { ...given, probs: numbers(given.probs) };
    overview.hidden = head.hidden = one.hidden = !data?.tokens.length;
    cancelAnimationFrame(painting);
    painting = 0;
    if (one.hidden) return;
    // The last layer is on top, so what is shown first is in sight.
    at = at ? [Math.min(at[0], data.layers - 1), Math.min(at[1], data.heads - 1)] : [data.layers - 1, 0];
    if (cell && cell[0] >= data.tokens.length) cell = null;
    [cold, heat, text] = colours(overview.parentElement, "--cold", "--heat", "--text");
    // All heads are seen at once, where the window is large enough for tiles that can still be told apart.
    const room = [(Math.min(el.clientWidth || 600, 520) - 34) / data.heads, (0.8 * innerHeight - 18) / data.layers];
    tile = Math.max(16, Math.min(34, ...room.map(Math.floor)));
    canvasOf(overview, 30 + tile * data.heads, tile * data.layers + 18);
    whole = new OffscreenCanvas(overview.width, overview.height);
    const wide = whole.getContext("2d");
    wide.setTransform(overview.getContext("2d").getTransform());
    wide.imageSmoothingEnabled = data.tokens.length > tile;
    wide.font = "10px ui-monospace, monospace";
    wide.textBaseline = "middle";
    wide.fillStyle = `rgb(${text.join(" ")})`;
    for (let number = 0; number < data.heads; number++) wide.fillText(String(number), 26 + number * tile + tile / 3, data.layers * tile + 8);
    let layer = data.layers - 1;
    // Hundreds of heads are millions of cells: as many rows a frame as leave the page free.
    const paint = () => {
      const until = performance.now() + BUDGET;
      do {
        const y = (data.layers - 1 - layer) * tile;
        wide.fillText(String(layer), 4, y + tile / 2);
        for (let number = 0; number < data.heads; number++) wide.drawImage(picture(layer, number), 26 + number * tile, y, tile - 2, tile - 2);
        layer -= 1;
      } while (layer >= 0 && performance.now() < until);
      painting = layer >= 0 ? requestAnimationFrame(paint) : 0;
      mark();
    };
    paint();
    drawHead();
  };
  signal?.addEventListener("abort", () => cancelAnimationFrame(painting));

  function picture(layer, number) {
    const count = data.tokens.length;
    const image = new ImageData(count, count);
    for (let query = 0; query < count; query++) {
      for (let key = 0; key < count; key++) {
        const share = Math.sqrt(probability(query, key, [layer, number]));
        const pixel = 4 * (query * count + key);
        for (let k = 0; k < 3; k++) image.data[pixel + k] = cold[k] + (heat[k] - cold[k]) * (key <= query ? share : 0);
        image.data[pixel + 3] = 255;
      }
    }
    const small = new OffscreenCanvas(count, count);
    small.getContext("2d").putImageData(image, 0, 0);
    return small;
  }

  /** Show the overview, with the head that was chosen marked. */
  function mark() {
    const context = overview.getContext("2d");
    context.save();
    context.resetTransform();
    context.clearRect(0, 0, overview.width, overview.height);
    context.drawImage(whole, 0, 0);
    context.restore();
    context.strokeStyle = `rgb(${text.join(" ")})`;
    context.lineWidth = 2;
    context.strokeRect(25 + at[1] * tile, (data.layers - 1 - at[0]) * tile - 1, tile, tile);
    overview.setAttribute("aria-label", `Attention of ${data.layers} layers by ${data.heads} heads; layer ${at[0]}, head ${at[1]} is shown. Arrow keys choose another.`);
  }

  function drawHead() {
    const count = data.tokens.length;
    const measure = head.getContext("2d");
    measure.font = "11px ui-monospace, monospace";
    const labels = data.tokens.map(visible).map((label) => (label.length > 12 ? `${label.slice(0, 11)}…` : label));
    left = Math.ceil(Math.max(...labels.map((label) => measure.measureText(label).width))) + 8;
    side = Math.max(11, Math.min(24, Math.floor(Math.max(220, Math.min((el.clientWidth || 600) - left - 12, 420)) / count)));
    const wide = Math.max(left + side * count + 6, SCALE_WIDTH + 4);
    const scale = colourScale({ ...SCALE, colour: (share) => between(cold, heat, share) }, wide - 4);
    const context = canvasOf(head, wide, side * count + left + scale.height);
    context.imageSmoothingEnabled = false;
    context.drawImage(picture(...at), left, 0, side * count, side * count);
    context.fillStyle = context.strokeStyle = `rgb(${text.join(" ")})`;
    context.font = "11px ui-monospace, monospace";
    context.textBaseline = "middle";
    context.textAlign = "right";
    labels.forEach((label, k) => {
      context.fillText(label, left - 5, (k + 0.5) * side);
      context.save();
      context.translate(left + (k + 0.5) * side, side * count + 5);
      context.rotate(-Math.PI / 2);
      context.fillText(label, 0, 0);
      context.restore();
    });
    scale.paint(context, 2, side * count + left, `rgb(${text.join(" ")})`);
    title.textContent = `Layer ${at[0]}, head ${at[1]}`;
    head.setAttribute("aria-label", `Who looks at whom in layer ${at[0]}, head ${at[1]}: rows look at columns. ${scale.spoken} of a row's attention. Arrow keys read the cells.`);
    if (!cell) {
      told.textContent = `Rows look at columns. ${reach("arrow keys")}.`;
      return;
    }
    const [query, key] = cell;
    context.lineWidth = 2;
    context.strokeRect(left + key * side, query * side, side - 1, side - 1);
    told.textContent = `${visible(data.tokens[query])} (${query}) looks at ${visible(data.tokens[key])} (${key}): ${percent(probability(query, key))}`;
  }

  const pick = (layer, number) => {
    if (layer < 0 || layer >= data.layers || number < 0 || number >= data.heads) return;
    at = [layer, number];
    mark();
    drawHead();
    choose(model, { layer, head: number });
  };
  const look = (query, key) => {
    const count = data?.tokens.length ?? 0;
    if (query < 0 || key < 0 || query >= count || key > query || (cell?.[0] === query && cell[1] === key)) return;
    cell = [query, key];
    drawHead();
  };
  const listen = (target, name, handler) => target.addEventListener(name, (event) => data && handler(event), { signal });
  listen(overview, "click", ({ offsetX, offsetY }) => pick(data.layers - 1 - Math.floor(offsetY / tile), Math.floor((offsetX - 26) / tile)));
  listen(head, "pointermove", ({ offsetX, offsetY }) => look(Math.floor(offsetY / side), Math.floor((offsetX - left) / side)));
  listen(head, "click", ({ offsetX, offsetY }) => look(Math.floor(offsetY / side), Math.floor((offsetX - left) / side)));
  const keys = (handler) => (event) => {
    const move = MOVES[event.key];
    if (!move || event.altKey || event.metaKey) return;
    event.preventDefault();
    handler(move);
  };
  listen(overview, "keydown", keys(([up, right]) => pick(at[0] + up, at[1] + right)));
  listen(head, "keydown", keys(([up, right]) => {
    if (!cell) return look(0, 0);
    const query = cell[0] - up;
    look(query, Math.min(cell[1] + right, query));
  }));
  return follow(model, draw, signal);
}

export default { render };
