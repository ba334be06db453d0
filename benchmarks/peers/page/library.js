// A library of the comparison as the page sees it: whatever it runs in, a method is called by name and answers with plain data.

import { PythonError, boot } from "/web/boot.js";

const START = `
import sys
sys.path.insert(0, "/peers")
from ours.measure import Measure
peer = Measure()
`;

/** What a library's own code threw: it answers on. */
class Refused extends Error {}

export class Library {
  #host = null;

  constructor({ name, ...options }) {
    this.name = name;
    this.options = options;
  }

  get running() {
    return this.#host !== null;
  }

  /** Start it afresh. Resolves to what it says of itself. */
  async open(seconds) {
    this.close();
    this.#host = this.options.adapter ? new WorkerHost() : new PythonHost();
    try {
      return await this.call("open", [this.options], seconds);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Call a method. A library that is late, or whose worker broke, is ended and must be opened again. */
  async call(method, options, seconds) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer to ${method} within ${seconds} s`)), 1000 * seconds);
    });
    try {
      return await Promise.race([this.#host.call(method, options), late]);
    } catch (error) {
      if (!(error instanceof Refused || error instanceof PythonError)) this.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  close() {
    this.#host?.close();
    this.#host = null;
  }
}

/** A library of JavaScript in a worker of its own. */
class WorkerHost {
  #worker = new Worker(new URL("worker.js", import.meta.url));
  #pending = new Map();
  #next = 0;

  constructor() {
    this.#worker.onmessage = ({ data: { id, value, error } }) => {
      const { resolve, reject } = this.#pending.get(id);
      this.#pending.delete(id);
      if (error === undefined) resolve(value);
      else reject(new Refused(error));
    };
    this.#worker.onerror = (event) => {
      for (const { reject } of this.#pending.values()) reject(new Error(event.message ?? "the worker stopped"));
      this.#pending.clear();
    };
  }

  call(method, options) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#worker.postMessage({ id, method, options });
    });
  }

  close() {
    this.#worker.terminate();
  }
}

/** Pellucid in Python's worker. */
class PythonHost {
  #python = null;

  async call(method, options) {
    if (method === "open") await this.#boot(options[0]);
    const code = "import json; json.dumps(await peer.call(method, json.loads(options)))";
    return JSON.parse(await this.#python.run(code, { method, options: JSON.stringify(options) }));
  }

  async #boot({ files, env }) {
    this.#python = await boot({ env: { ...env, PELLUCID_TRAP: new URL("trap.js", import.meta.url).href } });
    for (const [path, text] of Object.entries(files)) await this.#python.writeFile(path, text);
    await this.#python.run(START);
  }

  close() {
    this.#python?.terminate();
  }
}
