/**
 * The strongest features of each token, and where the chosen one acts.
 *
 *   data      { tokens: [text], features: [number], strengths: Float32Array(features * tokens), count: shown of each token, of: how many there are }
 *   selected  { feature, token: its position, value }
 */
import { choose, follow } from "./model.js";
import { make, numbers, short, visible } from "./parts.js";

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function render({ model, el, signal }) {
  const table = make("table", { class: "grid" });
  const told = make("p", { class: "told", role: "status" });
  const box = make("div", { class: "pellucid features" }, make("div", { class: "scroller" }, table), told);
  el.append(box);
  let data = null;
  let chosen = null; // { feature, token, value }

  const strength = (feature, token) => data.strengths[data.features.indexOf(feature) * data.tokens.length + token];

  const mark = () => {
    const of = chosen && data.tokens.map((_, token) => strength(chosen.feature, token));
    // A first token's state is often a hundred times as large as others, so shades end at the strength that was chosen.
    table.querySelectorAll("th[data-token]").forEach((head) => head.style.setProperty("--p", of ? Math.min(1, of[head.dataset.token] / chosen.value) : 0));
    for (const button of table.querySelectorAll("button")) button.setAttribute("aria-pressed", String(Number(button.dataset.feature) === chosen?.feature));
    if (!of) {
      told.textContent = data.tokens.length ? `${data.features.length} of ${data.of.toLocaleString("en")} features are among the strongest. Choose one to see where it acts.` : "";
      return;
    }
    const acting = of.filter((value) => value > 0).length;
    const most = Math.max(...of);
    told.textContent = `Feature ${chosen.feature} acts at ${acting} of ${of.length} tokens: ${short(chosen.value)} at ${visible(data.tokens[chosen.token])}, most at ${visible(data.tokens[of.indexOf(most)])}: ${short(most)}`;
  };

  const draw = (given) => {
    data = given && { ...given, strengths: numbers(given.strengths) };
    table.replaceChildren();
    box.hidden = !data?.tokens.length;
    if (box.hidden) return;
    if (chosen && !(data.features.includes(chosen.feature) && strength(chosen.feature, chosen.token) === chosen.value)) chosen = null;
    const head = make("tr", {}, ...data.tokens.map((token, k) => make("th", { scope: "col", dir: "auto", title: visible(token), "data-token": String(k) }, visible(token))));
    const columns = data.tokens.map((_, token) =>
      data.features.map((feature) => [feature, strength(feature, token)]).filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]).slice(0, data.count),
    );
    const rows = Array.from({ length: data.count }, (_, rank) =>
      make("tr", {}, ...columns.map((column, token) => {
        if (!column[rank]) return make("td");
        const [feature, value] = column[rank];
        return make("td", {}, make("button", { type: "button", tabindex: "-1", "data-feature": String(feature), "data-token": String(token), style: `--p: ${(value / column[0][1]).toFixed(4)}` }, String(feature), make("span", {}, short(Number(value.toPrecision(3))))));
      })),
    );
    table.append(make("thead", {}, head), make("tbody", {}, ...rows));
    table.querySelector("button")?.setAttribute("tabindex", "0");
    mark();
  };

  table.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (!button) return;
    const [feature, token] = [Number(button.dataset.feature), Number(button.dataset.token)];
    chosen = { feature, token, value: strength(feature, token) };
    mark();
    choose(model, chosen);
  }, { signal });
  table.addEventListener("focusin", ({ target }) => {
    for (const other of table.querySelectorAll('button[tabindex="0"]')) other.tabIndex = -1;
    target.tabIndex = 0;
  }, { signal });
  table.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    const cell = event.target.closest("td");
    if (!move || !cell || event.altKey || event.metaKey) return;
    event.preventDefault();
    const row = table.tBodies[0].rows[cell.parentElement.sectionRowIndex + move[0]];
    row?.cells[cell.cellIndex + move[1]]?.querySelector("button")?.focus();
  }, { signal });
  return follow(model, draw, signal);
}

export default { render };
