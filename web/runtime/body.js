// The bytes of an answer or a File, read without leaving garbage: into memory that comes back with every read, and,
// where a browser has no such readers, by giving each chunk's memory back as soon as it was used.

import { Interrupted } from "./halt.js";

const READ_BYTES = 1 << 18; // of one read

/** The memory that one connection reads into. A read takes it away and brings it back in another ArrayBuffer. */
export class Room {
  constructor() {
    this.buffer = null;
  }

  /** A view of it. It is new at first, and after a read that a closed body kept. */
  take() {
    const view = new Uint8Array(this.buffer ?? new ArrayBuffer(READ_BYTES));
    this.buffer = null;
    return view;
  }
}

/** A body that is being read. A read that stays silent for `timeout` milliseconds fails. */
export class Body {
  constructor(stream, abort, timeout) {
    this.reader = byteReader(stream);
    this.browserOwned = this.reader === null; // chunks then come in memory of the browser's
    this.reader ??= stream.getReader();
    this.abort = abort;
    this.timeout = timeout;
    this.chunk = null; // the last one, when it is in the browser's memory
  }

  /** The next bytes, good until the next call; null at the end. */
  async next(room) {
    this.#release();
    const read = this.browserOwned ? this.reader.read() : this.reader.read(room.take());
    const { done, value } = await patient(read, this.abort, this.timeout);
    if (this.browserOwned) this.chunk = value ?? null;
    else room.buffer = value?.buffer ?? null;
    return done ? null : value;
  }

  close() {
    this.abort.abort();
    this.reader.cancel().catch(() => {}); // it is closed either way
    this.#release();
  }

  #release() {
    if (this.chunk !== null) discard(this.chunk.buffer);
    this.chunk = null;
  }
}

/** Give memory back now, by moving it into a message that nobody can get, and not at some garbage collection, which
 * browsers begin after hundreds of megabytes. (Chromium keeps what `ArrayBuffer.transfer` takes away until then.) */
function discard(buffer) {
  const { port1, port2 } = new MessageChannel();
  port1.postMessage(null, [buffer]);
  port1.close();
  port2.close();
}

/** `promise`, or, after `timeout` milliseconds, an aborted request and an Interrupted. */
export async function patient(promise, abort, timeout) {
  let timer;
  const silence = new Promise((_, reject) => {
    timer = setTimeout(() => {
      abort.abort();
      reject(new Interrupted(`no answer for ${timeout / 1000} s`));
    }, timeout);
  });
  try {
    return await Promise.race([promise, silence]);
  } finally {
    clearTimeout(timer);
    promise.catch(() => {}); // an aborted request fails once more, when nobody listens
  }
}

/** A reader that fills the memory it is given; null where bodies are no byte streams. */
function byteReader(stream) {
  try {
    return stream.getReader({ mode: "byob" });
  } catch {
    return null;
  }
}
