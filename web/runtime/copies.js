// Copies of files in the origin's private file system (OPFS), so that a second visit reads nothing from the network and works
// without one. Bytes are written as they pass by; a copy counts once all of them are there and their digests are noted, and every
// piece is compared with its digest before it is given out. A copy of which a byte is wrong is removed and read from the server.
//
//   const writing = await begin(url, size, etag)   // null where another tab writes it, or the browser has no such files
//   writing.put(start, bytes)                 // in any order
//   await writing.finish()                    // { url, size, sha256 } once whole, else null
//   const copy = await open(url)              // null where there is none
//   for await (const bytes of copy.chunks(start, stop)) ...
//   await list(), await remove(url)

import { plain } from "./files.js";

const FOLDER = "pellucid-copies";
const PIECE = 1 << 22; // bytes that one digest is of
const writings = new Map(); // by url: several handles of one file write one copy

const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const digest = async (bytes) => hex(await crypto.subtle.digest("SHA-256", bytes));

async function folder() {
  const root = await navigator.storage.getDirectory();
  return plain(root.getDirectoryHandle(FOLDER, { create: true }));
}

async function nameOf(url) {
  return digest(new TextEncoder().encode(url));
}

/** What is noted of a copy, or null. */
async function noted(directory, name) {
  try {
    const file = await (await directory.getFileHandle(`${name}.json`)).getFile();
    const note = JSON.parse(await file.text());
    const fits = Number.isSafeInteger(note.size) && Array.isArray(note.digests) && note.digests.length === Math.ceil(note.size / PIECE);
    return fits ? note : null;
  } catch {
    return null; // none, or one whose writing was cut off
  }
}

/** A copy that is whole. */
class Copy {
  constructor(url, note, file) {
    this.url = url;
    this.size = note.size;
    this.note = note;
    this.file = file;
  }

  /** Bytes that agree with their digests.
   * @throws {Error} named "DamagedCopy" where a piece does not. */
  async *chunks(start, stop) {
    stop = Math.min(stop, this.size);
    while (start < stop) {
      const k = Math.floor(start / PIECE);
      const piece = new Uint8Array(await this.file.slice(k * PIECE, (k + 1) * PIECE).arrayBuffer());
      if ((await digest(piece)) !== this.note.digests[k]) {
        throw Object.assign(new Error(`piece ${k} of the copy of ${this.url} is damaged`), { name: "DamagedCopy" });
      }
      const bytes = piece.subarray(start - k * PIECE, Math.min(stop - k * PIECE, piece.length));
      start += bytes.length;
      yield bytes;
    }
  }
}

/** A copy that is being made. */
class Writing {
  constructor(url, name, size, handle) {
    this.url = url;
    this.name = name;
    this.size = size;
    this.handle = handle;
    this.etag = null;
    this.ranges = []; // [start, stop] that are written, in order and apart
  }

  put(start, bytes) {
    if (this.handle === null) return;
    let written = 0;
    try {
      written = this.handle.write(bytes, { at: start });
    } catch {
      // told below
    }
    if (written !== bytes.length) {
      this.#drop(); // the disk is full: what is there is of no use
      return;
    }
    let stop = start + bytes.length;
    const apart = [];
    for (const range of this.ranges) {
      if (range[1] < start || range[0] > stop) apart.push(range);
      else [start, stop] = [Math.min(start, range[0]), Math.max(stop, range[1])];
    }
    this.ranges = [...apart, [start, stop]].sort((a, b) => a[0] - b[0]);
  }

  /** Where bytes are missing: [start, stop] each. */
  gaps() {
    const found = [];
    let at = 0;
    for (const [start, stop] of [...this.ranges, [this.size, this.size]]) {
      if (start > at) found.push([at, start]);
      at = stop;
    }
    return found;
  }

  /** Note the digests, which makes it a copy; null where bytes are missing, or there is no room for the note. */
  async finish() {
    if (this.handle === null || this.gaps().length) return null;
    try {
      return await this.#note();
    } catch {
      return this.#drop();
    }
  }

