/**
 * Starts Python in a worker and talks to it. Any page of the site uses it, with or without cross-origin isolation.
 *
 *   import { boot } from "../boot.js";
 *   const python = await boot({ onStdout: (text) => output.append(text) });
 *   await python.run("1 + 1");                                  // 2
 *   await python.run("await model(prompt)", { prompt: "Hi" });  // inputs become globals
 *   python.interrupt();                                         // KeyboardInterrupt in the running code
 *   python.terminate();
 *
 * boot(options) -> Promise<Python>
 *   packages   names in the site's lock file to load; default ["numpy", "pellucid"]
 *   more       address of a folder with a pyodide-lock.json of the same Pyodide, whose packages can be imported too
 *   env        more environment variables; PELLUCID_SITE (the site's address) is always set
 *   site       the site's address; default: the folder above this file
 *   onProgress({ stage, milliseconds })  stage is "runtime", "packages" or "ready"
 *   onStdout(text), onStderr(text)       as written, not split into lines; several writes may come together. With isolation
 *       Python waits when the page is behind: until the call returns, or until the promise that it returned is settled
 *   onEvent(name, value)                 what Python sends: `import pellucid_page; pellucid_page.send("token", {...})`
 *   onCrash(error)                       the worker died; every pending call is rejected too
 *
 * Python
 *   run(code, inputs = {}, filename = "<page>") -> Promise<value>   the value of the last expression, dicts as objects,
 *       buffers as typed arrays, None as null; what has no counterpart in JavaScript arrives as its str. Code may use
 *       top-level await, and several calls may be under way: while one waits, another runs. Rejects with PythonError.
 *   writeFile(path, data) -> Promise   text or Uint8Array into Python's file system
 *   interrupt(cancel) -> boolean       true when the signal was sent; false when the page cannot (see interruptNote). `cancel`
 *       is code to run as soon as Python only waits, where no signal reaches it; it works on every page
 *   interruptNote                      null, or why interrupt() cannot work here
 *   terminate()                        ends the worker; what is pending and what is called later rejects with TerminatedError
 *   info                               { pyodide, python, jspi, webgpu, isolated, loaded, milliseconds }; loaded: addresses
 *
 * Messages, page to worker ({ kind, ... }):
 *   start { site, packages, more, env, interrupts, taken }     once, first; taken: shared memory in which the page counts the
 *       weight of the messages that it has dealt with
 *   run { id, code, inputs, filename, calm }      write { id, path, data }
 *       calm: a signal that is still pending is dropped first, for what it was meant for is not running; it is kept for a
 *       call that is still to begin
 * Messages, worker to page:
 *   progress { stage, milliseconds }   ready { info }   broken { message }        (boot)
 *   output { pieces: [[stream, text], ...], weight }   event { name, value, weight }
 *   done { id, value }   failed { id, type, message }                             (answers by id)
 */

/** An exception raised in Python: `type` is its class name, `message` the traceback. */
export class PythonError extends Error {
  constructor(type, message) {
    super(message);
    this.name = "PythonError";
    this.type = type;
  }
}

/** A call to a Python that was ended, before or while it ran. */
export class TerminatedError extends Error {
  constructor(message) {
    super(message);
    this.name = "TerminatedError";
  }
}

/** The address of a folder, whether or not it was given with its final slash. */
export function folder(address, base) {
  const found = new URL(address, base);
  found.pathname = found.pathname.replace(/\/?$/, "/");
  return found.href;
}

export async function boot(options = {}) {
  const python = new Python(options);
  await python.ready;
  return python;
}

class Python {
  #worker;
  #pending = new Map();
  #next = 0;
  #interrupts = null;
  #taken = null;
  #boot;

