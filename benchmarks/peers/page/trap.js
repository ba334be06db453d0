// Counts the WebGPU errors that nobody caught, on every device that this worker opens: work that was refused takes no time.

const seen = { count: 0, first: null, lost: undefined };

/** Begin to watch; before any device is opened. */
export function trap() {
  const open = GPUAdapter.prototype.requestDevice;
  GPUAdapter.prototype.requestDevice = async function (...options) {
    const device = await open.apply(this, options);
    device.addEventListener("uncapturederror", ({ error }) => {
      seen.count++;
      seen.first ??= error.message.slice(0, 400);
    });
    device.lost.then(({ reason, message }) => {
      if (reason !== "destroyed") seen.lost = message.slice(0, 400) || reason;
    });
    return device;
  };
}

/** [how many, the first message] since the last call. */
export function caught() {
  const found = [seen.count, seen.first];
  seen.count = 0;
  seen.first = null;
  return found;
}

/** Why a device was lost, if one was. It stays so: nothing that it is given is done. */
export const lost = () => seen.lost;
