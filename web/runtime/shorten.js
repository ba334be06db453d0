// WGSL without what no launch runs: branches that constants of the module decide, and functions that nobody calls then.
//
// Compilers remove both, but a browser reads all of a text first, on the one thread that also submits, and drivers inline
// every function that is called anywhere, which is most of their time for a kernel with many variants. Lines keep their
// numbers.

const BLANK = " \t\n";

/** A text that does the same. What is not plain stays as it is. */
export function shortened(source) {
  if (/\/\*|[\r\u0085\u2028\u2029]/.test(source)) return source; // comments that nest, and other ends of lines
  const text = source.replace(/\/\/[^\n]*/g, " ");
  const count = (bracket) => text.split(bracket).length;
  // The compiler says best what is wrong with such a text.
  if (count("{") !== count("}") || count("(") !== count(")")) return source;
  return withoutUnusedFunctions(withoutDeadBranches(text));
}

/** The text, which has no comments, without functions that the entry points do not reach. */
function withoutUnusedFunctions(text) {
  const functions = new Map();
  const ranges = [];
  for (const { index, 1: name } of text.matchAll(/^fn (\w+)/gm)) {
    // What has attributes, as entry points do, stays.
    const before = lastBefore(text, index);
    if (before >= 0 && text[before] !== ";" && text[before] !== "}") continue;
    const end = matching(text, text.indexOf("{", index), "{", "}") + 1;
    functions.set(name, text.slice(index + 3 + name.length, end));
    ranges.push({ name, range: [index, end] });
  }
  if (functions.size === 0) return text;
  const left = new Map(functions);
  const look = (part) => {
    for (const [name] of part.matchAll(/[A-Za-z_]\w*/g)) {
      const called = left.get(name);
      if (called === undefined) continue;
      left.delete(name);
      look(called);
    }
  };
  look(without(text, ranges.map(({ range }) => range)));
  return without(text, ranges.filter(({ name }) => left.has(name)).map(({ range }) => range));
}

