/**
 * Expressions in flow documents: `f.amount > 100`, and texts that hold some: `Order $(f.id) of $(f.customer)`.
 *
 * A text that is one `$(…)` as a whole has the value of the expression, whatever its type. Otherwise its values become text.
 * `$$(` stands for a literal `$(`.
 */
import { Environment, ParseError } from '@marcbachmann/cel-js';
import { isList, isObject, type Json } from '../json.ts';
import { type Compilation, compileNode, type Evaluate, type ExpressionFault, type Scope } from './compile.ts';
import { checkChars, Fuel, toJson, toText, type Value } from './values.ts';

/** The work that one evaluation may do, of all expressions of a value together. */
export const fuelUnits = 100_000;
const maxExpressionChars = 4_000;

const parser = new Environment({
  enableOptionalTypes: true,
  limits: { maxAstNodes: 1_000, maxDepth: 60, maxListElements: 500, maxMapEntries: 500 },
});

/** An expression, or a value with expressions in it. */
export interface Compiled {
  /** `fuel`: what is left for it, if that is less than usual. */
  evaluate(scope: Scope, fuel?: Fuel): Json;
  /** The variables that it reads, such as `f.order`, or `f` for all fields. */
  readonly reads: ReadonlySet<string>;
}

export type CompiledOrFaults =
  | { readonly ok: true; readonly compiled: Compiled }
  | { readonly ok: false; readonly faults: readonly string[] };

interface Part {
  readonly literal: string;
  /** The expression after the literal text, and where it begins. */
  readonly expression: string | undefined;
}

function parseExpression(source: string, unit: Compilation): Evaluate {
  if (source.length > maxExpressionChars) {
    unit.faults.push({ message: `has more than ${maxExpressionChars} characters in an expression`, at: 0 });
    return () => null;
  }
  try {
    return compileNode(parser.parse(source).ast, unit);
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    unit.faults.push({ message: describeParseError(error), at: error.range?.start ?? 0 });
    return () => null;
  }
}

function describeParseError(error: ParseError): string {
  const summary = error.summary.replace('EOF', 'the end');
  return `is not an expression: ${summary.charAt(0).toLowerCase()}${summary.slice(1)}`;
}

function newUnit(names: ReadonlySet<string>): Compilation {
  return { names, faults: [], reads: new Set(), locals: [] };
}

interface Evaluation {
  readonly scope: Scope;
  readonly fuel: Fuel;
}

function run(evaluate: Evaluate, { scope, fuel }: Evaluation): Value {
  return evaluate({ scope, fuel, locals: [] });
}

function conclude(unit: Compilation, source: string, evaluate: (at: Evaluation) => Json): CompiledOrFaults {
  if (unit.faults.length > 0) return { ok: false, faults: unit.faults.map((fault) => describeFault(fault, source)) };
  const compiled: Compiled = {
    evaluate: (scope, fuel = new Fuel(fuelUnits)) => evaluate({ scope, fuel }),
    reads: unit.reads,
  };
  return { ok: true, compiled };
}

function describeFault({ message, at }: ExpressionFault, source: string): string {
  const near = source.slice(at, at + 20).trim();
  return near === '' ? message : `${message}, near ${JSON.stringify(near)}`;
}

/** A condition, a list or a value that is written as an expression without `$(…)`. */
export function compileExpression(source: string, names: ReadonlySet<string>): CompiledOrFaults {
  const unit = newUnit(names);
  const evaluate = parseExpression(source, unit);
  return conclude(unit, source, (at) => toJson(run(evaluate, at), at.fuel));
}

/** A JSON value whose texts may hold `$(…)`, at any depth. */
export function compileValue(value: Json, names: ReadonlySet<string>): CompiledOrFaults {
  const unit = newUnit(names);
  const evaluate = valueOf(value, unit);
  return conclude(unit, '', evaluate);
}

function valueOf(value: Json, unit: Compilation): (at: Evaluation) => Json {
  if (typeof value === 'string') return textOf(value, unit);
  if (isList(value)) {
    const items = value.map((item) => valueOf(item, unit));
    return (at) => items.map((item) => item(at));
  }
  if (isObject(value)) {
    const entries = Object.entries(value).map(([key, item]) => [key, valueOf(item, unit)] as const);
    return (at) => Object.fromEntries(entries.map(([key, item]) => [key, item(at)]));
  }
  return () => value;
}

function textOf(text: string, unit: Compilation): (at: Evaluation) => Json {
  const parts = splitText(text);
  if (parts === undefined) {
    unit.faults.push({ message: 'has $( without its closing parenthesis; write $$( for a literal $(', at: 0 });
    return () => null;
  }
  const compiled = parts.map(({ literal, expression }) => {
    const evaluate = expression === undefined ? undefined : parseInText(expression, unit);
    return { literal, evaluate };
  });
  const [first, second] = compiled;
  if (first?.literal === '' && first.evaluate !== undefined && (second === undefined || isEmpty(second))) {
    const { evaluate } = first;
    return (at) => toJson(run(evaluate, at), at.fuel);
  }
  if (compiled.every(({ evaluate }) => evaluate === undefined)) {
    const literal = compiled.map((part) => part.literal).join('');
    return () => literal;
  }
  return (at) => {
    let whole = '';
    for (const { literal, evaluate } of compiled) {
      whole += literal + (evaluate === undefined ? '' : toText(run(evaluate, at), at.fuel));
      checkChars(whole.length);
    }
    return whole;
  };
}

/** A shell's `$(date)` is the most frequent mistake. */
function parseInText(expression: string, unit: Compilation): Evaluate {
  const before = unit.faults.length;
  const evaluate = parseExpression(expression, unit);
  const added = unit.faults.splice(before);
  for (const { message, at } of added)
    unit.faults.push({
      message: `${describeFault({ message, at }, expression)}; write $$( for a literal $(`,
      at: Number.MAX_SAFE_INTEGER,
    });
  return evaluate;
}

function isEmpty({ literal, evaluate }: { literal: string; evaluate: Evaluate | undefined }): boolean {
  return literal === '' && evaluate === undefined;
}

/** Whether a text holds an expression. */
export function hasExpression(text: string): boolean {
  return /(^|[^$])\$\(/.test(text);
}

/** Splits a text at its expressions; undefined: one has no end. */
function splitText(text: string): Part[] | undefined {
  const parts: Part[] = [];
  let literal = '';
  for (let at = 0; at < text.length; ) {
    if (text.startsWith('$$(', at)) {
      literal += '$(';
      at += 3;
    } else if (text.startsWith('$(', at)) {
      const end = endOfExpression(text, at + 2);
      if (end === undefined) return undefined;
      parts.push({ literal, expression: text.slice(at + 2, end) });
      literal = '';
      at = end + 1;
    } else {
      literal += text[at];
      at += 1;
    }
  }
  return [...parts, { literal, expression: undefined }];
}

/** The position of the parenthesis that closes an expression. Parentheses inside quotes do not count. */
function endOfExpression(text: string, from: number): number | undefined {
  let depth = 0;
  let quote = '';
  for (let at = from; at < text.length; at++) {
    const character = text[at] ?? '';
    if (quote !== '') {
      if (character === '\\') at += 1;
      else if (character === quote) quote = '';
    } else if (character === '"' || character === "'") quote = character;
    else if ('([{'.includes(character)) depth += 1;
    else if (character === ')' && depth === 0) return at;
    else if (')]}'.includes(character)) depth -= 1;
  }
  return undefined;
}
