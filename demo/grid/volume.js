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
const NAME = 19; // pixels of a name's height, however far it is
const FINE = 2; // pixels of the screen that one of the page may have
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
  let boxes = []; // { mesh, outline, name, place }
  let shape = ""; // of what is drawn: with another one everything is made anew
  let at = -1; // the cell that is looked at
  let frame = 0;
  let turned = false; // whether this is another view than the first

  const paint = () => (frame ||= requestAnimationFrame(() => {
    frame = 0;
    if (signal?.aborted) return;
    sun.position.copy(camera.position).add(new three.Vector3(1, 3, 0));
    spread();
    renderer.render(scene, camera);
  }));
  controls.addEventListener("change", paint);
  controls.addEventListener("start", () => (turned = true));

  const where = ([z, y, x, l], [, , , layers]) => {
    const inside = layers > 1 ? ((l + 0.5) / layers - 0.5) * BOX.width : 0;
    return new three.Vector3(x * GAP.x + inside, -y * GAP.y, -z * GAP.z);
  };
  const paintOf = (colour) => new three.Color().setRGB(...colour.map((value) => value / 255), three.SRGBColorSpace);

  const resize = () => {
    const [width, height] = [canvas.parentElement.clientWidth, canvas.parentElement.clientHeight];
    if (!width || !height) return;
    renderer.setPixelRatio(ratio());
    renderer.setSize(width, height, false);
    const isOther = camera.aspect !== width / height;
    camera.aspect = width / height;
    camera.updateProjectionMatrix();
    if (isOther && !turned && boxes.length) fit(); // a screen that was turned still shows all of it
    paint();
  };

  const ratio = () => Math.min(devicePixelRatio || 1, FINE);

  const half = () => Math.tan((camera.fov / 2) * (Math.PI / 180));

  /** Look at all of it from the front, a little from the right and from above. */
  const fit = () => {
    drawn.updateMatrixWorld(true);
    const centre = new three.Box3().setFromObject(drawn).getCenter(new three.Vector3());
    camera.position.copy(centre).add(new three.Vector3(...LOOK));
    camera.lookAt(centre);
    const turn = camera.quaternion.clone();
    const corners = drawn.children.flatMap((part) => {
      const { min, max } = new three.Box3().setFromObject(part);
      return Array.from({ length: 8 }, (_, k) => new three.Vector3(k & 1 ? min.x : max.x, k & 2 ? min.y : max.y, k & 4 ? min.z : max.z));
    });
    // What is near takes more room, so the middle of the picture is not that of the volume: it is moved there.
    let far = 0;
    for (let round = 0; round < 4; round++) {
      const seen = corners.map((corner) => corner.clone().sub(centre).applyQuaternion(turn.clone().invert()));
      far = Math.max(...seen.map(({ x, y, z }) => z + Math.max(Math.abs(x) / camera.aspect, Math.abs(y)) / half()));
      const middle = ["x", "y"].map((axis) => {
        const spots = seen.map((corner) => corner[axis] / (far - corner.z));
        return (Math.min(...spots) + Math.max(...spots)) / 2;
      });
      centre.add(new three.Vector3(middle[0] * far, middle[1] * far, 0).applyQuaternion(turn));
    }
    far *= 1.12;
    turned = false;
    controls.target.copy(centre);
    camera.position.copy(centre).add(new three.Vector3(...LOOK).normalize().multiplyScalar(far));
    controls.minDistance = far / 6;
    controls.maxDistance = far * 3;
    controls.update();
    paint();
  };

  /** Where a point lies on the canvas, in pixels. */
  const spotOf = (point) => {
    const spot = point.clone().project(camera);
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    return [((spot.x + 1) / 2) * width, ((1 - spot.y) / 2) * height];
  };

  /** Show the names that cover no nearer one; that of the chosen cell and of the one that is looked at always. */
  const spread = () => {
    camera.updateMatrixWorld();
    const chosen = model.get("selected");
    const size = (2 * half() * NAME) / canvas.clientHeight;
    const rank = (box, k) => (same(box.place, chosen) ? -2 : k === at ? -1 : box.name.position.distanceTo(camera.position));
    const kept = [];
    for (const [, { name }] of boxes.map((box, k) => [rank(box, k), box]).sort(([one], [other]) => one - other)) {
      const [x, y] = spotOf(name.position);
      const wide = (name.userData.aspect * NAME) / 2 + 1;
      name.scale.set(name.userData.aspect * size, size, 1);
      name.visible = kept.every(([u, v, other]) => Math.abs(x - u) >= wide + other || Math.abs(y - v) >= NAME);
      if (name.visible) kept.push([x, y, wide]);
    }
  };

  const label = (text, colour, ground) => {
    const board = document.createElement("canvas");
    const context = board.getContext("2d");
    // A pixel of the board is one of the screen: smaller ones would be averaged, which makes dark letters pale.
    const height = Math.round(NAME * ratio());
    const font = `500 ${0.74 * height}px system-ui, sans-serif`;
    context.font = font;
    board.width = Math.ceil(context.measureText(text).width + 0.4 * height);
    board.height = height;
    context.font = font;
    context.fillStyle = `rgb(${ground.join(" ")} / 85%)`;
    context.roundRect(0, 0, board.width, height, 0.23 * height);
    context.fill();
    context.fillStyle = `rgb(${colour.join(" ")})`;
    context.textBaseline = "middle";
    context.fillText(text, 0.2 * height, 0.52 * height);
    const texture = new three.CanvasTexture(board);
    texture.colorSpace = three.SRGBColorSpace;
    texture.generateMipmaps = false;
    texture.minFilter = three.LinearFilter;
    const sprite = new three.Sprite(new three.SpriteMaterial({ map: texture, transparent: true, depthTest: false, sizeAttenuation: false }));
    sprite.renderOrder = 1; // names can be read in front of everything
    sprite.userData.aspect = board.width / board.height;
    sprite.scale.setScalar(0.01); // `spread` sets it, by the canvas
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
    const [quiet, accent, cool, text, panel] = colours(el, "--quiet", "--accent", "--cool", "--text", "--panel");
    const layers = data.size[3];
    const points = new Map(data.cells.map((cell) => [cell.place.join(), where(cell.place, data.size)]));
    boxes = data.cells.map((cell) => {
      const box = new three.BoxGeometry((BOX.width / layers) * (layers > 1 ? 0.86 : 1), BOX.height, BOX.depth);
      const mesh = new three.Mesh(box, new three.MeshLambertMaterial());
      const outline = new three.LineSegments(new three.EdgesGeometry(box), new three.LineBasicMaterial());
      mesh.position.copy(points.get(cell.place.join()));
      outline.position.copy(mesh.position);
      const name = label(cell.label, text, panel);
      name.position.copy(mesh.position).add(new three.Vector3(0, BOX.height / 2 + 0.17, 0));
      drawn.add(mesh, outline, name);
      return { mesh, outline, name, place: cell.place };
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
    const { left, top } = canvas.getBoundingClientRect();
    const [x, y] = spotOf(box.mesh.position);
    return [left + x, top + y];
  };
  // Rectangles of the names that are shown: left, top, right, bottom on the canvas.
  canvas.names = () => boxes.filter(({ name }) => name.visible).map(({ name }) => {
    const [[x, y], wide] = [spotOf(name.position), (name.userData.aspect * NAME) / 2];
    return [x - wide, y - NAME / 2, x + wide, y + NAME / 2];
  });
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
