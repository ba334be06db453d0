// Files at a distance, for the page: a server's by Range requests, a File's by slices. The bytes stay in JavaScript.
// The desktop's twin is weights/source_http.py in Python; both follow the same rules.

import { Body, Room, patient } from "./body.js";
import * as copies from "./copies.js";
import { Halt, Interrupted, fault } from "./halt.js";

const NO_TIMEOUT = 2 ** 31 - 1; // the longest that a timer can wait
const PROGRESS_BYTES = 1 << 16; // after which earlier failures no longer count
const LONGEST_PAUSE_MS = 8000;
const OFFLINE_MS = 500; // between two looks whether there is a network again
const LONGEST_ETAG = 200; // characters of it that are compared
const NUMBER = "[0-9]{1,15}"; // a count of bytes: in these digits, and not more than can exist
const LENGTH = new RegExp(`^${NUMBER}$`);
const CONTENT_RANGE = new RegExp(`^bytes (${NUMBER})-(${NUMBER})/(${NUMBER})$`);
const NOTHING = new RegExp(`^bytes \\*/(${NUMBER})$`); // the Content-Range of an answer 416
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]); // statuses that a later attempt may not meet

/** A number with thousands marked, for messages. */
export const number = (value) => value.toLocaleString("en-US");

/** What a server wrote, short enough for a message. */
const brief = (text) => String(text).slice(0, 80);

/** Bytes that were read ahead of their reader. */
class Kept {
  constructor() {
    this.keep(0, new Uint8Array(0));
  }

  keep(start, bytes) {
    this.start = start;
    this.bytes = bytes;
  }

  from(start, stop) {
    const at = start - this.start;
    return at >= 0 && at < this.bytes.length ? this.bytes.subarray(at, stop - this.start) : null;
  }
}

/** A file at a URL. `size` and `etag` are null until the first answer; `ordered` is true for a server without Range. */
export class Remote {
  constructor(url, headers, timeout, retries, keeps = false) {
    this.name = url;
    this.headers = headers;
    this.timeout = timeout;
    this.retries = retries;
    this.size = null;
    this.etag = null;
    this.ordered = false;
    this.kept = new Kept();
    this.keeps = keeps; // whether a copy is read, and made where there is none
    this.copy = undefined; // null where there is none
    this.used = false; // whether bytes of the copy were given out: the rest must be of the same version
    this.writing = null;
    this.tape = null; // the one download of a server without Range: { body, room, at, rest, busy }
  }

  keep(start, bytes) {
    this.kept.keep(start, bytes);
  }

  close() {
    this.tape?.body.close();
    this.tape = null;
  }

  /** Bytes `start` to `stop`, fewer only where the file ends. */
  async read(start, stop) {
    const all = new Uint8Array(Math.max(0, Math.min(stop, this.size ?? stop) - start));
    let held = 0;
    for await (const piece of this.chunks(start, stop, new Halt(), new Room())) {
      all.set(piece, held);
      held += piece.length;
    }
    return held === all.length ? all : all.slice(0, held);
  }

