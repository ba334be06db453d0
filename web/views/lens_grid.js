/**
 * Draws the lens: rows are layers, the last on top; columns are positions; each cell holds the token that the layer
 * would have said, coloured by its probability. A panel shows the five likeliest tokens of the cell under the pointer
 * or the keyboard's focus.
 *
 *   const view = new LensView({ table, panel, scroller });
 *   view.reset(30);
 *   view.read([{ id, token }]);                    // what the model reads, as it becomes known
 *   view.add({ position, layers });                // as demo.py sends it; drawn with the next frame
 *   view.columns                                   // everything added, by position
 *
 * As a view:
 *
 *   data  { layers, answer, tokens: [{ id, token }], columns: [{ position, layers }] }   answer: the first new token's position - 1
 *         { sides: [{ name, ...as above }, ...], apart: Float32Array(layers * count), count }   two of them beside each other, and how far
 *         apart each layer's predictions are (or the last one's alone) at the first `count` positions
 */

import { follow } from "./model.js";
import { colours, make, numbers, percent, reach, short, visible } from "./parts.js";
import { drawScale } from "./scale.js";

const GAP = 1; // pixels between cells
const COLUMNS_PER_FRAME = 6; // a long prompt's columns arrive faster than they should be laid out
// Probabilities from which a cell's background asks for another colour of text, so that their contrast stays above 4.5.
const WARM = 0.59;
const HOT = 0.75;

export class LensView {
  columns = [];
  #tokens = [];
  #rows = [];
  #queue = [];
  #frame = 0;
  #followed = 0; // where following left the grid
  #current = null; // the cell that the panel shows
  #entry = null; // the cell at which Tab enters the grid
  #table;
  #panel;
  #scroller;
  #visible;
  #beside;
  #answer = 0; // the position whose column shows how the first new token came about

