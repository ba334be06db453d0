// The commands of a window: codes, operands, lengths, names. pkg/pellucid/device/commands.py says the same.

export const RUN = 0;
export const ALLOC = 1;
export const FREE = 2;
export const UPLOAD = 3;
export const COPY = 4;
export const CODE_BITS = 3;
export const STATUS_SLOT = 0;
export const STATUS_BYTES = 64;

export const CODE_MASK = (1 << CODE_BITS) - 1;

// Words behind the first, by code: slots, then numbers, the last of them a size. Those of a run are its launch's.
export const OPERANDS = {
  [ALLOC]: { slots: 0, numbers: 1 },
  [FREE]: { slots: 0, numbers: 0 },
  [UPLOAD]: { slots: 0, numbers: 2 },
  [COPY]: { slots: 1, numbers: 3 },
};

// Words of each, without data.
export const LENGTHS = Object.fromEntries(
  Object.entries(OPERANDS).map(([code, { slots, numbers }]) => [code, 1 + slots + numbers]),
);

const NAMES = { [ALLOC]: "alloc", [FREE]: "free", [UPLOAD]: "upload", [COPY]: "copy" };

/** Words that hold so many bytes. */
export function dataLength(nbytes) {
  return Math.ceil(nbytes / 4);
}

/** Words of the command at `at`; a command that cannot be measured takes the rest of the window with it. */
export function commandLength(words, at, launches) {
  const code = words[at] & CODE_MASK;
  if (code === RUN) {
    const launch = launches[words[at] >>> CODE_BITS];
    return launch === undefined ? words.length : 1 + launch.count + launch.patches.length;
  }
  const length = LENGTHS[code] ?? words.length;
  return code === UPLOAD ? length + dataLength(words[at + length - 1]) : length;
}

/** What an error about the command at `at` begins with: the label of its kernel, or what it does. */
export function commandName(words, at, launches) {
  const code = words[at] & CODE_MASK;
  const payload = words[at] >>> CODE_BITS;
  if (code !== RUN) return NAMES[code] ?? `record ${code}`;
  return launches[payload]?.label ?? `launch ${payload} was never registered`;
}
