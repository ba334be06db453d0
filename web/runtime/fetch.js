// Weights on their way from a server, or from a File, to a stream's slots; the bytes stay in JavaScript.
// The desktop's twins are weights/source_http.py and weights/pump.py in Python; both follow the same rules.

const STAGING_BYTES = 1 << 20; // of one write; a multiple of 4
const BACKLOG_BYTES = 32 << 20; // written but not known to have reached the GPU
const PROGRESS_BYTES = 1 << 16; // after which earlier failures no longer count
const LONGEST_PAUSE_MS = 8000;
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]); // statuses that a later attempt may not meet

/** An error that Python raises as the class of that name (pellucid.errors, or MissingFile of weights/source.py). */
function fault(name, message) {
  const error = new Error(message);
  error.name = name;
  return error;
}

/** An attempt failed in a way that another one may not. `pause`: what the server asked for, in milliseconds. */
class Interrupted extends Error {
  constructor(message, pause = null) {
    super(message);
    this.pause = pause;
  }
}

const number = (value) => value.toLocaleString("en-US");

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

/** A body that is being read. A read that stays silent for `timeout` milliseconds fails. */
class Body {
  constructor(response, abort, timeout) {
    this.reader = response.body.getReader();
    this.abort = abort;
    this.timeout = timeout;
  }

  /** The next bytes; null at the end. */
  async next() {
    const { done, value } = await patient(this.reader.read(), this.abort, this.timeout);
    return done ? null : value;
  }

  close() {
    this.abort.abort();
    this.reader.cancel().catch(() => {}); // it is closed either way
  }
}

/** `promise`, or, after `timeout` milliseconds, an aborted request and an Interrupted. */
async function patient(promise, abort, timeout) {
  let timer;
  const silence = new Promise((_, reject) => {
    timer = setTimeout(() => {
      abort.abort();
      reject(new Interrupted(`no answer for ${timeout / 1000} s`));
    }, timeout);
  });
  try {
    return await Promise.race([promise, silence]);
  } finally {
    clearTimeout(timer);
    promise.catch(() => {}); // an aborted request fails once more, when nobody listens
  }
}

/** A file at a URL. `size` and `etag` are null until the first answer; `ordered` is true for a server without Range. */
export class Remote {
  constructor(url, headers, timeout, retries) {
    this.name = url;
    this.headers = headers;
    this.timeout = timeout;
    this.retries = retries;
    this.size = null;
    this.etag = null;
    this.ordered = false;
    this.kept = new Kept();
    this.tape = null; // the one download of a server without Range: { body, at, rest }
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
    const pieces = [];
    for await (const piece of this.chunks(start, stop, new Halt())) pieces.push(piece.slice());
    return joined(pieces);
  }

