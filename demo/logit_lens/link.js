/** The experiment as an address: model, prompt, tokens, plans, and what is open. Plans are long: they stand behind #, unsent. */

import { note } from "../support.js";

/** Put settings into the page's address, or take out those that are empty; another text has no plans. */
export function remember(settings) {
  const here = new URL(location.href);
  for (const [name, value] of Object.entries(settings)) value ? here.searchParams.set(name, value) : here.searchParams.delete(name);
  if (settings.ids === "") here.hash = "";
  history.replaceState(null, "", here);
}

/** The address that opens an experiment; `plans` are what `demo.experiment` gives. */
export async function experiment(settings, plans) {
  const there = new URL(location.pathname, location.href);
  for (const [name, value] of Object.entries(settings)) if (value) there.searchParams.set(name, value);
  if (plans.length) there.hash = `plans=${await packed(JSON.stringify(plans))}`;
  return there.href;
}

/** The plans of the page's address: [first position, JSON of a plan] each. */
export async function plansOf(address) {
  const given = new URLSearchParams(address.hash.slice(1)).get("plans");
  const plans = given ? JSON.parse(await unpacked(given)) : [];
  return Array.isArray(plans) ? plans : []; // else no link of ours
}

async function packed(text) {
  const bytes = await through(new Blob([text]), new CompressionStream("deflate-raw"));
  const signs = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(signs).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(text) {
  const signs = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(signs, (sign) => sign.charCodeAt(0));
  return new TextDecoder().decode(await through(new Blob([bytes]), new DecompressionStream("deflate-raw")));
}

async function through(blob, stream) {
  return new Uint8Array(await new Response(blob.stream().pipeThrough(stream)).arrayBuffer());
}

/** Say once where a link was made with other weights than its address has now. */
export function tellSum(settings, here) {
  const made = settings.get("hash");
  if (!made || !here || made === here) return;
  note({ title: "The model has changed since the link was made", text: `Its weights had the sum ${made}, and have ${here} now: what is shown may differ from what was seen.` });
  settings.delete("hash");
  remember({ hash: "" });
}
