// The records of a window: codes, lengths, names. pkg/pellucid/device/host.py has the same numbers.

export const RUN = 0;
export const ALLOC = 1;
export const FREE = 2;
export const UPLOAD = 3;
export const COPY = 4;
export const CODE_BITS = 3;
export const STATUS_SLOT = 0;
export const STATUS_BYTES = 64;

export const CODE_MASK = (1 << CODE_BITS) - 1;

const NAMES = { [ALLOC]: "alloc", [FREE]: "free", [UPLOAD]: "upload", [COPY]: "copy" };

/** Words of the record at `at`; a record that cannot be measured takes the rest of the window with it. */
export function recordLength(words, at, launches) {
  switch (words[at] & CODE_MASK) {
    case RUN: {
      const launch = launches[words[at] >>> CODE_BITS];
      return launch === undefined ? words.length : 1 + launch.count + launch.patches.length;
    }
    case ALLOC:
      return 2;
    case FREE:
      return 1;
    case UPLOAD:
      return 3 + Math.ceil(words[at + 2] / 4);
    case COPY:
      return 5;
    default:
      return words.length;
  }
}

/** What an error about the record at `at` begins with: the label of its kernel, or what it does. */
export function recordName(words, at, launches) {
  const code = words[at] & CODE_MASK;
  const payload = words[at] >>> CODE_BITS;
  if (code !== RUN) return NAMES[code] ?? `record ${code}`;
  return launches[payload]?.label ?? `launch ${payload} was never registered`;
}
