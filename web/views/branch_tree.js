/**
 * The tree of tokens that were tried. What has one continuation stands in a line; where it branches, a line for each.
 *
 *   data      { nodes: [{ number, parent, token, changed }], at: number }   parent is -1 for the first
 *   selected  number of the token to return to
 */
import { choose, follow } from "./model.js";
import { make, visible } from "./parts.js";

function render({ model, el, signal }) {
  const box = make("div", { class: "pellucid branch-tree", role: "tree", "aria-label": "Branches" });
  el.append(box);
  let chosen = false; // whether the token that is stood at was chosen here, so that it has the focus

  const draw = (data) => {
    box.replaceChildren();
    if (!data?.nodes.length) return;
    const children = new Map(data.nodes.map(({ number }) => [number, []]));
    const roots = [];
    for (const node of data.nodes) (children.get(node.parent) ?? roots).push(node);
    const path = new Set();
    const by = new Map(data.nodes.map((node) => [node.number, node]));
    for (let node = by.get(data.at); node; node = by.get(node.parent)) path.add(node.number);
    // Branches by depth: a loop, for a text may be longer than calls can be nested.
    const waiting = roots.toReversed().map((node) => [node, 1]);
    while (waiting.length) {
      let [node, depth] = waiting.pop();
      const line = make("div", { class: "line", role: "none", style: `--depth: ${depth - 1}` });
      box.append(line);
      for (;;) {
        const { number, token, changed } = node;
        const isAt = number === data.at;
        const button = make("button", {
          type: "button", role: "treeitem", dir: "auto", tabindex: isAt ? "0" : "-1", "aria-level": String(depth),
          "aria-selected": String(isAt), "data-number": String(number),
        }, visible(token));
        button.classList.toggle("path", path.has(number));
        if (changed) {
          button.classList.add("changed");
          button.title = "read with a change";
        }
        line.append(button);
        const next = children.get(number);
        if (next.length !== 1) {
          waiting.push(...next.toReversed().map((child) => [child, depth + 1]));
          break;
        }
        [node] = next;
      }
    }
    const now = box.querySelector('[aria-selected="true"]');
    // A long line goes on out of sight; the page itself stays where it is.
    if (now) box.scrollLeft = now.offsetLeft - box.offsetLeft + now.offsetWidth / 2 - box.clientWidth / 2;
    if (chosen) now?.focus();
    chosen = false;
  };

  box.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (!button) return;
    chosen = true;
    choose(model, Number(button.dataset.number));
  }, { signal });
  box.addEventListener("keydown", (event) => {
    const from = event.target.closest("button");
    if (!from || event.altKey || event.metaKey) return;
    const lines = [...box.querySelectorAll(".line")];
    const items = [...from.parentElement.children];
    const [line, k] = [lines.indexOf(from.parentElement), items.indexOf(from)];
    const beside = (other) => other && (other.children[Math.min(k, other.children.length - 1)]);
    const target = {
      ArrowLeft: items[k - 1], ArrowRight: items[k + 1], Home: items[0], End: items.at(-1),
      ArrowUp: beside(lines[line - 1]), ArrowDown: beside(lines[line + 1]),
    }[event.key];
    if (!target) return;
    event.preventDefault();
    target.focus();
  }, { signal });
  return follow(model, draw, signal);
}

export default { render };