  /** `name`: of the side, where there are two; `beside(layer, position)`: what the panel says of the other one. */
  constructor({ table, panel, scroller, visible, name = "", beside = () => [] }) {
    this.name = name;
    this.#beside = beside;
    this.#table = table;
    this.#panel = panel;
    this.#scroller = scroller;
    this.#visible = visible;
    scroller.addEventListener("scroll", () => this.#tellVisible(), { passive: true });
    new ResizeObserver(() => this.#fit()).observe(scroller);
    const cell = (event) => event.target.closest("td");
    // Scrolling by keyboard slides cells under a pointer that rests: only one that moves points at something.
    const moves = (event) => event.movementX !== 0 || event.movementY !== 0;
    table.addEventListener("pointermove", (event) => cell(event) && moves(event) && this.#look(cell(event)));
    table.addEventListener("focusin", (event) => cell(event) && this.#enter(cell(event)));
    table.addEventListener("click", (event) => cell(event) && this.#tap(cell(event)));
    table.addEventListener("keydown", (event) => this.#move(event));
  }

  /** Begin anew with a number of layers; the column of the first answer stays in sight while others come. */
  reset(layers, answer = 0, apart = false) {
    this.#answer = answer;
    cancelAnimationFrame(this.#frame);
    this.columns = [];
    this.#tokens = [];
    this.#queue = [];
    this.#frame = 0;
    this.#current = this.#entry = null;
    this.#followed = this.#scroller.scrollLeft = 0;
    this.#visible.textContent = "";
    const body = make("tbody", { role: "rowgroup" });
    this.#rows = Array.from({ length: layers }, (_, layer) => {
      const label = make("th", { scope: "row", role: "rowheader" }, make("span", { class: "word" }, "layer "), String(layer));
      return make("tr", { role: "row" }, label);
    });
    body.append(...this.#rows.toReversed());
    const corner = make("th", { scope: "row", role: "rowheader" }, "reads");
    const foot = make("tfoot", { role: "rowgroup" }, make("tr", { role: "row" }, corner));
    this.#table.replaceChildren(body, foot);
    if (apart) {
      const label = make("th", { scope: "row", role: "rowheader" }, make("abbr", { title: "Distance between both predictions (Kullback-Leibler), in nats" }, "apart"));
      this.#table.prepend(make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, label)));
    }
    this.#table.setAttribute("aria-rowcount", layers + 1);
    this.#invite();
  }

  /** Tokens that the model reads, in order; each heads a column. */
  read(tokens) {
    this.#tokens.push(...tokens);
  }

  add(column) {
    this.#queue.push(column);
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    const wasWhole = this.#scroller.scrollWidth <= this.#scroller.clientWidth;
    for (const column of this.#queue.splice(0, COLUMNS_PER_FRAME)) this.#append(column);
    if (wasWhole) this.#fit();
    this.#follow();
    this.#tellVisible();
    this.#frame = this.#queue.length ? requestAnimationFrame(() => this.#draw()) : 0;
  }

  /** Scroll with the columns, until the one of the first answer is the first in sight; a reader's own scrolling stays. */
  #follow() {
    const { scrollLeft, clientWidth, scrollWidth } = this.#scroller;
    const answer = this.#head(Math.min(this.#answer, this.columns.length - 1));
    const most = answer.offsetLeft - this.#rows[0].cells[0].offsetWidth - 3; // with the gaps
    if (scrollLeft > most || scrollLeft !== this.#followed || this.#table.contains(document.activeElement)) return;
    this.#scroller.scrollLeft = Math.min(scrollWidth - clientWidth, most);
    this.#followed = this.#scroller.scrollLeft;
  }

  /** Make columns so wide that whole ones fill the width, where not all fit; the first one in sight stays that. */
  #fit() {
    if (!this.columns.length) return;
    const { style } = this.#table;
    const each = () => this.#head(0).offsetWidth + GAP;
    const first = Math.round(this.#scroller.scrollLeft / each());
    const isFollowed = this.#scroller.scrollLeft === this.#followed;
    style.removeProperty("--cell");
    style.removeProperty("--rest");
    const width = this.#scroller.clientWidth;
    if (this.#scroller.scrollWidth > width) {
      const room = width - this.#rows[0].cells[0].offsetWidth - 2 * GAP;
      const count = Math.max(1, Math.floor(room / each()));
      style.setProperty("--cell", `${Math.floor(room / count) - GAP}px`);
      style.setProperty("--rest", `${room % count}px`); // no sliver of one column more
    }
    this.#scroller.scrollLeft = first * each();
    if (isFollowed) this.#followed = this.#scroller.scrollLeft;
    this.#tellVisible();
  }

  /** Say which positions are in sight, where not all are. */
  #tellVisible() {
    const { scrollLeft, clientWidth, scrollWidth } = this.#scroller;
    const count = this.columns.length;
    if (!count || scrollWidth <= clientWidth) {
      this.#visible.textContent = "";
      return;
    }
    const label = this.#rows[0].cells[0].offsetWidth;
    const each = (scrollWidth - label) / count;
    const first = Math.ceil(scrollLeft / each - 0.1); // that are whole
    const last = Math.min(count, Math.floor((scrollLeft + clientWidth - label) / each + 0.1)) - 1;
    this.#visible.textContent = `positions ${first} to ${last} of 0 to ${count - 1}: scroll for more`;
  }

  #append(column) {
    this.columns[column.position] = column;
    const final = column.layers.at(-1)[0][0];
    column.layers.forEach((best, layer) => {
      const [id, token, probability] = best[0];
      const text = visible(token);
      const cell = make("td", { role: "gridcell", dir: "auto", tabindex: "-1", style: `--p: ${probability.toFixed(4)}` }, text);
      cell.dataset.layer = layer;
      cell.dataset.position = column.position;
      if (probability > WARM) cell.classList.add(probability > HOT ? "hot" : "warm");
      cell.classList.toggle("agrees", id === final);
      cell.setAttribute("aria-label", `layer ${layer}: “${text}” ${percent(probability)}`);
      this.#rows[layer].append(cell);
    });
    const { token } = this.#tokens[column.position];
    const head = make("th", { scope: "col", role: "columnheader", title: visible(token) }, visible(token));
    this.#table.tFoot.rows[0].append(head);
    const far = apartOf(column.apart?.at(-1));
    if (this.#table.tHead) this.#table.tHead.rows[0].append(make("th", { role: "gridcell", class: "apart", style: `--p: ${far === undefined ? 0 : 1 - Math.exp(-far)}` }, far === undefined ? "" : short(Number(far.toPrecision(3)))));
    if (!this.#entry) this.#admit(this.#cell(column.layers.length - 1, 0));
  }

  #cell(layer, position) {
    return this.#rows[layer]?.cells[position + 1];
  }

  #head(position) {
    return this.#table.tFoot.rows[0].cells[position + 1];
  }

  #mark(cell, on) {
    const { layer, position } = cell.dataset;
    cell.classList.toggle("current", on);
    this.#rows[layer].cells[0].classList.toggle("current", on);
    this.#head(Number(position)).classList.toggle("current", on);
  }

  #admit(cell) {
    if (this.#entry) this.#entry.tabIndex = -1;
    this.#entry = cell;
    cell.tabIndex = 0;
  }

  #enter(cell) {
    this.#admit(cell);
    this.#look(cell);
  }

  /** A cell was clicked, or tapped: what the panel says of it comes into sight where that is below the grid. */
  #tap(cell) {
    cell.focus();
    if (this.#panel.offsetTop < this.#scroller.offsetTop + this.#scroller.offsetHeight) return;
    for (const box of [this.#panel, cell]) box.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  #look(cell) {
    if (cell === this.#current) return;
    if (this.#current) this.#mark(this.#current, false);
    this.#current = cell;
    this.#mark(cell, true);
    const [layer, position] = [Number(cell.dataset.layer), Number(cell.dataset.position)];
    this.#panel.replaceChildren(...this.describe(layer, position), ...this.#beside(layer, position));
  }

  /** Mark the cell that belongs to one of the other side; whether there is one. */
  point(layer, position) {
    if (this.#current) this.#mark(this.#current, false);
    this.#current = this.#cell(layer, position) ?? null;
    if (this.#current) this.#mark(this.#current, true);
    return this.#current !== null;
  }

  /** What the panel says of a cell. */
  describe(layer, position) {
    const { layers, apart } = this.columns[position];
    const token = visible(this.#tokens[position].token);
    const list = make("ol");
    for (const [id, name, probability] of layers[layer]) {
      list.append(
        make(
          "li",
          { title: `token ${id}`, style: `--p: ${probability.toFixed(4)}` },
          make("code", {}, visible(name)),
          make("span", { class: "share" }, percent(probability)),
        ),
      );
    }
    const read = make("p", {}, "having read ", make("code", {}, token), ` at position ${position}, would say`);
    const far = apartOf(apart?.length === layers.length ? apart[layer] : layer === layers.length - 1 ? apart?.[0] : undefined);
    const told = far === undefined ? [] : [make("p", { class: "apart" }, `Both are ${short(far)} nats apart here.`)];
    const title = this.name ? `Layer ${layer} · ${this.name}` : `Layer ${layer}`;
    return [make("h3", {}, title), read, list, ...told, make("p", { class: "settles" }, ...settling(layers))];
  }

  #invite() {
    const keys = `${reach("keyboard,")} to see the five likeliest tokens.`;
    this.#panel.replaceChildren(make("p", { class: "quiet" }, keys));
  }

  #move(event) {
    const from = event.target.closest("td");
    if (!from || event.altKey || event.metaKey) return;
    const [layer, position] = [Number(from.dataset.layer), Number(from.dataset.position)];
    const [top, last] = [this.#rows.length - 1, this.#rows[layer].cells.length - 2];
    const targets = {
      ArrowUp: [Math.min(layer + 1, top), position],
      ArrowDown: [Math.max(layer - 1, 0), position],
      ArrowLeft: [layer, Math.max(position - 1, 0)],
      ArrowRight: [layer, Math.min(position + 1, last)],
      Home: [event.ctrlKey ? top : layer, 0],
      End: [event.ctrlKey ? 0 : layer, last],
      PageUp: [top, position],
      PageDown: [0, position],
    };
    const target = targets[event.key];
    if (!target) return;
    event.preventDefault();
    const cell = this.#cell(...target);
    const best = this.columns[target[1]].layers[target[0]];
    const spoken = best.map(([, name, probability]) => `“${visible(name)}” ${percent(probability)}`).join(", ");
    cell.setAttribute("aria-label", `layer ${target[0]}, position ${target[1]}: ${spoken}`);
    cell.focus();
  }
}

/** Draw the scale of the cells' colours, which the style sheet mixes. */
export function drawLensScale(canvas) {
  const [cold, heat] = colours(canvas.parentElement, "--cold", "--heat").map((colour) => `rgb(${colour.join(" ")})`);
  const colour = (share) => `color-mix(in oklab, ${heat} ${100 * share}%, ${cold})`;
  drawScale(canvas, { name: "probability", marks: [[0, "0 %"], [0.5, "50 %"], [1, "100 %"]], colour });
}

/** A distance; rounding takes that of equal predictions below 0. */
function apartOf(far) {
  return far === undefined ? undefined : Math.max(0, far);
}

/** From which layer on a column's answer stays what it is at the end. */
function settling(layers) {
  const [id, token] = layers.at(-1)[0];
  const from = layers.findLastIndex((best) => best[0][0] !== id) + 1;
  const answer = make("code", {}, visible(token));
  if (from === layers.length - 1) return ["What the model says here, ", answer, ", comes from its last layer alone."];
  return ["What the model says here, ", answer, `, stands from layer ${from} on.`];
}

/** Draw data as they grow: columns that are there stay. Two sides scroll together, and the panel tells of both. */
function render({ model, el, signal }) {
  const box = make("div", { class: "lens-sides" });
  const panel = make("aside", { class: "lens-panel", "aria-label": "The cell that is looked at" });
  const scale = make("canvas", { class: "lens-scale" });
  el.append(scale, make("div", { class: "lens-view" }, box, panel));
  let sides = []; // { view, scroller, drawn }

  const build = (given) => {
    sides = given.map(({ name = "" }, k) => {
      const table = make("table", { class: "lens-grid", role: "grid", "aria-label": name ? `Logit lens of ${name}` : "Logit lens" });
      const scroller = make("div", { class: "lens-scroller" }, table);
      const seen = make("p", { class: "lens-visible quiet" });
      const view = new LensView({ table, panel, scroller, visible: seen, name, beside: (layer, position) => opposite(k, layer, position) });
      scroller.addEventListener("scroll", () => along(scroller), { passive: true, signal });
      return { view, scroller, box: make("figure", {}, ...(name ? [make("figcaption", { dir: "auto" }, name)] : []), seen, scroller), drawn: { tokens: [], columns: [] } };
    });
    box.replaceChildren(...sides.map((side) => side.box));
  };
  const opposite = (k, layer, position) => {
    const other = sides[1 - k]?.view;
    return other?.point(layer, position) ? other.describe(layer, position) : [];
  };
  const along = (moved) => {
    for (const { scroller } of sides) if (scroller !== moved) [scroller.scrollLeft, scroller.scrollTop] = [moved.scrollLeft, moved.scrollTop];
  };
  const update = (side, data, apart, count) => {
    const { view, drawn } = side;
    const goes = data.layers === drawn.layers && drawn.tokens.every(({ id }, k) => data.tokens[k]?.id === id) && drawn.columns.every((column, k) => data.columns[k] === column);
    const begun = goes ? drawn : { tokens: [], columns: [] };
    if (!goes) view.reset(data.layers, data.answer ?? 0, Boolean(apart));
    view.read(data.tokens.slice(begun.tokens.length));
    for (const column of data.columns.slice(begun.columns.length)) {
      const k = column.position;
      view.add(apart && k < count ? { ...column, apart: Array.from({ length: apart.length / count }, (_, layer) => apart[layer * count + k]) } : column);
    }
    side.drawn = { layers: data.layers, tokens: [...data.tokens], columns: [...data.columns] };
  };

  return follow(model, (data) => {
    const given = data ? (data.sides ?? [data]) : [];
    panel.hidden = scale.hidden = !given.length;
    if (given.length) drawLensScale(scale);
    if (given.length !== sides.length || given.some(({ name = "" }, k) => name !== sides[k].view.name)) build(given);
    const apart = data?.apart && numbers(data.apart);
    given.forEach((side, k) => update(sides[k], side, apart, data.count));
  }, signal);
}

export default { render };