  /** The same bytes as they come, each piece good until the next is asked for: they lie in `room`. Goes on at the byte
   * where a connection broke. `halt` stops it. */
  async *chunks(start, stop, halt, room) {
    const ahead = this.kept.from(start, stop);
    if (ahead !== null) {
      start += ahead.length;
      yield ahead;
    }
    if (this.keeps) {
      for await (const bytes of this.#copied(start, stop, halt)) {
        start += bytes.length;
        yield bytes;
      }
    }
    let failures = 0;
    let mark = start;
    while (start < stop && start < (this.size ?? Infinity)) {
      try {
        for await (const bytes of this.#attempt(start, stop, halt, room)) {
          if (this.keeps) this.writing ??= await copies.begin(this.name, this.size, this.etag);
          this.writing?.put(start, bytes);
          start += bytes.length;
          yield bytes;
        }
        if (start < Math.min(stop, this.size ?? 0))
          throw new Interrupted(`the answer ended at byte ${number(start)}`);
      } catch (error) {
        halt.check();
        if (!passes(error)) throw error;
        if (this.size !== null && globalThis.navigator?.onLine === false) {
          // In the middle of a load: it goes on when there is a network again, however long that takes.
          while (globalThis.navigator?.onLine === false) await halt.sleep(OFFLINE_MS);
          continue;
        }
        failures = start - mark >= PROGRESS_BYTES ? 1 : failures + 1;
        mark = start;
        if (failures > this.retries) {
          throw fault(
            "SourceError",
            `${this.name}: ${error.message}; gave up at byte ${number(start)} of ${number(stop)} after ${failures} attempts. ` +
              "Check the connection and the server (and, for another origin, that it allows CORS), then load again.",
          );
        }
        await halt.sleep(
          Math.min(LONGEST_PAUSE_MS, error.pause ?? 250 * 2 ** (failures - 1) * (0.5 + Math.random() / 2)),
        );
      }
    }
  }

