// Errors that WebGPU reports later: collected in the order of the calls that caused them, whatever order they arrive in.

/** The words by which Python tells the kinds of failure apart begin every text. */
function kind(error) {
  if (error instanceof GPUOutOfMemoryError) return "out of memory";
  if (error instanceof GPUInternalError) return "internal";
  return "validation";
}

/** Error scopes, uncaptured errors and the loss of one device. */
export class Faults {
  constructor(device) {
    this.device = device;
    this.found = [];
    this.calls = 0;
    this.waiting = new Set();
    this.passed = 0; // calls whose errors follow from a lack of memory that was told
    this.passing = 0; // more than 0 while errors of these may still come without their calls
    this.lost = null;
    this.closing = false;
    device.addEventListener("uncapturederror", (event) => {
      event.preventDefault(); // Python raises it; the console need not repeat it
      const call = this.calls++;
      this.#add(this.passing > 0 ? -1 : call, `${kind(event.error)}: ${event.error.message}`);
    });
    device.lost.then(({ reason, message }) => {
      if (!this.closing) this.lost = `lost: the GPU device went away (${reason || "unknown"}): ${message}`;
    });
  }

  /** Catch errors of one kind in the calls up to the matching `close`. */
  open(filter) {
    this.device.pushErrorScope(filter);
  }

  /** End the scope. `describe(message)` may return a promise of a better text; it also learns that the call failed. Resolves when that is known. */
  close(describe) {
    const call = this.calls++;
    const waiting = this.device
      .popErrorScope()
      .then(async (error) => {
        if (error !== null) this.#add(call, `${kind(error)}: ${await describe(error.message)}`);
      })
      .catch(() => {}) // only a lost device rejects here, and `lost` reports that
      .then(() => this.waiting.delete(waiting));
    this.waiting.add(waiting);
    return waiting;
  }

  /** Resolves when everything asked so far has been answered. */
  async settled() {
    while (this.waiting.size > 0) await Promise.all(this.waiting);
  }

  /** The text of the earliest error since the last call, or null. A loss is reported every time: it does not pass. */
  take() {
    if (this.lost !== null) return this.lost;
    if (this.found.length === 0) return null;
    const first = this.found.reduce((a, b) => (b.call < a.call ? b : a));
    this.found.length = 0;
    if (first.text.startsWith("out of memory")) this.#pass();
    return first.text;
  }

  /** Forget what the calls up to now still get refused: the buffers that there was no memory for were used in them. */
  #pass() {
    this.passed = this.calls;
    this.passing++;
    this.device.pushErrorScope("validation"); // its answer comes behind theirs
    const end = () => setTimeout(() => this.passing--); // events that were fired before are heard by then
    this.device.popErrorScope().then(end, end);
  }

  /** Note what went wrong in a call of the stream that had to wait. */
  add(text) {
    this.#add(this.calls++, text);
  }

  /** Throws when the device is lost. */
  alive() {
    if (this.closing) throw new Error("closed: this device was closed");
    if (this.lost !== null) throw new Error(this.lost);
  }

  #add(call, text) {
    if (call < this.passed && text.startsWith("validation")) return;
    this.found.push({ call, text });
  }
}
