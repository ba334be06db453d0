// Files of the origin's private file system (OPFS) by path: "runs/first/checkpoint-8/model.safetensors". The browser writes a file
// beside its place and puts it there when it is complete.

/**
 * The same promise, whose errors are DOMExceptions. Browsers have begun to make a full disk a class of its own,
 * QuotaExceededError, which Pyodide does not know: Python would wait for ever.
 */
export const plain = (promise) =>
  promise.catch((error) => {
    throw new DOMException(error.message, error.name);
  });

async function folder(path, create) {
  let handle = await navigator.storage.getDirectory();
  for (const name of path.split("/").filter(Boolean)) handle = await handle.getDirectoryHandle(name, { create });
  return handle;
}

async function named(path, create) {
  const at = path.lastIndexOf("/");
  return (await folder(path.slice(0, Math.max(at, 0)), create)).getFileHandle(path.slice(at + 1), { create });
}

/** What lies in a folder; nothing where it is not there. */
export function names(path) {
  const found = async () => Array.fromAsync((await folder(path, false)).keys());
  return plain(found().catch((error) => {
    if (["NotFoundError", "TypeMismatchError"].includes(error.name)) return [];
    throw error;
  }));
}

/** The bytes of a file. */
export function read(path) {
  return plain(named(path, false).then((handle) => handle.getFile()).then((file) => file.arrayBuffer()));
}

/** Write a file, whole or not at all. */
export function write(path, bytes) {
  const done = async () => {
    const writable = await (await named(path, true)).createWritable();
    try {
      await writable.write(bytes);
    } catch (error) {
      await writable.abort();
      throw error;
    }
    await writable.close();
  };
  return plain(done());
}

/** Give a file another name in its folder, in the place of one that has it. */
export function move(path, to) {
  return plain(named(path, false).then((handle) => handle.move(to.slice(to.lastIndexOf("/") + 1))));
}

/** Remove a file, or a folder with all that is in it; nothing where it is not there. */
export function remove(path) {
  const at = path.lastIndexOf("/");
  const done = async () => (await folder(path.slice(0, Math.max(at, 0)), false)).removeEntry(path.slice(at + 1), { recursive: true });
  return plain(done().catch((error) => {
    if (error.name !== "NotFoundError") throw error;
  }));
}
