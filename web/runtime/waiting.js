// Waiting for a promise in Python, straight from WebAssembly. Pyodide's run_sync makes a future of its event loop from the
// promise first: 27 us for one that is settled already, against 4 here, and two more turns of the browser's loop.
//
// What Pyodide does around a suspension (JsvPromise_Syncify, which saves and restores Python's state) is an export of its
// module. It must be called from WebAssembly, for no JavaScript may lie on a stack that is suspended. So a small module calls
// it, and its only function becomes a built-in function of Python.

const EXTERNREF = 0x6f;
const I32 = 0x7f;
const FUNCTION = 0x60;
const METH_NOARGS = 4;
const METHOD_BYTES = 16;
const NAME = "wait";
// Nothing interrupts this wait; what takes longer than a person notices is left to the event loop, whose tasks can be cancelled.
const PATIENCE_MS = 50;
// So is what fails: Pyodide keeps one error at a time, and where a device is lost several waits fail at once.
const LEFT = Symbol("left to the event loop");

/**
 * The bytes of
 *
 *   (module
 *     (import "page" "held" (func $held (result externref)))
 *     (import "page" "suspend" (func $suspend (param externref) (result externref)))
 *     (import "page" "outcome" (func $outcome (param externref) (result i32)))
 *     (func (export "wait") (param i32 i32) (result i32) (call $outcome (call $suspend (call $held)))))
 */
function moduleBytes() {
  const text = (string) => [string.length, ...new TextEncoder().encode(string)];
  const section = (id, ...items) => {
    const body = [items.length, ...items.flat()];
    return [id, body.length, ...body];
  };
  const type = (parameters, result) => [FUNCTION, parameters.length, ...parameters, 1, result];
  const imported = (name, typeIndex) => [...text("page"), ...text(name), 0, typeIndex];
  const body = [0, 0x10, 0, 0x10, 1, 0x10, 2, 0x0b]; // no locals; call 0, call 1, call 2, end
  return Uint8Array.of(
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(
      1,
      type([], EXTERNREF),
      type([EXTERNREF], EXTERNREF),
      type([EXTERNREF], I32),
      type([I32, I32], I32),
    ),
    ...section(2, imported("held", 0), imported("suspend", 1), imported("outcome", 2)),
    ...section(3, [3]),
    ...section(7, [...text("wait"), 0, 3]),
    ...section(10, [body.length, ...body]),
  );
}

/** A promise that Python is about to wait for, and Python's function that does. */
export class Waiting {
  /** The one of the Pyodide whose Emscripten module is `heap`. */
  static of(heap) {
    return (heap[Symbol.for("pellucid.waiting")] ??= new Waiting(heap));
  }

  constructor(heap) {
    this.held = null;
    this.patient = []; // waits that may still be under way, the earliest first
    try {
      this.wait = this.#builtin(heap);
    } catch {
      this.wait = undefined; // a Pyodide without all of this: Python waits by its event loop
    }
  }

  /** What the next `wait` waits for. It returns None, or True when PATIENCE_MS have passed or the promise was rejected. */
  hold(promise) {
    const now = performance.now();
    this.look(now);
    this.held = new Promise((resolve) => {
      promise.then(resolve, () => resolve(LEFT));
      this.patient.push({ until: now + PATIENCE_MS, resolve });
    });
  }

  /** End the waits that have taken too long; called now and then. */
  look(now) {
    while (this.patient.length > 0 && this.patient[0].until < now) this.patient.shift().resolve(LEFT);
  }

  #builtin(heap) {
    const suspend = heap._JsvPromise_Syncify;
    new WebAssembly.Table({ initial: 1, element: "anyfunc" }).set(0, suspend); // fails for one of JavaScript
    // These are immortal: nobody counts references to them.
    const { __Py_NoneStruct: none, __Py_TrueStruct: yes } = heap;
    if (!(none > 0 && yes > 0)) throw new Error("None or True has no address");
    const outcomes = new Map([
      [LEFT, yes],
      [heap.error, 0],
    ]);
    const page = { held: () => this.held, suspend, outcome: (value) => outcomes.get(value) ?? none };
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(moduleBytes()), { page });
    const method = heap._PyMem_RawMalloc(METHOD_BYTES + NAME.length + 1);
    const name = method + METHOD_BYTES;
    heap.HEAPU8.set(new TextEncoder().encode(`${NAME}\0`), name);
    heap.HEAPU32.set([name, heap.addFunction(exports.wait, "iii"), METH_NOARGS, 0], method / 4);
    return heap.pyproxy_new(heap._PyCMethod_New(method, 0, 0, 0));
  }
}
