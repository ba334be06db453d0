/**
 * The way from Python's worker to the page: whatever is printed, sent and answered, in its order, and never far ahead of a
 * page that is behind.
 *
 * Where memory is shared, the page counts there what it has taken, and printing waits for it; a signal ends the wait. Without
 * shared memory nothing tells how far the page is, so beyond a burst one message a millisecond carries what was printed
 * meanwhile. The page does little more for a long message than for a short one, so it keeps up.
 */

const AHEAD = 1 << 18; // characters that may be on their way
const MESSAGE = 256; // what a message weighs besides its text
const BURST = 256; // messages at once where nothing is shared; later one a millisecond

export class Outlet {
  #taken = null; // Int32Array: the weight that the page has taken, modulo 2 ** 32
  #signals = null;
  #sent = 0;
  #held = []; // [stream, text] that wait for a message
  #credit = BURST;
  #counted = performance.now(); // when the credit was looked at
  #timer = 0;

  /** Use the memory shared with the page: its count and its signal byte. */
  share(taken, signals) {
    this.#taken = taken;
    this.#signals = signals;
  }

  /** Whether a signal waits for Python to look at it. */
  get interrupted() {
    return this.#signals !== null && this.#signals[0] !== 0;
  }

  /** Print to "stdout" or "stderr". */
  print(stream, text) {
    const last = this.#held.at(-1);
    if (last?.[0] === stream) last[1] += text;
    else this.#held.push([stream, text]);
    if (this.#taken !== null || this.#may()) this.flush();
    else this.#timer ||= setTimeout(() => this.flush(), 1); // comes when Python waits
  }

  /** Post what Python sends by itself and the page may be late with. */
  send(message) {
    this.flush();
    this.#post(message, MESSAGE);
  }

  /** Post an answer. */
  post(message) {
    this.flush();
    postMessage(message);
  }

  /** Post what was printed. */
  flush() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (!this.#held.length) return;
    const pieces = this.#held;
    this.#held = [];
    this.#post({ kind: "output", pieces }, pieces.reduce((weight, [, text]) => weight + text.length, MESSAGE));
  }

  #post(message, weight) {
    postMessage({ ...message, weight });
    this.#sent = (this.#sent + weight) | 0;
    if (this.#taken === null) return;
    let limit = AHEAD;
    for (;;) {
      const taken = Atomics.load(this.#taken, 0);
      if (((this.#sent - taken) | 0) <= limit || this.interrupted) return;
      limit = AHEAD / 2; // once it waits, it goes on with some room
      Atomics.wait(this.#taken, 0, taken);
    }
  }

  /** Whether a message may be posted where nobody tells how far the page is. */
  #may() {
    const now = performance.now();
    this.#credit = Math.min(BURST, this.#credit + now - this.#counted);
    this.#counted = now;
    if (this.#credit < 1) return false;
    this.#credit -= 1;
    return true;
  }
}