  /** Bytes of the copy, if there is one; they end where it turns out to be damaged. */
  async *#copied(start, stop, halt) {
    if (this.copy === undefined) this.copy = await copies.open(this.name);
    if (this.copy === null) return;
    this.size = this.copy.size;
    try {
      for await (const bytes of this.copy.chunks(start, stop)) {
        halt.check();
        this.used = true;
        this.etag = this.copy?.note.etag ?? this.etag;
        yield bytes;
      }
    } catch (error) {
      if (error.name !== "DamagedCopy" && error.name !== "NotReadableError" && error.name !== "NotFoundError") throw error;
      this.copy = null;
      if (!this.used) this.size = null; // the server may have another version by now
      await copies.remove(this.name);
    }
  }

  async *#attempt(start, stop, halt, room) {
    if (this.ordered) {
      yield* this.#play(start, stop, halt);
      return;
    }
    const answer = await this.#request({ Range: `bytes=${start}-${stop - 1}` }, halt);
    if (answer === null) return; // 416: nothing there
    const { response, body, release } = answer;
    if (response.status === 200) {
      if (this.size !== null) {
        body.close();
        release();
        throw new Interrupted("the server answered a Range request with the whole file, though not before");
      }
      this.ordered = true;
      this.#note(response, this.#length(response));
      this.tape = { body, room: new Room(), at: 0, rest: null, busy: false };
      release();
      yield* this.#play(start, stop, halt);
      return;
    }
    try {
      const [first, last, total] = await this.#contentRange(response, start, stop, halt);
      this.#note(response, total);
      let left = last + 1 - first;
      const length = response.headers.get("Content-Length");
      if (first !== start || last >= Math.min(stop, total) || (length !== null && Number(length) !== left)) {
        throw fault(
          "SourceError",
          `${this.name}: asked for bytes ${start}-${stop - 1}, got ${first}-${last} of ${total} with a Content-Length of ${length}. ` +
            "The server's Range support is broken; serve the file otherwise.",
        );
      }
      for (let bytes; left > 0 && (bytes = await body.next(room)) !== null; left -= bytes.length) {
        if (bytes.length > left) bytes = bytes.subarray(0, left);
        yield bytes;
      }
    } finally {
      body.close();
      release();
    }
  }

  /** Bytes from the one sequential download; begun anew only to go back. */
  async *#play(start, stop, halt) {
    if (this.tape === null || this.tape.busy || this.tape.at > start) {
      if (!this.tape?.busy) this.close(); // a busy one serves another load to its end
      const answer = await this.#request({}, halt);
      if (answer === null) return;
      if (answer.response.status !== 200) {
        answer.body.close();
        answer.release();
        throw fault(
          "SourceError",
          `${this.name}: a request for the whole file was answered with status ${answer.response.status}. Serve the file otherwise.`,
        );
      }
      this.#note(answer.response, this.#length(answer.response));
      this.tape = { body: answer.body, room: new Room(), at: 0, rest: null, busy: false };
      answer.release();
    }
    const tape = this.tape;
    tape.busy = true;
    halt.add(tape.body.abort);
    let whole = false;
    try {
      while (tape.at < stop) {
        const bytes = tape.rest ?? (await tape.body.next(tape.room));
        tape.rest = null;
        if (bytes === null) return;
        if (tape.at + bytes.length > this.size) {
          throw fault(
            "SourceError",
            `${this.name}: sends more than the ${number(this.size)} bytes of its Content-Length. Serve the file otherwise, and without Content-Encoding.`,
          );
        }
        const from = Math.min(Math.max(start - tape.at, 0), bytes.length);
        const to = Math.min(stop - tape.at, bytes.length);
        if (to < bytes.length) tape.rest = bytes.subarray(to);
        tape.at += to;
        if (to > from) {
          whole = tape.at >= stop;
          yield bytes.subarray(from, to);
        }
      }
      whole = true;
    } finally {
      halt.delete(tape.body.abort);
      tape.busy = false;
      if (this.tape !== tape) tape.body.close();
      else if (!whole) this.close();
    }
  }

  async #request(headers, halt) {
    halt.check();
    const abort = new AbortController();
    halt.add(abort);
    const release = () => halt.delete(abort);
    try {
      // no-store: Chromium's cache would serve requests for one address one after the other
      const sent = fetch(this.name, {
        headers: { ...this.headers, ...headers },
        cache: "no-store",
        signal: abort.signal,
      });
      const response = await patient(sent, abort, this.timeout);
      if (response.status === 416) {
        this.#note(response, this.#totalOfNothing(response));
      } else if (!response.ok) {
        throw this.#refusal(response);
      } else if ((response.headers.get("Content-Encoding") ?? "identity") !== "identity") {
        throw fault(
          "SourceError",
          `${this.name}: is served compressed, so byte positions mean nothing. Serve it without Content-Encoding.`,
        );
      } else if (response.body === null) {
        throw fault("SourceError", `${this.name}: the server answered ${response.status} without a body. Check the address.`);
      } else {
        return { response, body: new Body(response.body, abort, this.timeout), release };
      }
      abort.abort();
      release();
      return null;
    } catch (error) {
      abort.abort();
      release();
      throw error;
    }
  }

  /** How long a file is of which no byte was asked for, by an answer 416. */
  #totalOfNothing(response) {
    const text = response.headers.get("Content-Range");
    const match = NOTHING.exec(text ?? "");
    if (match === null && text !== null) {
      throw fault(
        "SourceError",
        `${this.name}: a Range request was answered with status 416 and Content-Range '${brief(text)}'. ` +
          "Serve the file by a server with plain Range support.",
      );
    }
    return match === null ? (this.size ?? 0) : Number(match[1]);
  }

  #refusal(response) {
    const { status } = response;
    const words = brief(response.statusText);
    if (status === 404 || status === 410) {
      return fault(
        "MissingFile",
        `${this.name}: there is no such file (status ${status}). Check the address, the file's name and the revision.`,
      );
    }
    if (status === 401 || status === 403) {
      return fault(
        "SourceError",
        `${this.name}: access refused (status ${status}). Check the name; give token= for a private file, and accept the model's licence on its page if it has one.`,
      );
    }
    if (PASSING.has(status)) {
      const after = Number(response.headers.get("Retry-After") ?? NaN);
      return new Interrupted(
        `the server answered ${status} ${words}`,
        after >= 0 ? after * 1000 : null,
      );
    }
    return fault(
      "SourceError",
      `${this.name}: the server answered ${status} ${words}. Check the address.`,
    );
  }

  /** The size and version that an answer tells; all answers must tell the same. */
  #note(response, total) {
    const etag = response.headers.get("ETag")?.slice(0, LONGEST_ETAG) || null;
    if (
      (this.size !== null && total !== this.size) ||
      (this.etag !== null && etag !== null && etag !== this.etag)
    ) {
      throw fault(
        "SourceError",
        `${this.name}: the file changed while it was being read (${number(this.size)} bytes, ETag ${this.etag}; ` +
          `now ${number(total)} bytes, ETag ${etag}). Load it again.`,
      );
    }
    this.size = total;
    this.etag = etag ?? this.etag;
  }

  #length(response) {
    const text = response.headers.get("Content-Length");
    if (text === null || !LENGTH.test(text) || response.headers.get("Content-Encoding") !== null) {
      throw fault(
        "SourceError",
        `${this.name}: the server neither supports Range nor says how long the file is. Use a server that sends Content-Length.`,
      );
    }
    return Number(text);
  }

  /** First and last byte and total of an answer. Another origin may hide the header: then its length and a HEAD tell. */
  async #contentRange(response, start, stop, halt) {
    const text = response.headers.get("Content-Range");
    if (text === null && response.status === 206) {
      if (this.size === null) {
        const size = await this.#asked(halt);
        return [start, Math.min(stop, size) - 1, size];
      }
      return [start, Math.min(stop, this.size) - 1, this.size];
    }
    const match = CONTENT_RANGE.exec(text ?? "");
    const parts = response.headers.get("Content-Type")?.startsWith("multipart/byteranges") ?? false;
    if (response.status !== 206 || match === null || parts) {
      throw fault(
        "SourceError",
        `${this.name}: a Range request was answered with status ${response.status}, Content-Range '${brief(text)}'${parts ? " and several parts" : ""}. ` +
          "Serve the file by a server with plain Range support.",
      );
    }
    return match.slice(1).map(Number);
  }

  /** How long the file is, by a HEAD request. */
  async #asked(halt) {
    const abort = new AbortController();
    halt.add(abort);
    try {
      const sent = fetch(this.name, {
        method: "HEAD",
        headers: this.headers,
        cache: "no-store",
        signal: abort.signal,
      });
      return this.#length(await patient(sent, abort, this.timeout));
    } finally {
      halt.delete(abort);
    }
  }
}

