// Constants of web/runtime/commands.js, and what a walk by its lengths finds in the windows that stdin brings.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const commands = await import(pathToFileURL(process.argv[2]));
const { CODE_BITS, CODE_MASK, OPERANDS, RUN, commandLength } = commands;
const { windows, launches } = JSON.parse(readFileSync(0, "utf8"));

/** Code, place, slots, numbers and data of each command. */
function walk(words) {
  const found = [];
  for (let at = 0, end; at < words.length; at = end) {
    const code = words[at] & CODE_MASK;
    const payload = words[at] >>> CODE_BITS;
    end = at + commandLength(words, at, launches);
    const { slots, numbers } = code === RUN ? { slots: launches[payload].count, numbers: 0 } : OPERANDS[code];
    const first = at + 1 + slots;
    found.push([
      code,
      at,
      [...(code === RUN ? [] : [payload]), ...words.slice(at + 1, first)],
      words.slice(first, first + numbers),
      words.slice(first + numbers, end),
    ]);
  }
  return found;
}

const constants = Object.entries(commands).filter(([, value]) => typeof value !== "function");
console.log(JSON.stringify({ constants: Object.fromEntries(constants), walks: windows.map(walk) }));