  /** The same bytes as they come. Goes on at the byte where a connection broke. `halt` stops it. */
  async *chunks(start, stop, halt) {
    const ahead = this.kept.from(start, stop);
    if (ahead !== null) {
      start += ahead.length;
      yield ahead;
    }
    let failures = 0;
    let mark = start;
    while (start < stop && start < (this.size ?? Infinity)) {
      try {
        for await (const bytes of this.#attempt(start, stop, halt)) {
          start += bytes.length;
          yield bytes;
        }
        if (start < Math.min(stop, this.size ?? 0))
          throw new Interrupted(`the answer ended at byte ${number(start)}`);
      } catch (error) {
        halt.check();
        if (!passes(error)) throw error;
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

  async *#attempt(start, stop, halt) {
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
      this.tape = { body, at: 0, rest: null, release };
      yield* this.#play(start, stop, halt);
      return;
    }
    try {
      const [first, last, total] = await this.#contentRange(response, start, stop, halt);
      this.#note(response, total);
      if (first !== start || last >= stop) {
        throw fault(
          "SourceError",
          `${this.name}: asked for bytes ${start}-${stop - 1}, got ${first}-${last}. The server's Range support is broken; serve the file otherwise.`,
        );
      }
      let left = last + 1 - first;
      for (let bytes; left > 0 && (bytes = await body.next()) !== null; left -= bytes.length) {
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
    if (this.tape === null || this.tape.at > start) {
      this.close();
      const answer = await this.#request({}, halt);
      if (answer === null) return;
      this.#note(answer.response, this.#length(answer.response));
      this.tape = { body: answer.body, at: 0, rest: null, release: answer.release };
    }
    const tape = this.tape;
    halt.add(tape.body.abort);
    let whole = false;
    try {
      while (tape.at < stop) {
        const bytes = tape.rest ?? (await tape.body.next());
        tape.rest = null;
        if (bytes === null) return;
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
      if (!whole && this.tape === tape) this.close();
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
        const total = /\/(\d+)$/.exec(response.headers.get("Content-Range") ?? "");
        this.#note(response, total === null ? (this.size ?? 0) : Number(total[1]));
      } else if (!response.ok) {
        throw this.#refusal(response);
      } else {
        return { response, body: new Body(response, abort, this.timeout), release };
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

  #refusal(response) {
    const { status } = response;
    if (status === 404 || status === 410) {
      return fault(
        "MissingFile",
        `${this.name}: there is no such file (status ${status}). Check the address, the file's name and the revision.`,
      );
    }
    if (status === 401 || status === 403) {
      return fault(
        "SourceError",
        `${this.name}: access refused (status ${status}). Give token=, and accept the model's licence on its page if it has one.`,
      );
    }
    if (PASSING.has(status)) {
      const after = Number(response.headers.get("Retry-After") ?? NaN);
      return new Interrupted(
        `the server answered ${status} ${response.statusText}`,
        after >= 0 ? after * 1000 : null,
      );
    }
    return fault(
      "SourceError",
      `${this.name}: the server answered ${status} ${response.statusText}. Check the address.`,
    );
  }

  /** The size and version that an answer tells; all answers must tell the same. */
  #note(response, total) {
    const etag = response.headers.get("ETag");
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
    if (text === null || response.headers.get("Content-Encoding") !== null) {
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
        const head = await fetch(this.name, { method: "HEAD", headers: this.headers, cache: "no-store" });
        halt.check();
        return [start, Math.min(stop, this.#length(head)) - 1, this.#length(head)];
      }
      return [start, Math.min(stop, this.size) - 1, this.size];
    }
    const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(text ?? "");
    if (response.status !== 206 || match === null) {
      throw fault(
        "SourceError",
        `${this.name}: a Range request was answered with status ${response.status} and Content-Range '${text}'. ` +
          "Serve the file by a server with plain Range support.",
      );
    }
    return match.slice(1).map(Number);
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

  async *chunks(start, stop, halt) {
    for (let at = start; at < Math.min(stop, this.size); at += STAGING_BYTES) {
      halt.check();
      yield await this.read(at, Math.min(at + STAGING_BYTES, stop));
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

/** What stops a load: requests to abort, and sleepers to wake. */
class Halt {
  constructor() {
    this.halted = false;
    this.requests = new Set();
    this.wake = new Set();
  }

  add(abort) {
    this.requests.add(abort);
  }

  delete(abort) {
    this.requests.delete(abort);
  }

  check() {
    if (this.halted)
      throw fault("LoadCancelled", "load: cancelled by the caller. Nothing of it stays allocated.");
  }

  now() {
    this.halted = true;
    for (const abort of this.requests) abort.abort();
    for (const wake of this.wake) wake();
  }

  async sleep(milliseconds) {
    await new Promise((resolve) => {
      const timer = setTimeout(done, milliseconds);
      const { wake } = this;
      wake.add(done);
      function done() {
        clearTimeout(timer);
        wake.delete(done);
        resolve();
      }
    });
    this.check();
  }
}

/** Columns of the plan's tables, as weights/source_browser.py writes them. */
const LANE_COLUMNS = 2; // first part, parts
const PART_COLUMNS = 5; // shard, start, stop, first row, rows
const ROW_COLUMNS = 6; // start, stop, slot, bytes of the slot, offset in the slot, item

/** Moves a plan's bytes to a stream: a few connections, each with one staging buffer. */
export class Load {
  /** `stream` has `write(slot, nbytes, offset, bytes)`, which copies, and may have `synchronize()`. The tables are Float64Arrays. */
  constructor(stream, shards, lanes, parts, rows, connections) {
    Object.assign(this, { stream, shards, lanes, parts, rows });
    this.halt = new Halt();
    this.nextLane = 0;
    this.bytesDone = 0;
    this.backlog = 0;
    this.drained = null;
    this.item = 0;
    this.error = null;
    const count = Math.max(1, Math.min(connections, lanes.length / LANE_COLUMNS));
    this.running = count;
    this.finished = Promise.all(Array.from({ length: count }, () => this.#connection()));
  }

  /** Resolves to [bytes done, item, 1 when finished else 0] after `milliseconds`, or at the end; rejects with the first error. */
  async next(milliseconds) {
    let timer;
    const pause = new Promise((resolve) => (timer = setTimeout(resolve, milliseconds)));
    await Promise.race([this.finished, pause]);
    clearTimeout(timer);
    if (this.error !== null) throw this.error;
    return [this.bytesDone, this.item, this.running === 0 ? 1 : 0];
  }

  /** Write nothing more, from now on. */
  close() {
    if (this.running > 0) this.halt.now();
  }

  async #connection() {
    const staging = new Uint8Array(STAGING_BYTES);
    try {
      while (this.nextLane * LANE_COLUMNS < this.lanes.length) {
        const lane = this.nextLane++ * LANE_COLUMNS;
        const first = this.lanes[lane];
        for (let part = first; part < first + this.lanes[lane + 1]; part++)
          await this.#move(part * PART_COLUMNS, staging);
      }
    } catch (error) {
      this.error ??= error;
      this.halt.now();
    }
    this.running--;
  }

  /** Fetch one part. A row's writes are multiples of 4 bytes; its last one is padded with zeros. */
  async #move(part, staging) {
    const { parts, rows, halt } = this;
    const shard = this.shards[parts[part]];
    const stop = parts[part + 2];
    const end = (parts[part + 3] + parts[part + 4]) * ROW_COLUMNS;
    let at = parts[part + 1];
    let row = parts[part + 3] * ROW_COLUMNS;
    let held = 0;
    for await (const bytes of shard.chunks(at, stop, halt)) {
      for (let taken = 0; taken < bytes.length && row < end;) {
        const inside = at >= rows[row];
        const limit = inside ? Math.min(rows[row + 1] - at, STAGING_BYTES - held) : rows[row] - at;
        const step = Math.min(bytes.length - taken, limit);
        if (inside) {
          staging.set(bytes.subarray(taken, taken + step), held);
          held += step;
        }
        at += step;
        taken += step;
        if (inside && (held === STAGING_BYTES || at === rows[row + 1])) {
          row = this.#write(row, end, at - held, staging, held);
          held = 0;
        }
      }
      if (this.backlog >= BACKLOG_BYTES) await this.#drain();
    }
    if (row < end) {
      throw fault(
        "SourceError",
        `${shard.name}: ended at byte ${number(at)} of ${number(stop)}. The file is cut short; download it again.`,
      );
    }
  }

  /** Write `held` bytes that begin at byte `from` of the shard to each row of the range; the row to go on with. */
  #write(row, end, from, staging, held) {
    const { rows, stream } = this;
    this.halt.check();
    const padded = (held + 3) & ~3;
    staging.fill(0, held, padded);
    const bytes = staging.subarray(0, padded);
    const start = rows[row];
    let next = row;
    for (; next < end && rows[next] === start; next += ROW_COLUMNS) {
      stream.write(rows[next + 2], rows[next + 3], rows[next + 4] + from - start, bytes);
    }
    this.bytesDone += held;
    this.backlog += held;
    this.item = rows[row + 5];
    return from + held === rows[row + 1] ? next : row;
  }

  /** Wait until the GPU has what was written, so that copies do not pile up. */
  async #drain() {
    this.drained ??= Promise.resolve(this.stream.synchronize?.()).finally(() => (this.drained = null));
    this.backlog = 0;
    await this.drained;
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

function joined(pieces) {
  if (pieces.length === 1) return pieces[0];
  const all = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
