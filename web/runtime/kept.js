// A text that outlives the page: what was measured on this device. It lies in the origin's Cache storage, which workers and
// private windows have in every browser with WebGPU, isolated or not, and which goes with the rest of the site's data.

const CACHE = "pellucid";

function address() {
  return new URL("/pellucid/tuned.json", globalThis.location.origin).href;
}

/** Resolves to the text, undefined where there is none. */
async function read() {
  const found = await caches.match(address(), { cacheName: CACHE });
  return found?.text();
}

export class Kept {
  /** Read it; where that fails, `error` says why. */
  static async open() {
    try {
      return new Kept(await read());
    } catch (error) {
      // Where a page may store nothing, nothing was ever kept.
      return new Kept(undefined, error.name === "SecurityError" ? "" : String(error));
    }
  }

  constructor(text, error = "") {
    this.text = text;
    this.error = error;
  }

  /**
   * Let `change` make a text of the one that is there now, or undefined to leave it. Another page may have written it; while
   * this one does, others wait.
   */
  async keep(change) {
    await navigator.locks.request(`${CACHE} tuned.json`, async () => {
      const before = await read();
      const text = change(before);
      if (text !== undefined) {
        const cache = await caches.open(CACHE);
        await cache.put(address(), new Response(text, { headers: { "Content-Type": "application/json" } }));
      }
      this.text = text ?? before;
      this.error = "";
    });
  }
}
