/**
 * Regular expressions of RE2. A match takes a time in proportion to the text and to the size of the pattern, so both cost fuel, and
 * patterns are bounded before they are compiled: `\pL{999}` is short, and large.
 */
import { RE2JS } from 're2js';
import { ExpressionError, type Fuel } from './values.ts';

const limits = {
  /** Of a pattern as text. */
  chars: 1_000,
  /** Instructions of a compiled pattern: compiling 1,000 takes 4 ms. */
  size: 1_000,
  /** Compiled patterns that a process keeps. Each takes up to 100 KB. */
  kept: 200,
} as const;

/** Instructions that are executed for one unit of fuel, at 15 ns each in the worst case. */
const stepsOfUnit = 32;
/** Fuel for each instruction of a pattern that is compiled. */
const compileUnits = 10;

export function matchPattern(text: string, pattern: string, fuel: Fuel): boolean {
  const compiled = patternOf(pattern, fuel);
  fuel.spend(1 + (text.length * compiled.programSize()) / stepsOfUnit);
  return compiled.matcher(text).find();
}

const kept = new Map<string, RE2JS>();

/** The first use in an evaluation costs what compiling costs, whether it is kept or not: an evaluation is repeatable. */
function patternOf(source: string, fuel: Fuel): RE2JS {
  if (!fuel.patterns.has(source)) {
    const size = source.length > limits.chars ? Number.POSITIVE_INFINITY : estimateSize(source);
    if (size > limits.size) throw new ExpressionError(`matches: the pattern is too large, or repeats too often`);
    fuel.spend(compileUnits * size);
    fuel.patterns.add(source);
  }
  const known = kept.get(source) ?? compile(source);
  if (kept.size >= limits.kept && !kept.has(source)) kept.clear();
  kept.set(source, known);
  return known;
}

function compile(source: string): RE2JS {
  try {
    return RE2JS.compile(source);
  } catch (error) {
    throw new ExpressionError(`matches: ${error instanceof Error ? error.message : 'not a pattern'}`);
  }
}

/** An upper bound of the instructions, from groups and counted repetitions. Where the syntax is unclear it estimates more. */
export function estimateSize(source: string): number {
  /** Sizes of the groups that are open, the whole pattern first. */
  const open = [0];
  let last = 0;
  const add = (size: number): void => {
    last = size;
    open.push((open.pop() ?? 0) + size);
  };
  for (const [token] of source.matchAll(tokens)) {
    const repetition = /^\{(\d+)(?:,(\d*))?\}$/.exec(token);
    if (repetition !== null) {
      const times = Math.max(1, Number(repetition[1]), Number(repetition[2] ?? 0));
      // each may be left out
      const repeated = (last + 1) * times;
      open.push((open.pop() ?? 0) + repeated - last);
      last = repeated;
    } else if (token === '(') open.push(0);
    else if (token === ')') {
      add((open.pop() ?? 0) + 2);
    } else if (isOften(token)) open.push((open.pop() ?? 0) + 2);
    else add(1);
  }
  return open.reduce((sum, size) => sum + size, 4);
}

/** A counted repetition of it would repeat what stands before. */
function isOften(token: string): boolean {
  return token === '*' || token === '+' || token === '?';
}

/** A repetition, an escape with its braces, a class up to its first bracket, or one character. */
const tokens = /\{\d+(?:,\d*)?\}|\\[pPx]\{[^}]*\}|\\.|\[(?:\\.|[^\]\\])*\]|[^]/g;