/** The text, which has no comments, without branches that are never taken. */
function withoutDeadBranches(given) {
  const constants = constantsOf(given);
  if (constants.size === 0) return given;
  const known = new RegExp(`\\b(?:true|false|${[...constants.keys()].join("|")})\\b`);
  const next = /\bif\s*\(/g;
  let text = given;
  for (let found = next.exec(text); found !== null; found = next.exec(text)) {
    const { index } = found;
    const open = index + found[0].length - 1;
    const close = matching(text, open, "(", ")");
    const block = firstBehind(text, close + 1);
    // Only a statement by itself whose whole condition is in the brackets: no `break if`, no attribute before.
    const isElse = hasWord(text, lastBefore(text, index), "else");
    if (text[block] !== "{" || !(isElse || "{};".includes(text[lastBefore(text, index)]))) continue;
    const condition = text.slice(open + 1, close);
    const value = known.test(condition) ? valueOf(condition, constants) : undefined;
    if (typeof value !== "boolean") continue;
    const end = matching(text, block, "{", "}") + 1;
    const after = firstBehind(text, end);
    const hasElse = text.startsWith("else", after) && !/\w/.test(text[after + 4]);
    const cuts = [];
    if (value) {
      const last = hasElse ? endOfElse(text, after + 4) : end;
      if (last < 0) continue;
      cuts.push([index, block], [end, last]); // a block of its own stays, or that of an else
    } else if (hasElse) {
      cuts.push([index, firstBehind(text, after + 4)]); // what follows the else stays, behind an else before if there is one
    } else {
      cuts.push([isElse ? lastBefore(text, index) - 3 : index, end]);
    }
    text = without(text, cuts);
    next.lastIndex = isElse ? cuts[0][0] : index;
  }
  return text;
}

/** Where the block of an else that begins here ends, with all that follow it; below zero where that is not plain. */
function endOfElse(text, begin) {
  for (let at = firstBehind(text, begin); ; ) {
    const isIf = text.startsWith("if", at) && !/\w/.test(text[at + 2]);
    let block = at;
    if (isIf) {
      const open = firstBehind(text, at + 2);
      if (text[open] !== "(") return -1;
      block = firstBehind(text, matching(text, open, "(", ")") + 1);
    }
    if (text[block] !== "{") return -1;
    const end = matching(text, block, "{", "}") + 1;
    const after = firstBehind(text, end);
    if (!isIf || !text.startsWith("else", after) || /\w/.test(text[after + 4])) return end;
    at = firstBehind(text, after + 4);
  }
}

/** The place of the last character before `at` that is no blank, or -1. */
function lastBefore(text, at) {
  let place = at - 1;
  while (place >= 0 && BLANK.includes(text[place])) place--;
  return place;
}

/** The place of the first one from `at` on. */
function firstBehind(text, at) {
  let place = at;
  while (place < text.length && BLANK.includes(text[place])) place++;
  return place;
}

/** Whether a word ends at this place. */
function hasWord(text, end, word) {
  const begin = end + 1 - word.length;
  return begin >= 0 && text.startsWith(word, begin) && !/\w/.test(text[begin - 1] ?? "");
}

/** The place of the bracket that closes the one at `open`. */
function matching(text, open, opening, closing) {
  let depth = 1;
  let at = open;
  while (depth > 0) {
    const end = text.indexOf(closing, at + 1);
    if (end < 0) return text.length; // the compiler says what is wrong with such a text
    const next = text.indexOf(opening, at + 1);
    at = next >= 0 && next < end ? next : end;
    depth += at === end ? -1 : 1;
  }
  return at;
}

/** The text without some ranges, in the order of their beginnings, which may lie in each other. Their line ends stay. */
function without(text, ranges) {
  let made = "";
  let from = 0;
  for (const [begin, end] of ranges) {
    if (end <= from) continue;
    if (begin > from) made += text.slice(from, begin);
    made += text.slice(Math.max(begin, from), end).replace(/[^\n]+/g, "");
    from = end;
  }
  return made + text.slice(from);
}

/** Integers, booleans and literals of floats of the module by name, but for names that anything else declares, too. */
function constantsOf(text) {
  const constants = new Map();
  const others = new Set([...text.matchAll(/(?<!const\s+)\b(\w+)\s*:|\b(?:let|var)\b\s*(?:<[^>]*>)?\s*(\w+)/g)].map((m) => m[1] ?? m[2]));
  const declared = [];
  let depth = 0;
  for (const [word, name, type, expression] of text.matchAll(/[{}]|\bconst\s+(\w+)\s*(?::\s*([\w<>]+)\s*)?=\s*([^;]+);/g)) {
    if (word === "{") depth++;
    else if (word === "}") depth--;
    else if (depth > 0) others.add(name);
    else declared.push([name, type ?? "", expression]);
  }
  for (const [name, type, expression] of declared) {
    if (others.has(name)) continue;
    let value = valueOf(expression, constants);
    if (type.startsWith("f") && typeof value === "number") value = undefined;
    if (value !== undefined) constants.set(name, value);
  }
  return constants;
}

/** A condition or a number: a boolean, an integer that is not negative, a Float, or undefined where it is not known. */
function valueOf(text, constants) {
  for (const [operator, decisive] of [["||", true], ["&&", false]]) {
    const parts = split(text, operator);
    if (parts.length === 1) continue;
    const values = parts.map((part) => valueOf(part, constants));
    const at = values.indexOf(decisive);
    // What stands before the one that decides runs; a call may have effects.
    if (at >= 0 && !parts.slice(0, at).some((part) => /\w\s*\(/.test(part))) return decisive;
    if (at >= 0) return undefined;
    return values.every((value) => value === !decisive) ? !decisive : undefined;
  }
  return new Arithmetic(text, constants).value();
}

/** The parts between operators that stand in no bracket. */
function split(text, operator) {
  const parts = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    if ("([".includes(text[at])) depth++;
    else if (")]".includes(text[at])) depth--;
    else if (depth === 0 && text.startsWith(operator, at)) {
      parts.push(text.slice(from, at));
      from = at + operator.length;
      at = from - 1;
    }
  }
  return [...parts, text.slice(from)];
}

const PRECEDENCE = { "==": 1, "!=": 1, "<": 1, "<=": 1, ">": 1, ">=": 1, "+": 2, "-": 2, "*": 3, "/": 3, "%": 3 };
const OPERATIONS = {
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => Math.trunc(a / b),
  "%": (a, b) => a % b,
  min: Math.min,
  max: Math.max,
  select: (no, yes, which) => (which ? yes : no),
};

/** A literal of a float, which can be compared with another. */
class Float {
  constructor(value) {
    this.value = value;
  }
}

/** Numbers, names of constants, comparisons and functions of integers; undefined for anything else. */
class Arithmetic {
  constructor(text, constants) {
    this.text = text;
    this.constants = constants;
    this.token = /\s*(?:(\d+(?:\.\d+)?)[ui]?(?![\w.])|([A-Za-z_]\w*)|([<>=!]=|[-+*/%<>!(),])|$)/y;
  }

  next() {
    const found = this.token.exec(this.text);
    if (found === null) throw new Unknown();
    this.number = found[1];
    this.name = found[2];
    this.sign = found[3];
  }

  expect(sign) {
    if (this.sign !== sign) throw new Unknown();
    this.next();
  }

  value() {
    try {
      this.next();
      const value = this.binary(1);
      return this.number ?? this.name ?? this.sign ? undefined : value;
    } catch (error) {
      if (error instanceof Unknown) return undefined;
      throw error;
    }
  }

  binary(least) {
    let left = this.primary();
    while (PRECEDENCE[this.sign] >= least) {
      const sign = this.sign;
      this.next();
      const right = this.binary(PRECEDENCE[sign] + 1);
      const are = [left, right].filter((value) => value instanceof Float).length;
      if (are === 1 || (are === 2 && PRECEDENCE[sign] > 1)) throw new Unknown();
      left = checked(are === 2 ? OPERATIONS[sign](left.value, right.value) : OPERATIONS[sign](left, right));
    }
    return left;
  }

  primary() {
    const { number, name, sign } = this;
    this.next();
    if (number?.includes(".")) return new Float(Number(number));
    if (number !== undefined) return checked(Number(number));
    if (sign === "(") {
      const value = this.binary(1);
      this.expect(")");
      return value;
    }
    if (sign === "!") {
      const value = this.primary();
      if (typeof value !== "boolean") throw new Unknown();
      return !value;
    }
    if (name === "true" || name === "false") return name === "true";
    if (name in OPERATIONS && this.sign === "(") {
      this.next();
      const values = [this.binary(1)];
      while (this.sign === ",") {
        this.next();
        values.push(this.binary(1));
      }
      this.expect(")");
      if (values.some((value) => value instanceof Float)) throw new Unknown();
      return checked(OPERATIONS[name](...values));
    }
    if (name !== undefined && this.constants.has(name)) return this.constants.get(name);
    throw new Unknown();
  }
}

/** What cannot be worked out here is left to the compiler. */
class Unknown extends Error {}

/** Integers of WGSL wrap, those of JavaScript do not: what is no plain count is unknown. */
function checked(value) {
  if (typeof value === "boolean" || (Number.isSafeInteger(value) && value >= 0 && value < 2 ** 31)) return value;
  throw new Unknown();
}
