/**
 * The worker in which Python runs. The messages are described in boot.js.
 *
 * Pyodide, its lock file and every wheel come from the site itself, so nothing outside it is ever contacted, unless the page
 * names a folder with more packages.
 */

import { Outlet } from "./outlet.js";

const PIECE = 1 << 16; // bytes that are printed between two looks at the signals
const began = performance.now();
const elapsed = () => Math.round(performance.now() - began);
let pyodide;
let signals = null; // shared with the page, where it can be
const outlet = new Outlet();
let execute;
let beginning = 0; // calls whose code Python is still to begin
let pressed = 0; // a signal that came for one of them: it is given once that code runs

// Runs code in the globals that all calls share. Whatever is raised, KeyboardInterrupt and SystemExit too, is caught
// before the event loop sees it, and reported without the frames that lead here.
const EXECUTE = `
async def execute(code, filename, begun):
    import sys
    import traceback
    import __main__
    from pyodide.code import eval_code_async
    try:
        begun()
        return True, await eval_code_async(code, __main__.__dict__, filename=filename), None
    except BaseException as error:
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename != filename:
            trace = trace.tb_next
        text = "".join(traceback.format_exception(type(error), error, trace or error.__traceback__))
        return False, type(error).__name__, text.rstrip()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
execute
`;

/**
 * The page's signal byte as Python takes it. Python reads it and then writes 0 whatever it read, so a signal that arrives between
 * the two would be erased: the 0 reaches the shared byte only when there was a signal to clear.
 */
function signalBuffer(shared) {
  let seen = 0;
  return {
    get 0() {
      return (seen = Atomics.load(shared, 0));
    },
    set 0(value) {
      if (value !== 0 || seen !== 0) Atomics.store(shared, 0, value);
    },
  };
}

/**
 * A writer for one of Python's streams that keeps characters whole across writes. As with any terminal, a signal ends a long
 * write before its end, and Python then raises KeyboardInterrupt.
 */
function stream(kind) {
  const decoder = new TextDecoder();
  return {
    write(bytes) {
      let written = 0;
      while (written < bytes.length && !(written && outlet.interrupted)) {
        const piece = bytes.subarray(written, written + PIECE);
        const text = decoder.decode(piece, { stream: true });
        if (text) outlet.print(kind, text);
        written += piece.length;
      }
      return written;
    },
  };
}

/** Turn a Python value into one that can be cloned into the page. */
function toPage(value) {
  if (!(value instanceof pyodide.ffi.PyProxy)) return value ?? null;
  try {
    return value.toJs({ create_pyproxies: false, dict_converter: Object.fromEntries });
  } catch {
    return value.toString();
  } finally {
    value.destroy();
  }
}

/** Post a value by a method of the outlet; one that structured cloning refuses travels as text. */
function post(method, message) {
  try {
    outlet[method](message);
  } catch {
    outlet[method]({ ...message, value: String(message.value) });
  }
}

async function readLock(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`The site has no lock file: ${url} answered ${answer.status}.`);
  return answer.json();
}

/** Rejects when Python's WebAssembly cannot be made, of which Pyodide only warns before it waits for ever. */
function unmade(base) {
  const make = WebAssembly.instantiateStreaming;
  return new Promise((_, reject) => {
    WebAssembly.instantiateStreaming = (...parts) => {
      WebAssembly.instantiateStreaming = make;
      const made = make.apply(WebAssembly, parts);
      made.catch((error) => reject(new Error(`Python could not be loaded: ${base}pyodide.asm.wasm: ${error.message}`)));
      return made;
    };
  });
}

