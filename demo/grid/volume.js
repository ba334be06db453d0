/**
 * A network's volume in 3-D, by three.js: boxes for cells in the order in which they run, arcs for remote links.
 *
 *   data      { size: [depth, rows, columns, layers], cells: [{ place: [z, y, x, l], label, told, colour: [r, g, b], off }],
 *             links: [{ source, target, back }] }
 *             told: what is said of the cell; off: it hands its input on; back: the link brings the value of the pass before
 *   selected  the place of a cell
 *
 * Dragging turns the volume, the wheel or two fingers bring it closer; arrows go from cell to cell, Enter chooses. What does not
 * change is not drawn again.
 */
import { choose, follow } from "../../web/views/model.js";
import { colours, make } from "../../web/views/parts.js";

const GAP = { x: 1.9, y: 1.4, z: 2.7 };
const BOX = { width: 1.1, height: 0.62, depth: 0.62 };
const LOOK = [0.62, 0.6, 1]; // from where the volume is seen at first
const same = (one, other) => one && other && one.every((value, k) => value === other[k]);

async function render({ model, el, signal }) {
  const three = await import(new URL("../../npm/three.mjs", import.meta.url).href);
  const canvas = make("canvas", { tabindex: "0", role: "img" });
  const told = make("p", { class: "told", role: "status" });
  const again = make("button", { type: "button" }, "First view");
  el.append(make("div", { class: "pellucid volume" }, make("div", { class: "stage" }, canvas, again), told));
  let renderer;
  try {
    renderer = new three.WebGLRenderer({ canvas, antialias: true, alpha: true });
  } catch {
    canvas.parentElement.hidden = true;
    told.textContent = "This browser has no WebGL, so the volume cannot be drawn. The list of cells has the same.";
    return undefined;
  }
  const scene = new three.Scene();
  const camera = new three.PerspectiveCamera(26, 1, 0.1, 200);
  const sun = new three.DirectionalLight(0xffffff, 1.4);
  scene.add(new three.AmbientLight(0xffffff, 1.9), sun);
  const controls = new three.OrbitControls(camera, canvas);
  controls.enablePan = false;
  canvas.style.touchAction = "pan-y"; // a finger that moves down scrolls the page

  let drawn = new three.Group();
  let boxes = []; // { mesh, frame, place, cell }
  let shape = ""; // of what is drawn: with another one everything is made anew
  let at = -1; // the cell that is looked at
  let frame = 0;

  const paint = () => (frame ||= requestAnimationFrame(() => {
    frame = 0;
    if (signal?.aborted) return;
    sun.position.copy(camera.position).add(new three.Vector3(1, 3, 0));
    renderer.render(scene, camera);
  }));
  controls.addEventListener("change", paint);

  const where = ([z, y, x, l], [, , , layers]) => {
    const inside = layers > 1 ? ((l + 0.5) / layers - 0.5) * BOX.width : 0;
    return new three.Vector3(x * GAP.x + inside, -y * GAP.y, -z * GAP.z);
  };
  const paintOf = (colour) => new three.Color().setRGB(...colour.map((value) => value / 255), three.SRGBColorSpace);

  const resize = () => {
    const [width, height] = [canvas.parentElement.clientWidth, canvas.parentElement.clientHeight];
    if (!width || !height) return;
    renderer.setPixelRatio(Math.min(devicePixelRatio || 1, 2));
    renderer.setSize(width, height, false);
    camera.aspect = width / height;
    camera.updateProjectionMatrix();
    paint();
  };

  /** Look at all of it from the front, a little from the right and from above. */
  const fit = () => {
    const ball = new three.Box3().setFromObject(drawn).getBoundingSphere(new three.Sphere());
    const narrow = Math.min(1, camera.aspect);
    const far = (ball.radius * 0.97) / Math.sin((camera.fov / 2) * (Math.PI / 180)) / narrow;
    controls.target.copy(ball.center);
    camera.position.copy(ball.center).add(new three.Vector3(...LOOK).normalize().multiplyScalar(far));
    controls.minDistance = far / 6;
    controls.maxDistance = far * 3;
    controls.update();
    paint();
  };

  const label = (text, colour) => {
    const board = document.createElement("canvas");
    const context = board.getContext("2d");
    const font = "500 44px system-ui, sans-serif";
    context.font = font;
    board.width = Math.ceil(context.measureText(text).width) + 12;
    board.height = 60;
    context.font = font;
    context.fillStyle = `rgb(${colour.join(" ")})`;
    context.textBaseline = "middle";
    context.fillText(text, 6, 31);
    const texture = new three.CanvasTexture(board);
    texture.colorSpace = three.SRGBColorSpace;
    const sprite = new three.Sprite(new three.SpriteMaterial({ map: texture, transparent: true, depthTest: false }));
    sprite.renderOrder = 1; // names can be read in front of everything
    sprite.scale.set((board.width / board.height) * 0.24, 0.24, 1);
    return sprite;
  };

  const arrow = (from, to, material) => {
    const cone = new three.Mesh(new three.ConeGeometry(0.07, 0.2, 12), material);
    const way = to.clone().sub(from).normalize();
    cone.position.copy(to).addScaledVector(way, -0.1);
    cone.quaternion.setFromUnitVectors(new three.Vector3(0, 1, 0), way);
    return cone;
  };

  /** The surface point of a box on the way to another point. */
  const edge = (from, to, layers) => {
    const way = to.clone().sub(from);
    const half = [BOX.width / layers / 2, BOX.height / 2, BOX.depth / 2];
    const share = Math.min(...[way.x, way.y, way.z].map((value, k) => (value ? half[k] / Math.abs(value) : Infinity)));
    return from.clone().addScaledVector(way, Math.min(share * 1.06, 0.5));
  };

  const build = (data) => {
    drawn.traverse((part) => {
      part.geometry?.dispose();
      part.material?.map?.dispose();
      part.material?.dispose();
    });
    scene.remove(drawn);
    drawn = new three.Group();
    const [quiet, accent, cool, text] = colours(el, "--quiet", "--accent", "--cool", "--text");
    const layers = data.size[3];
    const points = new Map(data.cells.map((cell) => [cell.place.join(), where(cell.place, data.size)]));
    boxes = data.cells.map((cell) => {
      const box = new three.BoxGeometry((BOX.width / layers) * (layers > 1 ? 0.86 : 1), BOX.height, BOX.depth);
      const mesh = new three.Mesh(box, new three.MeshLambertMaterial());
      const outline = new three.LineSegments(new three.EdgesGeometry(box), new three.LineBasicMaterial());
      mesh.position.copy(points.get(cell.place.join()));
      outline.position.copy(mesh.position);
      const name = label(cell.label, text);
      name.position.copy(mesh.position).add(new three.Vector3(0, BOX.height / 2 + 0.17, 0));
      drawn.add(mesh, outline, name);
      return { mesh, outline, place: cell.place };
    });
    const line = new three.LineBasicMaterial({ color: paintOf(quiet) });
    const tip = new three.MeshBasicMaterial({ color: paintOf(quiet) });
    for (let k = 1; k < data.cells.length; k++) {
      const [from, to] = [k - 1, k].map((n) => points.get(data.cells[n].place.join()));
      const ends = [edge(from, to, layers), edge(to, from, layers)];
      drawn.add(new three.Line(new three.BufferGeometry().setFromPoints(ends), line), arrow(...ends, tip));
    }
    for (const { source, target, back } of data.links) {
      const [from, to] = [source, target].map((place) => points.get(place.join()));
      const top = from.clone().add(to).multiplyScalar(0.5);
      top.y = Math.max(from.y, to.y) + (back ? 1.9 : 1.5);
      const up = new three.Vector3(0, BOX.height / 2, 0);
      const curve = new three.QuadraticBezierCurve3(from.clone().add(up), top, to.clone().add(up));
      const material = new three.MeshBasicMaterial({ color: paintOf(back ? cool : accent) });
      drawn.add(new three.Mesh(new three.TubeGeometry(curve, 40, 0.025, 8), material), arrow(curve.getPoint(0.9), curve.getPoint(1), material));
    }
    scene.add(drawn);
  };

  const draw = (data) => {
    if (!data || at >= data.cells.length) at = -1;
    told.textContent = at < 0 ? "" : data.cells[at].told;
    canvas.hidden = again.hidden = !data?.cells.length;
    if (canvas.hidden) return;
    const scheme = colours(el, "--text", "--accent", "--line", "--cold");
    const wanted = JSON.stringify([data.size, data.cells.map(({ place, label: name }) => [place, name]), data.links, scheme]);
    const moved = JSON.stringify(data.size) !== JSON.stringify(boxes.size);
    if (wanted !== shape) {
      build(data);
      boxes.size = data.size;
      shape = wanted;
    }
    const [text, accent, edges, cold] = scheme;
    const chosen = model.get("selected");
    data.cells.forEach((cell, k) => {
      const { mesh, outline } = boxes[k];
      mesh.material.color = paintOf(cell.off ? cold : cell.colour);
      mesh.material.transparent = cell.off;
      mesh.material.opacity = cell.off ? 0.25 : 1;
      const isChosen = same(cell.place, chosen);
      outline.material.color = paintOf(isChosen ? accent : k === at ? text : edges);
      mesh.scale.setScalar(isChosen ? 1.14 : k === at ? 1.06 : 1);
      outline.scale.copy(mesh.scale);
    });
    canvas.setAttribute("aria-label", `Volume of ${data.size.slice(0, 3).join(" by ")} cells with ${data.cells.length} layers and ${data.links.length} remote links. Arrow keys go through the cells, Enter opens one.`);
    resize();
    if (moved) fit();
    paint();
  };

  const look = (k) => {
    if (k === at) return;
    at = k;
    draw(model.get("data"));
  };
  const ray = new three.Raycaster();
  const under = (event) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const spot = new three.Vector2(((event.clientX - left) / width) * 2 - 1, 1 - ((event.clientY - top) / height) * 2);
    ray.setFromCamera(spot, camera);
    const [hit] = ray.intersectObjects(boxes.map(({ mesh }) => mesh));
    return hit ? boxes.findIndex(({ mesh }) => mesh === hit.object) : -1;
  };
  let pressed = null;
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons) return;
    look(under(event));
    canvas.style.cursor = at < 0 ? "grab" : "pointer";
  }, { signal });
  canvas.addEventListener("pointerdown", ({ clientX, clientY }) => (pressed = [clientX, clientY]), { signal });
  canvas.addEventListener("click", (event) => {
    if (pressed && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > 5) return; // it was turned
    look(under(event));
    if (at >= 0) choose(model, boxes[at].place);
  }, { signal });
  canvas.addEventListener("keydown", (event) => {
    if (!boxes.length || event.altKey || event.metaKey || event.ctrlKey) return;
    if (event.key === "Enter" && at >= 0) return choose(model, boxes[at].place);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    look((Math.max(at, step < 0 ? 0 : -1) + step + boxes.length) % boxes.length);
  }, { signal });
  again.addEventListener("click", fit, { signal });
  const chosen = () => draw(model.get("data"));
  model.on("change:selected", chosen);
  const watch = new ResizeObserver(resize);
  watch.observe(canvas.parentElement);
  // Where a cell lies on the screen, in pixels of the page: for whoever drives the page from outside.
  canvas.placeOf = (place) => {
    const box = boxes.find((one) => same(one.place, place));
    camera.updateMatrixWorld();
    const spot = box.mesh.position.clone().project(camera);
    const { left, top, width, height } = canvas.getBoundingClientRect();
    return [left + ((spot.x + 1) / 2) * width, top + ((1 - spot.y) / 2) * height];
  };
  const end = follow(model, draw, signal);
  return () => {
    end();
    watch.disconnect();
    model.off("change:selected", chosen);
    cancelAnimationFrame(frame);
    controls.dispose();
    renderer.dispose();
  };
}

export default { render };