/** A File or Blob. */
export class Local {
  constructor(blob) {
    this.blob = blob;
    this.name = blob.name ?? "blob";
    this.size = blob.size;
    this.etag = null;
    this.ordered = false;
  }

  keep() {} // reading it again costs nothing

  close() {}

  async read(start, stop) {
    return this.#guard(async () => new Uint8Array(await this.blob.slice(start, stop).arrayBuffer()));
  }

  async *chunks(start, stop, halt, room) {
    const body = new Body(this.blob.slice(start, stop).stream(), new AbortController(), NO_TIMEOUT);
    try {
      for (let bytes; (bytes = await this.#guard(() => body.next(room))) !== null;) {
        halt.check();
        yield bytes;
      }
    } finally {
      body.close();
    }
  }

  async #guard(read) {
    try {
      return await read();
    } catch (error) {
      throw fault(
        "SourceError",
        `${this.name}: cannot be read (${error.message}). Choose the file again; it may have changed.`,
      );
    }
  }
}

/** Whether another attempt may succeed: a broken connection (TypeError, network errors), silence, a passing status. */
function passes(error) {
  return (
    error instanceof Interrupted ||
    error instanceof TypeError ||
    error.name === "AbortError" ||
    error.name === "NetworkError"
  );
}

/** Note the copies of files that were read as a whole; see copies.js. */
export function finishCopies(timeout, retries) {
  return copies.finish(async (url, start, stop) => {
    const remote = new Remote(url, {}, timeout, retries);
    const bytes = await remote.read(start, stop);
    return { bytes, etag: remote.etag };
  });
}

export const { list: listCopies, remove: removeCopy } = copies;
