/** What pages say that find no WebGPU: which browsers have it, and where this one has it switched off. */

export const SHIPPING = [
  "Chrome and Edge 113 or newer on Windows, macOS and ChromeOS, 121 or newer on Android",
  "Safari 26 or newer on macOS, iOS and iPadOS",
  "Firefox 141 or newer on Windows, 145 or newer on Macs with Apple silicon",
];

/** What keeps WebGPU from working here and what can be done about it, or null. */
export async function missing() {
  if (!isSecureContext) return "This page is not served over https or from this computer, so the browser hides WebGPU.";
  if (!navigator.gpu) return `This browser has no WebGPU. ${toSwitchOn(false)}`.trim();
  const adapter = await navigator.gpu.requestAdapter().catch(() => null);
  return adapter ? null : `This browser has WebGPU but offers no adapter (a missing or blocked graphics driver). ${toSwitchOn(true)}`.trim();
}

/**
 * What may be switched on in this browser, or "".
 * @param {boolean} isBlocked whether it has WebGPU, which finds no adapter
 * @param {string} agent the browser's name for itself
 */
export function toSwitchOn(isBlocked, agent = navigator.userAgent) {
  const isLinux = /Linux|X11/.test(agent) && !/Android/.test(agent);
  if (/Firefox\//.test(agent)) {
    if (!isBlocked) return "Firefox has it behind a setting: set dom.webgpu.enabled to true under about:config, then reload this page.";
    return "Firefox says why under about:support, at WEBGPU in the decision log. Where the driver is on its block list, set gfx.webgpu.ignore-blocklist to true under about:config and restart Firefox.";
  }
  if (isLinux && /Chrome\//.test(agent)) return "On Linux, Chrome may want WebGPU and Vulkan switched on under chrome://flags, and a restart.";
  return "";
}
