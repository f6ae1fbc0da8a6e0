/** What is collected while a document is read: its faults and warnings, and its steps by position. */
import { maxFaults } from '../../documents/faults.ts';
import type { Fault } from '../../errors.ts';
import { formatPath, type PathPart } from '../../kernel/text/path.ts';
import {
  type Compiled,
  type CompiledOrFaults,
  compileExpression,
  compileValue,
  hasExpression,
} from '../expression/expression.ts';
import { isList, isObject, type Json } from '../json.ts';
import type { SequenceStep, Step } from './step.ts';

/** Where a step is, and what its expressions may name. */
export interface Place {
  readonly path: readonly PathPart[];
  /** The position in the tree. */
  readonly at: string;
  readonly names: ReadonlySet<string>;
  /** The tags of the loops around it; null for a loop without a tag. The innermost is last. */
  readonly loops: readonly (string | null)[];
}

/** Reads lists of steps inside a step. */
export interface BlockReader {
  readonly reading: Reading;
  /** The children of a step: one for each entry of a list. */
  steps(value: unknown, place: Place): Step[];
  /** A list of steps as one child. */
  block(value: unknown, place: Place): SequenceStep;
}

const never: Compiled = { evaluate: () => null, reads: new Set() };

/** Characters of all expressions of a document. A conductor compiles them when it loads the flow: 256 Ki take 70 ms and 20 MB. */
const maxExpressionChars = 256 * 1024;

export class Reading {
  #expressionChars = 0;
  readonly faults: Fault[] = [];
  readonly warnings: Fault[] = [];
  readonly byPosition = new Map<string, Step>();

  fault(path: readonly PathPart[], message: string): void {
    if (this.faults.length <= maxFaults) this.faults.push({ path: formatPath(path), message });
  }

  /** Faults of a value at a path, whose own paths begin there. */
  faultsIn(path: readonly PathPart[], faults: readonly Fault[]): void {
    const outer = formatPath(path);
    for (const { path: inner, message } of faults) {
      const separator = inner === '' || inner.startsWith('[') || outer === '' ? '' : '.';
      if (this.faults.length <= maxFaults) this.faults.push({ path: `${outer}${separator}${inner}`, message });
    }
  }

  warn(path: string, message: string): void {
    if (this.warnings.length < maxFaults) this.warnings.push({ path, message });
  }

  /** A condition, or another expression that needs no `$(…)`. Values other than texts stand for themselves. */
  expression(value: unknown, place: Place, path: readonly PathPart[]): Compiled {
    if (typeof value === 'string' && !hasExpression(value)) {
      if (!this.#mayCompile(value.length, path)) return never;
      return this.#checked(compileExpression(value, place.names), path);
    }
    return this.value(value, place, path);
  }

  /** Any JSON, with `$(…)` in its texts. */
  value(value: unknown, place: Place, path: readonly PathPart[]): Compiled {
    // the document is plain JSON: that was checked before it is read
    const json = (value ?? null) as Json;
    if (!this.#mayCompile(expressionChars(json), path)) return never;
    return this.#checked(compileValue(json, place.names), path);
  }

  #mayCompile(chars: number, path: readonly PathPart[]): boolean {
    const before = this.#expressionChars;
    this.#expressionChars += chars;
    if (this.#expressionChars <= maxExpressionChars) return true;
    // the first one only
    if (before <= maxExpressionChars)
      this.fault(path, `with the expressions before it, has more than ${maxExpressionChars} characters of expressions`);
    return false;
  }

  #checked(result: CompiledOrFaults, path: readonly PathPart[]): Compiled {
    if (result.ok) return result.compiled;
    for (const message of result.faults) this.fault(path, message);
    return never;
  }
}

/** Of the texts that hold expressions. */
function expressionChars(value: Json): number {
  let chars = 0;
  const stack: Json[] = [value];
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    if (typeof top === 'string') chars += hasExpression(top) ? top.length : 0;
    else if (isList(top)) stack.push(...top);
    else if (isObject(top)) stack.push(...Object.values(top));
  }
  return chars;
}
