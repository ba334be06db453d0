// What ends a load or an attempt early: an error that Python knows by name, one that may pass, or the caller's token.

/** An error that Python raises as the class of that name (pellucid.errors, or MissingFile of weights/source.py). */
export function fault(name, message) {
  const error = new Error(message);
  error.name = name;
  return error;
}

/** An attempt failed in a way that another one may not. `pause`: what the server asked for, in milliseconds. */
export class Interrupted extends Error {
  constructor(message, pause = null) {
    super(message);
    this.pause = pause;
  }
}

/** What stops a load: requests to abort, and sleepers to wake. */
export class Halt {
  constructor() {
    this.halted = false;
    this.requests = new Set();
    this.wake = new Set();
  }

  add(abort) {
    this.requests.add(abort);
  }

  delete(abort) {
    this.requests.delete(abort);
  }

  check() {
    if (this.halted)
      throw fault("LoadCancelled", "load: cancelled by the caller. Nothing of it stays allocated.");
  }

  now() {
    this.halted = true;
    for (const abort of this.requests) abort.abort();
    for (const wake of this.wake) wake();
  }

  async sleep(milliseconds) {
    await new Promise((resolve) => {
      const timer = setTimeout(done, milliseconds);
      const { wake } = this;
      wake.add(done);
      function done() {
        clearTimeout(timer);
        wake.delete(done);
        resolve();
      }
    });
    this.check();
  }
}
