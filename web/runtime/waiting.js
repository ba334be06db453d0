// Waiting for a promise in Python, straight from WebAssembly. Pyodide's run_sync makes a future of its event loop from the
// promise first: 27 us for one that is settled already, against 4 here, and two more turns of the browser's loop.
//
// What Pyodide does around a suspension (JsvPromise_Syncify, which saves and restores Python's state) is an export of its
// module. It must be called from WebAssembly, for no JavaScript may lie on a stack that is suspended. So a small module calls
// it, and its functions become built-in functions of Python.

const EXTERNREF = 0x6f;
const I32 = 0x7f;
const FUNCTION = 0x60;
const METH_NOARGS = 4;
const METHOD_BYTES = 16;
const WAIT = "wait";
const STAY = "stay";
// Stack that is used below the call that stays before that call goes on; there are 5 MB.
const ROOM = 1 << 20;
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
 *     (import "page" "room" (func $room (result externref)))
 *     (func (export "wait") (param i32 i32) (result i32) (call $outcome (call $suspend (call $held))))
 *     (func (export "stay") (param i32 i32) (result i32)
 *       (loop $again (br_if $again (call $outcome (call $suspend (call $room)))))
 *       (call $outcome (call $held))))
 */
function moduleBytes() {
  const text = (string) => [string.length, ...new TextEncoder().encode(string)];
  const section = (id, ...items) => {
    const body = [items.length, ...items.flat()];
    return [id, body.length, ...body];
  };
  const type = (parameters, result) => [FUNCTION, parameters.length, ...parameters, 1, result];
  const imported = (name, typeIndex) => [...text("page"), ...text(name), 0, typeIndex];
  // No locals; call, call, call, end.
  const wait = [0, 0x10, 0, 0x10, 1, 0x10, 2, 0x0b];
  // No locals; loop, call, call, call, br_if 0, end, call, call, end.
  const stay = [0, 0x03, 0x40, 0x10, 3, 0x10, 1, 0x10, 2, 0x0d, 0, 0x0b, 0x10, 0, 0x10, 2, 0x0b];
  return Uint8Array.of(
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(
      1,
      type([], EXTERNREF),
      type([EXTERNREF], EXTERNREF),
      type([EXTERNREF], I32),
      type([I32, I32], I32),
    ),
    ...section(2, imported("held", 0), imported("suspend", 1), imported("outcome", 2), imported("room", 0)),
    ...section(3, [3], [3]),
    ...section(7, [...text(WAIT), 0, 4], [...text(STAY), 0, 5]),
    ...section(10, [wait.length, ...wait], [stay.length, ...stay]),
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
    this.heap = heap;
    this.lowest = 0; // where the stack pointer may go before the call that stays goes on
    this.goOn = () => {};
    try {
      const { wait, stay } = this.#builtins(heap);
      this.wait = wait;
      // From a turn of its own, in which no Python runs.
      if (heap.jspiSupported && heap._PyContext_Enter !== undefined) setTimeout(() => this.#anchor(stay), 0);
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

  /** End the waits that have taken too long, and give stack back that nobody needs; called now and then. */
  look(now) {
    if (this.lowest > 0 && this.heap.stackSave() < this.lowest) this.goOn();
    while (this.patient.length > 0 && this.patient[0].until < now) this.patient.shift().resolve(LEFT);
  }

  /**
   * Pyodide 0.29 loses stack: 16 bytes with each callback of its event loop, over a kilobyte where two tasks block in
   * turns, until it writes over Python itself. A call that is resumed takes the stack pointer back to where it stood, and
   * Pyodide sets aside what others hold below. So one call stays, suspended near the top, and goes on when room is short.
   */
  #anchor(stay) {
    const { heap } = this;
    const context = heap._PyContext_CopyCurrent(); // what is suspended takes Python's thread state along, and this with it
    stay.callPromising().catch(() => {}); // where it cannot stay, all is as before
    heap._PyContext_Enter(context);
  }

  #room() {
    this.lowest = this.heap.stackSave() - ROOM;
    return new Promise((resolve) => {
      this.goOn = () => {
        this.lowest = 0;
        resolve();
      };
    });
  }

  #builtins(heap) {
    const suspend = heap._JsvPromise_Syncify;
    new WebAssembly.Table({ initial: 1, element: "anyfunc" }).set(0, suspend); // fails for one of JavaScript
    // These are immortal: nobody counts references to them.
    const { __Py_NoneStruct: none, __Py_TrueStruct: yes } = heap;
    if (!(none > 0 && yes > 0)) throw new Error("None or True has no address");
    const outcomes = new Map([
      [LEFT, yes],
      [heap.error, 0],
    ]);
    const page = {
      held: () => this.held,
      suspend,
      outcome: (value) => outcomes.get(value) ?? none,
      room: () => this.#room(),
    };
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(moduleBytes()), { page });
    const builtin = (name) => {
      const method = heap._PyMem_RawMalloc(METHOD_BYTES + name.length + 1);
      const text = method + METHOD_BYTES;
      heap.HEAPU8.set(new TextEncoder().encode(`${name}\0`), text);
      heap.HEAPU32.set([text, heap.addFunction(exports[name], "iii"), METH_NOARGS, 0], method / 4);
      return heap.pyproxy_new(heap._PyCMethod_New(method, 0, 0, 0));
    };
    return { wait: builtin(WAIT), stay: builtin(STAY) };
  }
}
