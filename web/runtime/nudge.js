// Waiting for the GPU: browsers look for finished work when something is submitted, else only every now and then
// (Chromium after 2 ms, Firefox after 100). While somebody waits, empty submissions make them look.

const FIRST_MS = 0.1;
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
  constructor(queue) {
    this.queue = queue;
    this.waiting = 0;
    this.began = 0;
    this.running = false;
  }

  /** Look often from now on until `promise` is settled. */
  watch(promise) {
    const stop = () => this.waiting--;
    this.waiting++;
    this.began = performance.now();
    promise.then(stop, stop);
    if (!this.running) this.#run();
  }

  async #run() {
    this.running = true;
    while (this.waiting > 0) {
      const waited = performance.now() - this.began;
      await pause(Math.min(Math.max(waited / PATIENCE, FIRST_MS), LONGEST_MS));
      if (this.waiting > 0) this.queue.submit([]);
    }
    this.running = false;
  }
}
