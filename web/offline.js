/** Keeps what a page and its Python were loaded from, so that both open again without a network (service_worker.js). */

const SITE = new URL("..", import.meta.url);

/**
 * Resolves to true once all is kept, and to false where the browser keeps nothing: private windows, pages that are not secure.
 * `more` are addresses that the page does not know of itself, such as those that a worker loaded.
 */
export async function keepForOffline(more = []) {
  if (!navigator.serviceWorker) return false;
  try {
    await navigator.serviceWorker.register(new URL("service_worker.js", SITE), { scope: SITE.pathname });
    const { active } = await navigator.serviceWorker.ready;
    const loaded = [location.href, ...performance.getEntriesByType("resource").map(({ name }) => name), ...more];
    const own = loaded.filter((address) => address.startsWith(SITE.href)).map((address) => address.replace(/[?#].*/, ""));
    const { port1, port2 } = new MessageChannel();
    const told = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)));
    active.postMessage({ keep: [...new Set(own)] }, [port2]);
    return (await told) === null;
  } catch {
    return false; // the page works as before, only not without a network
  }
}