  async #note() {
    const digests = [];
    const piece = new Uint8Array(Math.min(PIECE, this.size));
    this.handle.flush();
    for (let at = 0; at < this.size; at += PIECE) {
      const bytes = piece.subarray(0, Math.min(PIECE, this.size - at));
      if (this.handle.read(bytes, { at }) !== bytes.length) return this.#drop();
      digests.push(await digest(bytes));
    }
    const sha256 = await digest(new TextEncoder().encode(digests.join("")));
    const note = { url: this.url, size: this.size, etag: this.etag, sha256, digests, kept: new Date().toISOString() };
    const directory = await folder();
    const text = new TextEncoder().encode(JSON.stringify(note));
    this.#end();
    const file = await (await directory.getFileHandle(`${this.name}.json`, { create: true })).createSyncAccessHandle();
    try {
      file.truncate(0);
      if (file.write(text, { at: 0 }) !== text.length) throw new Error("the disk is full");
      file.flush();
    } finally {
      file.close();
    }
    return { url: note.url, size: note.size, sha256 };
  }

  #end() {
    this.handle?.close();
    this.handle = null;
    writings.delete(this.url);
  }

  /** Give up, and give the room back. */
  #drop() {
    this.#end();
    remove(this.url).catch(() => {}); // what is left has no note, so it is no copy
    return null;
  }
}

/** Begin a copy, or go on with the one that this worker writes of the same version; null where it cannot be. */
export async function begin(url, size, etag) {
  if (!writings.has(url)) writings.set(url, start(url, size));
  const writing = await writings.get(url);
  if (writing?.size !== size) return null;
  if (etag === null || etag !== writing.etag) writing.ranges = []; // what is there may be of another version
  writing.etag = etag;
  return writing;
}

async function start(url, size) {
  let handle = null;
  try {
    const [directory, name] = [await folder(), await nameOf(url)];
    handle = await (await directory.getFileHandle(`${name}.bytes`, { create: true })).createSyncAccessHandle();
    await directory.removeEntry(`${name}.json`).catch(() => {}); // what it noted is overwritten
    handle.truncate(size);
    return new Writing(url, name, size, handle);
  } catch {
    // Another tab writes it, there is no room, or no such file system. What was opened here is given back.
    handle?.close();
    if (handle) await remove(url).catch(() => {});
    return null;
  }
}

export async function open(url) {
  try {
    const [directory, name] = [await folder(), await nameOf(url)];
    const note = await noted(directory, name);
    if (note?.url !== url) return null;
    const file = await (await directory.getFileHandle(`${name}.bytes`)).getFile();
    return file.size === note.size ? new Copy(url, note, file) : null;
  } catch {
    return null;
  }
}

/** Copies that are whole: [{ url, size, sha256, kept }]. What was begun and not finished goes. */
export async function list() {
  const directory = await folder();
  const found = [];
  for await (const name of directory.keys()) {
    if (!name.endsWith(".bytes")) continue;
    const note = await noted(directory, name.slice(0, -6));
    if (note) found.push({ url: note.url, size: note.size, sha256: note.sha256, kept: note.kept });
    else await directory.removeEntry(name).catch(() => {}); // one that is being written is locked
  }
  return found.sort((a, b) => (a.url < b.url ? -1 : 1));
}

export async function remove(url) {
  const [directory, name] = [await folder(), await nameOf(url)];
  for (const end of ["json", "bytes"]) await directory.removeEntry(`${name}.${end}`).catch(() => {});
}

/** Note the copies whose bytes are all there; `fill(url, start, stop)` gives `{ bytes, etag }` of those that nobody asked for. */
export async function finish(fill) {
  const made = [];
  for (const [url, started] of [...writings]) {
    const writing = await started;
    if (!writing) continue;
    const gaps = writing.gaps();
    const missing = gaps.reduce((sum, [start, stop]) => sum + stop - start, 0);
    if (missing > writing.size / 100) continue; // it was not read as a whole
    for (const [start, stop] of gaps) {
      const { bytes, etag } = await fill(url, start, stop);
      if (etag === writing.etag) writing.put(start, bytes);
    }
    const done = await writing.finish();
    if (done) made.push(done);
  }
  return made;
}
