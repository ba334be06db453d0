// Waiting for the GPU: browsers look for finished work when something is submitted, else only every now and then
// (Chromium after 2 ms, Firefox after 100). While somebody waits, empty submissions make them look.

// A nudge that comes before the last one was taken in does no good: where the browser's other process is slow, they pile up before
// it, and what is awaited behind them. So each is answered before the next one goes out.

// The request itself makes the browser look once; what is done by then must not pay for nudges, least of all where the work
// needs the same cores.
const FIRST_MS = 0.1;
const FIRST_ON_GPU_MS = 0.05;
// What was done before it was asked for has mostly come by then: the request's own look finds it.
const FIRST_OF_DONE_MS = 0.3;
const LONGEST_MS = 4;
// A wait of t ms ends at most t / PATIENCE late.
const PATIENCE = 16;

const sleeper =
  typeof SharedArrayBuffer === "function" && typeof Atomics.waitAsync === "function"
    ? new Int32Array(new SharedArrayBuffer(4))
    : null;

/** Resolves after `ms`, also below the 1 to 4 ms that timers are clamped to. */
async function pause(ms) {
  if (sleeper !== null) {
    await Atomics.waitAsync(sleeper, 0, 0, ms).value;
  } else if (ms >= LONGEST_MS) {
    await new Promise((resolve) => setTimeout(resolve, ms));
  } else {
    const { port1, port2 } = new MessageChannel();
    const end = performance.now() + ms;
    do {
      await new Promise((resolve) => {
        port1.onmessage = resolve;
        port2.postMessage(0);
      });
    } while (performance.now() < end);
    port1.close();
  }
}

/** Makes the browser look for finished work as long as something is awaited. */
export class Nudger {
  constructor(device) {
    this.device = device;
    this.pause = pause;
    this.first = FIRST_MS; // from a request until the first nudge
    this.least = FIRST_MS; // between two of them
    this.waiting = 0;
    this.began = 0;
    this.due = 0; // when the next nudge comes
    this.wakes = Infinity; // when the loop that runs looks whether it is due
    this.turn = 0;
    this.meanwhile = () => {}; // called with the time now and then while something is awaited
  }

  /** Begin earlier from now on: not on adapters that run on the CPU. */
  hasten() {
    this.first = FIRST_ON_GPU_MS;
  }

  /** Look often from now on until `promise` is settled; later if all that it waits for `isDone` already. */
  watch(promise, isDone = false) {
    const stop = () => this.waiting--;
    this.waiting++;
    promise.then(stop, stop);
    // Requests go out when no code runs any more, this one among them.
    queueMicrotask(() => this.#begin(isDone));
  }

  #begin(isDone) {
    this.began = performance.now();
    const due = this.began + (isDone ? FIRST_OF_DONE_MS : this.first);
    this.due = isDone && this.waiting > 1 ? Math.min(this.due, due) : due;
    // A loop that sleeps from an earlier wait is used again, unless it would come too late.
    if (this.waiting > 0 && this.due < this.wakes) this.#run(++this.turn);
  }

  async #run(turn) {
    let now = performance.now();
    while (this.waiting > 0) {
      this.wakes = this.due;
      await this.pause(this.due - now);
      if (turn !== this.turn) return;
      now = performance.now();
      this.meanwhile(now);
      if (this.waiting > 0 && now >= this.due) {
        const sent = now;
        if (!(await this.#nudge())) break;
        if (turn !== this.turn) return;
        now = performance.now();
        // A request that came meanwhile has set when its first nudge comes.
        if (this.began <= sent) this.due = now + Math.min(Math.max((now - this.began) / PATIENCE, this.least), LONGEST_MS);
      }
    }
    this.wakes = Infinity;
  }

  /** Resolves when the browser has looked; to false where there is no device any more, which tells those who wait itself. */
  async #nudge() {
    this.device.queue.submit([]);
    // An error scope is answered when all that was submitted before has been taken in, not when it is done.
    this.device.pushErrorScope("validation");
    try {
      await this.device.popErrorScope();
      return true;
    } catch {
      return false;
    }
  }
}
