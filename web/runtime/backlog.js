// Calls that wait, in their order, until a pipeline is compiled: the GPU's process compiles beside other work, and its main
// thread never waits for a compiler.

// Bytes that waiting calls keep. Past that they go on at once, and what is being compiled is compiled again, at once.
const MOST_BYTES = 64 << 20;
// So they do after so long: a program that never lets the browser take a turn does not hear that a pipeline is compiled.
const LONGEST_MS = 2000;

/** A queue of calls of a stream. It is empty except while a pipeline that one of them needs is being compiled. */
export class Backlog {
  /** `watch(promise)` makes the browser look for finished work until it is settled; `fail(text)` is told what a call throws. */
  constructor({ watch, fail }) {
    this.watch = watch;
    this.fail = fail;
    this.calls = [];
    this.bytes = 0;
    this.since = 0; // when the first of them began to wait
    this.hurried = false; // whether calls may wait no more
    this.empty = null; // a promise, while somebody waits for that, and what resolves it
    this.resolve = null;
  }

  /** Whether a call that would keep so many bytes has to wait. Where that is too much, or too long, no call waits any more. */
  mustWait(bytes = 0) {
    if (this.calls.length === 0) return false;
    if (this.bytes + bytes > MOST_BYTES || performance.now() > this.since + LONGEST_MS) this.drain();
    return this.calls.length > 0;
  }

  /** Whether a launch has to wait for its pipeline. */
  holds(pipeline) {
    return pipeline.compiled !== null && !this.hurried;
  }

  /** `call()` runs as far as it can: it returns the pipeline that it waits for, or null when it is done. `bytes`: it keeps. */
  add(call, bytes = 0) {
    if (this.calls.length === 0) this.since = performance.now();
    this.calls.push({ call, bytes });
    this.bytes += bytes;
  }

  /** Go on when a pipeline is compiled. */
  wait(pipeline) {
    this.watch(pipeline.compiled);
    pipeline.compiled.then(() => this.#goOn());
  }

  /** Resolves when no call waits. */
  async finished() {
    if (this.calls.length === 0) return;
    this.empty ??= new Promise((resolve) => (this.resolve = resolve));
    await this.empty;
  }

  /** Forget all calls. */
  close() {
    this.calls.length = this.bytes = 0;
    this.#rest();
  }

  #goOn() {
    while (this.calls.length > 0) {
      const pipeline = this.#run(this.calls[0].call);
      if (pipeline !== null) {
        this.wait(pipeline);
        return;
      }
      this.bytes -= this.calls.shift().bytes;
    }
    this.#rest();
  }

  #run(call) {
    try {
      return call() ?? null;
    } catch (error) {
      this.fail(error.message);
      return null;
    }
  }

  /** Run all calls now, without waiting. */
  drain() {
    this.hurried = true;
    try {
      this.#goOn();
    } finally {
      this.hurried = false;
    }
  }

  #rest() {
    this.resolve?.();
    this.empty = this.resolve = null;
  }
}