async function start({ site, packages, more, env, interrupts, taken }) {
  const base = new URL("pyodide/", site).href;
  outlet.post({ kind: "progress", stage: "runtime", milliseconds: elapsed() });
  const [{ loadPyodide }, lock] = await Promise.all([import(base + "pyodide.mjs"), readLock(base + "pyodide-lock.json")]);
  if (more) {
    const other = await readLock(new URL("pyodide-lock.json", more).href);
    for (const [name, found] of Object.entries(other.packages)) {
      lock.packages[name] ??= { ...found, file_name: new URL(found.file_name, more).href };
    }
  }
  const missing = packages.filter((name) => !(name in lock.packages));
  if (missing.length) throw new Error(`The site's lock file does not have: ${missing.join(", ")}.`);
  const settings = {
    indexURL: base,
    packageBaseUrl: base,
    lockFileContents: lock,
    packages,
    env: { HOME: "/home/pyodide", ...env, PELLUCID_SITE: site },
  };
  pyodide = await Promise.race([unmade(base), loadPyodide(settings)]);
  outlet.post({ kind: "progress", stage: "packages", milliseconds: elapsed() });
  pyodide.setStdout(stream("stdout"));
  pyodide.setStderr(stream("stderr"));
  pyodide.setStdin({ error: true });
  // Nothing of Python answers any more, so whoever waits for it is told from here.
  pyodide._api.on_fatal = (error) => outlet.post({ kind: "broken", message: `Python ended with a fatal error: ${error.message}` });
  pyodide.runPython("import sys; sys.stdout.reconfigure(line_buffering=True)");
  if (interrupts) {
    pyodide.setInterruptBuffer(signalBuffer((signals = interrupts)));
    outlet.share(taken, signals);
  }
  pyodide.registerJsModule("pellucid_page", {
    send(name, value) {
      const kept = value instanceof pyodide.ffi.PyProxy ? value.copy() : value; // the caller keeps its own
      post("send", { kind: "event", name, value: toPage(kept) });
    },
  });
  execute = pyodide.runPython(EXECUTE, { globals: pyodide.toPy({}) });
  const info = {
    pyodide: pyodide.version,
    python: pyodide.runPython("import platform; platform.python_version()"),
    jspi: typeof WebAssembly.Suspending === "function",
    webgpu: Boolean(navigator.gpu),
    isolated: globalThis.crossOriginIsolated,
    loaded: performance.getEntriesByType("resource").map(({ name }) => name),
    milliseconds: elapsed(),
  };
  outlet.post({ kind: "progress", stage: "ready", milliseconds: elapsed() });
  outlet.post({ kind: "ready", info });
}

async function run({ id, code, inputs, filename, calm }) {
  if (calm && signals) {
    if (beginning) pressed ||= signals[0];
    signals[0] = 0;
  }
  let begun = () => {};
  try {
    for (const [name, value] of Object.entries(inputs)) pyodide.globals.set(name, pyodide.toPy(value));
    if (!calm) {
      beginning += 1;
      begun = () => {
        begun = () => {};
        beginning -= 1;
        if (pressed) signals[0] = pressed;
        pressed = 0;
      };
    }
    const outcome = await execute(code, filename, () => begun());
    const [fine, value, text] = outcome; // a proxy of a tuple: iterating gives its items
    outcome.destroy();
    if (fine) post("post", { kind: "done", id, value: toPage(value) });
    else outlet.post({ kind: "failed", id, type: value, message: text });
  } catch (error) {
    outlet.post({ kind: "failed", id, type: error.type ?? error.name, message: error.message });
  } finally {
    begun(); // where Python did not come to that
  }
}

onmessage = async ({ data }) => {
  switch (data.kind) {
    case "start":
      return start(data).catch((error) => outlet.post({ kind: "broken", message: String(error.message ?? error) }));
    case "run":
      return run(data);
    case "write":
      try {
        pyodide.FS.mkdirTree(data.path.slice(0, data.path.lastIndexOf("/")) || "/");
        pyodide.FS.writeFile(data.path, data.data);
        outlet.post({ kind: "done", id: data.id, value: null });
      } catch (error) {
        outlet.post({ kind: "failed", id: data.id, type: error.name, message: error.message });
      }
  }
};
