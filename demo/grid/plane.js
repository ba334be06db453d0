/**
 * What a network says of each point of a plane, as colours, with the examples on top.
 *
 *   data  { side, plane: Float32Array(side * side), points: Float32Array(2 * n), classes: [0 or 1], name }
 *         plane: row by row from below; above 0 means class 1
 */
import { follow } from "../../web/views/model.js";
import { between, canvasOf, colours, make, numbers } from "../../web/views/parts.js";

const LARGEST = 288; // pixels

function render({ model, el, signal }) {
  const canvas = make("canvas", { role: "img" });
  el.append(make("div", { class: "plane" }, canvas));
  return follow(model, (data) => {
    canvas.hidden = !data;
    if (!data) return;
    const size = Math.min(LARGEST, el.clientWidth || LARGEST);
    const context = canvasOf(canvas, size, size);
    const [cold, heat, cool, page] = colours(el, "--cold", "--heat", "--cool", "--page");
    const values = numbers(data.plane);
    const each = size / data.side;
    values.forEach((value, k) => {
      const [row, column] = [Math.floor(k / data.side), k % data.side];
      context.fillStyle = between(cold, value < 0 ? cool : heat, Math.min(1, Math.abs(Math.tanh(value / 2))) * 0.75);
      context.fillRect(column * each, size - (row + 1) * each, each + 0.5, each + 0.5);
    });
    const points = numbers(data.points);
    context.strokeStyle = `rgb(${page.join(" ")})`;
    data.classes.forEach((one, k) => {
      context.beginPath();
      context.arc(((points[2 * k] + 1) / 2) * size, ((1 - points[2 * k + 1]) / 2) * size, 2.6, 0, 7);
      context.fillStyle = `rgb(${(one ? heat : cool).join(" ")})`;
      context.fill();
      context.stroke();
    });
    canvas.setAttribute("aria-label", `${data.name}: the plane, coloured by class, with ${data.classes.length} examples`);
  }, signal);
}

export default { render };