  constructor({ packages = ["numpy", "pellucid"], more = null, env = {}, site, ...listeners }) {
    const here = folder(site ?? "..", import.meta.url);
    const beside = more && folder(more, location.href);
    this.interruptNote = null;
    if (globalThis.crossOriginIsolated) {
      this.#interrupts = new Uint8Array(new SharedArrayBuffer(1));
      this.#taken = new Int32Array(new SharedArrayBuffer(4));
    } else {
      this.interruptNote =
        "Running Python cannot be interrupted on this page: it is served without the headers " +
        "Cross-Origin-Opener-Policy and Cross-Origin-Embedder-Policy, so it has no shared memory. " +
        "Restart Python instead.";
    }
    this.info = null;
    this.#worker = new Worker(new URL("python_worker.js", import.meta.url), { type: "module" });
    this.ready = new Promise((resolve, reject) => (this.#boot = { resolve, reject }));
    this.#worker.onmessage = ({ data }) => this.#receive(data, listeners);
    this.#worker.onerror = (event) => {
      event.preventDefault(); // it is told to whoever booted
      if (!this.#worker) return;
      const error = new Error(`The Python worker stopped: ${event.message ?? "it could not be loaded"}`);
      this.#end(error);
      listeners.onCrash?.(error);
    };
    const [interrupts, taken] = [this.#interrupts, this.#taken];
    this.#worker.postMessage({ kind: "start", site: here, packages, more: beside, env, interrupts, taken });
  }

  run(code, inputs = {}, filename = "<page>") {
    // A signal that came when nothing ran was meant for nobody; it must not hit this call.
    if (this.#interrupts && this.#pending.size === 0) this.#interrupts[0] = 0;
    return this.#ask({ kind: "run", code, inputs, filename });
  }

  writeFile(path, data) {
    return this.#ask({ kind: "write", path, data });
  }

  interrupt(cancel) {
    if (this.#interrupts) {
      this.#interrupts[0] = 2; // SIGINT
      Atomics.notify(this.#taken, 0); // printing may wait for the page
    }
    if (cancel) {
      this.#ask({ kind: "run", code: cancel, inputs: {}, filename: "<page>", calm: true }).catch(() => {}); // it was ended
    }
    return this.#interrupts !== null;
  }

  terminate() {
    this.#end(new TerminatedError("Python was terminated."));
  }

  #ask(message) {
    if (!this.#worker) return Promise.reject(new TerminatedError("Python was terminated. Start it again."));
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      try {
        this.#worker.postMessage({ ...message, id });
      } catch (error) {
        this.#pending.delete(id); // an input that cannot be cloned never reached the worker
        reject(error);
      }
    });
  }

  #receive(message, { onProgress, onStdout, onStderr, onEvent, onCrash }) {
    switch (message.kind) {
      case "output":
        return this.#take(message.weight, () =>
          message.pieces.map(([stream, text]) => (stream === "stdout" ? onStdout : onStderr)?.(text)),
        );
      case "event":
        return this.#take(message.weight, () => [onEvent?.(message.name, message.value)]);
      case "progress":
        return onProgress?.({ stage: message.stage, milliseconds: message.milliseconds });
      case "ready":
        this.info = message.info;
        return this.#boot.resolve();
      case "broken": {
        const error = new Error(message.message);
        this.#end(error);
        return this.info && onCrash?.(error); // before that, boot() says so itself
      }
      case "done":
        return this.#settle(message.id).resolve(message.value);
      case "failed":
        return this.#settle(message.id).reject(new PythonError(message.type, message.message));
    }
  }

  /** Deal with a message, and tell the worker when that is done. */
  async #take(weight, deal) {
    try {
      const later = deal().filter((result) => result instanceof Promise);
      if (later.length) await Promise.all(later);
    } finally {
      if (this.#taken) {
        Atomics.add(this.#taken, 0, weight);
        Atomics.notify(this.#taken, 0);
      }
    }
  }

  #settle(id) {
    const call = this.#pending.get(id);
    this.#pending.delete(id);
    return call;
  }

  #end(error) {
    if (this.#worker) this.#worker.onmessage = null; // what is still on its way is of no use
    this.#worker?.terminate();
    this.#worker = null;
    this.#boot.reject(error);
    this.ready.catch(() => {}); // whoever awaits boot() still sees it; nobody else must
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
