/**
 * Serves the site's own files where the network does not answer: those that a page told it to keep (offline.js). The network
 * comes first, so a site that was changed is seen at once. Weights and whatever is asked for in ranges pass by.
 */

const CACHE = "pellucid-site";
const OWN = /^(web|npm|pyodide|demo|docs)\/|^(index\.html)?$/;

function isOwn(address) {
  const { scope } = registration;
  return address.startsWith(scope) && OWN.test(new URL(address).pathname.slice(new URL(scope).pathname.length));
}

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));

addEventListener("fetch", (event) => {
  const { request } = event;
  if (!isOwn(request.url) || request.method !== "GET" || request.headers.has("range")) return;
  event.respondWith(fetch(request).catch((error) => kept(request, error)));
});

addEventListener("message", (event) => {
  const keep = async () => {
    const cache = await caches.open(CACHE);
    await Promise.all(event.data.keep.filter(isOwn).map((address) => cache.add(address)));
  };
  const [port] = event.ports;
  event.waitUntil(keep().then(() => port.postMessage(null), (error) => port.postMessage(String(error))));
});

async function kept(request, error) {
  const cache = await caches.open(CACHE);
  const found = await cache.match(request, { ignoreSearch: true, ignoreVary: true });
  if (found) return found;
  throw error;
}
