/**
 * Compiles expressions of the Common Expression Language (CEL) to functions.
 *
 * A library parses the text. We evaluate the tree ourselves, for three reasons: numbers are JSON numbers and not 64-bit integers,
 * every step spends fuel, so that each evaluation ends, and nothing of the host can be reached (decision 0041).
 *
 * 1. Unknown variables, functions and methods are faults when the expression is compiled.
 * 2. A member that does not exist is an error, so that typing errors show. `has(f.x)` asks, and `f.?x.orValue(1)` has a default.
 * 3. `a || b` is true if either is, and `a && b` false if either is, even if the other one is an error.
 */
import type { ASTNode } from '@marcbachmann/cel-js';
import { didYouMean } from '../../kernel/text/suggest.ts';
import { functions, methods } from './functions.ts';
import { add, divide, multiply, negate, readIndex, readMember, remainder, subtract } from './operators.ts';
import {
  compare,
  equals,
  ExpressionError,
  type Fuel,
  isList,
  isMap,
  keysOf,
  Optional,
  typeOf,
  type Value,
} from './values.ts';

/** What an evaluation sees. */
export interface Scope {
  lookup(name: string, fuel: Fuel): Value;
}

interface Frame {
  readonly scope: Scope;
  readonly fuel: Fuel;
  /** The variables of macros such as `map`, from the outermost to the innermost. */
  readonly locals: Value[];
}

export type Evaluate = (frame: Frame) => Value;

export interface ExpressionFault {
  readonly message: string;
  /** The position in the text. */
  readonly at: number;
}

/** Collected while an expression is compiled. */
export interface Compilation {
  readonly names: ReadonlySet<string>;
  readonly faults: ExpressionFault[];
  /** The members of variables that it reads, such as `f.order`; a variable alone if it reads the whole. */
  readonly reads: Set<string>;
  readonly locals: string[];
}

export function compileNode(node: ASTNode, unit: Compilation): Evaluate {
  const evaluate = compilers(node, unit);
  return (frame) => {
    frame.fuel.spend(1);
    return evaluate(frame);
  };
}

function compilers(node: ASTNode, unit: Compilation): Evaluate {
  switch (node.op) {
    case 'value':
      return literal(node.args, node, unit);
    case 'id':
      return variable(node.args, node, unit);
    case '.':
    case '.?':
      return member(node.args[0], node.args[1], node, unit);
    case '[]':
    case '[?]':
      return index(node.args, node.op === '[?]', unit);
    case 'call':
      return call(node.args[0], node.args[1], node, unit);
    case 'rcall':
      return method(node.args, node, unit);
    case 'list':
      return list(node.args, unit);
    case 'map':
      return map(node.args, unit);
    case '?:':
      return choice(node.args, unit);
    case '||':
    case '&&':
      return logic(node.args, node.op === '||', unit);
    case '!_':
      return not(node.args, unit);
    case '-_': {
      const operand = compileNode(node.args, unit);
      return (frame) => negate(operand(frame));
    }
    case '==':
    case '!=':
    case 'in':
    case '+':
    case '-':
    case '*':
    case '/':
    case '%':
    case '<':
    case '<=':
    case '>':
    case '>=':
      return binary(node.op, node.args, unit);
    default:
      return node satisfies never;
  }
}

function fault(unit: Compilation, node: ASTNode, message: string): Evaluate {
  unit.faults.push({ message, at: node.start });
  return () => null;
}

function literal(value: unknown, node: ASTNode, unit: Compilation): Evaluate {
  const converted = typeof value === 'bigint' ? Number(value) : value;
  if (converted === null || ['boolean', 'number', 'string'].includes(typeof converted)) {
    const constant = converted as Value;
    return () => constant;
  }
  return fault(unit, node, 'has a literal that JSON cannot hold');
}

/** `member`: the only member of the variable that is read here. */
function variable(name: string, node: ASTNode, unit: Compilation, member?: string): Evaluate {
  const slot = unit.locals.lastIndexOf(name);
  if (slot >= 0) return ({ locals }) => locals[slot] ?? null;
  if (!unit.names.has(name)) {
    const hint = didYouMean(name, unit.names);
    return fault(unit, node, `names the unknown variable ${name}${hint}`);
  }
  unit.reads.add(member === undefined ? name : `${name}.${member}`);
  return ({ scope, fuel }) => scope.lookup(name, fuel);
}

function member(left: ASTNode, name: string, node: ASTNode, unit: Compilation): Evaluate {
  const isOptional = node.op === '.?';
  const object = compileOwner(left, name, unit);
  return (frame) => readMember(object(frame), name, isOptional);
}

/** The object of which one member is read. */
function compileOwner(node: ASTNode, member: string, unit: Compilation): Evaluate {
  return node.op === 'id' ? variable(node.args, node, unit, member) : compileNode(node, unit);
}

function index(args: readonly [ASTNode, ASTNode], isOptional: boolean, unit: Compilation): Evaluate {
  const object = compileNode(args[0], unit);
  const key = compileNode(args[1], unit);
  return (frame) => readIndex(object(frame), key(frame), { isOptional, fuel: frame.fuel });
}

function call(name: string, args: readonly ASTNode[], node: ASTNode, unit: Compilation): Evaluate {
  if (name === 'has') return has(args, node, unit);
  const known = functions.get(name);
  if (known === undefined)
    return fault(unit, node, `calls the unknown function ${name}${didYouMean(name, functions.keys())}`);
  if (args.length < known.least || args.length > known.most)
    return fault(unit, node, `gives ${name} ${args.length} arguments instead of ${amount(known.least, known.most)}`);
  const compiled = args.map((arg) => compileNode(arg, unit));
  return (frame) =>
    known.call(
      compiled.map((arg) => arg(frame)),
      frame.fuel,
    );
}

function amount(least: number, most: number): string {
  return least === most ? String(least) : `${least} to ${most}`;
}

/** Whether the last member of a path exists. */
function has(args: readonly ASTNode[], node: ASTNode, unit: Compilation): Evaluate {
  const [path] = args;
  if (args.length !== 1 || path?.op !== '.') return fault(unit, node, 'has(…) takes a path such as f.order');
  const [left, name] = path.args;
  const object = compileOwner(left, name, unit);
  return (frame) => {
    const value = object(frame);
    if (!isMap(value)) throw new ExpressionError(`has(…) looks into a ${typeOf(value)}, which has no members`);
    return Object.hasOwn(value, name);
  };
}

function method(
  [name, receiver, args]: readonly [string, ASTNode, readonly ASTNode[]],
  node: ASTNode,
  unit: Compilation,
): Evaluate {
  const macro = macros.get(name);
  if (macro !== undefined && macro.counts.includes(args.length)) return comprehension(macro, receiver, args, unit);
  const known = methods.get(name);
  if (known === undefined) {
    const hint = didYouMean(name, [...methods.keys(), ...macros.keys()]);
    return fault(unit, node, `calls the unknown method ${name}${hint}`);
  }
  if (args.length + 1 < known.least || args.length + 1 > known.most)
    return fault(
      unit,
      node,
      `gives ${name} ${args.length} arguments instead of ${amount(known.least - 1, known.most - 1)}`,
    );
  const compiled = [receiver, ...args].map((arg) => compileNode(arg, unit));
  return (frame) =>
    known.call(
      compiled.map((arg) => arg(frame)),
      frame.fuel,
    );
}

/** One pass over the items of a list, or the keys of a map. A body is evaluated with the item as the macro's variable. */
interface Macro {
  readonly counts: readonly number[];
  run(items: readonly Value[], bodies: readonly ((item: Value) => Value)[]): Value;
}

const macros = new Map<string, Macro>([
  ['map', { counts: [2, 3], run: mapItems }],
  ['filter', { counts: [2], run: (items, [test]) => items.filter((item) => isTrue(test?.(item), 'filter')) }],
  ['exists', { counts: [2], run: (items, [test]) => some(items, test, true) }],
  ['all', { counts: [2], run: (items, [test]) => !some(items, test, false) }],
  [
    'exists_one',
    {
      counts: [2],
      run: (items, [test]) => items.filter((item) => isTrue(test?.(item), 'exists_one')).length === 1,
    },
  ],
]);

function mapItems(items: readonly Value[], bodies: readonly ((item: Value) => Value)[]): Value {
  const [first, second] = bodies;
  if (second === undefined) return items.map((item) => first?.(item) ?? null);
  return items.filter((item) => isTrue(first?.(item), 'map')).map((item) => second(item));
}

/** Whether one item is `wanted`. An error of one item does not matter if another one is. */
function some(items: readonly Value[], test: ((item: Value) => Value) | undefined, wanted: boolean): boolean {
  let error: ExpressionError | undefined;
  for (const item of items) {
    try {
      if (isTrue(test?.(item), wanted ? 'exists' : 'all') === wanted) return true;
    } catch (caught) {
      const forgiven = forgivable(caught);
      error ??= forgiven;
    }
  }
  if (error !== undefined) throw error;
  return false;
}

/** An evaluation that has used up its fuel ends, whatever stands around it. */
function forgivable(error: unknown): ExpressionError {
  if (error instanceof ExpressionError && error.code === 'expression_error') return error;
  throw error;
}

function isTrue(value: Value | undefined, what: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new ExpressionError(`${what} needs true or false, not a ${typeOf(value ?? null)}`);
}

function comprehension(macro: Macro, receiver: ASTNode, args: readonly ASTNode[], unit: Compilation): Evaluate {
  const [name, ...bodies] = args;
  const range = compileNode(receiver, unit);
  // the parser accepts only a name here
  const slot = unit.locals.push(name?.op === 'id' ? name.args : '') - 1;
  const compiled = bodies.map((body) => compileNode(body, unit));
  unit.locals.pop();
  return (frame) => {
    const runs = compiled.map((body) => (item: Value) => {
      frame.fuel.spend(1);
      frame.locals[slot] = item;
      return body(frame);
    });
    return macro.run(itemsOf(range(frame), frame.fuel), runs);
  };
}

function itemsOf(value: Value, fuel: Fuel): readonly Value[] {
  if (isList(value)) return value;
  if (isMap(value)) return keysOf(value, fuel);
  throw new ExpressionError(`a ${typeOf(value)} has no items`);
}

function list(items: readonly ASTNode[], unit: Compilation): Evaluate {
  const compiled = items.map((item) => compileNode(item, unit));
  return (frame) => compiled.map((item) => item(frame));
}

function map(entries: readonly (readonly [ASTNode, ASTNode])[], unit: Compilation): Evaluate {
  const compiled = entries.map(([key, value]) => [compileNode(key, unit), compileNode(value, unit)] as const);
  return (frame) => Object.fromEntries(compiled.map(([key, value]) => [keyOf(key(frame)), value(frame)]));
}

function keyOf(value: Value): string {
  if (typeof value !== 'string') throw new ExpressionError(`a key of a map must be text, not a ${typeOf(value)}`);
  if (value === '__proto__') throw new ExpressionError('__proto__ is not a key that may be used');
  return value;
}

function choice([condition, yes, no]: readonly [ASTNode, ASTNode, ASTNode], unit: Compilation): Evaluate {
  const [test, first, second] = [compileNode(condition, unit), compileNode(yes, unit), compileNode(no, unit)];
  return (frame) => (isTrue(test(frame), 'a ? b : c') ? first(frame) : second(frame));
}

function logic([left, right]: readonly [ASTNode, ASTNode], decisive: boolean, unit: Compilation): Evaluate {
  const [first, second] = [compileNode(left, unit), compileNode(right, unit)];
  const what = decisive ? '||' : '&&';
  return (frame) => {
    let error: ExpressionError | undefined;
    try {
      if (isTrue(first(frame), what) === decisive) return decisive;
    } catch (caught) {
      error = forgivable(caught);
    }
    const other = isTrue(second(frame), what);
    if (other === decisive || error === undefined) return other;
    throw error;
  };
}

function not(operand: ASTNode, unit: Compilation): Evaluate {
  const compiled = compileNode(operand, unit);
  return (frame) => !isTrue(compiled(frame), '!');
}

type BinaryOperator = '!=' | '==' | 'in' | '+' | '-' | '*' | '/' | '%' | '<' | '<=' | '>' | '>=';

const binaries: Readonly<Record<BinaryOperator, (a: Value, b: Value, fuel: Fuel) => Value>> = {
  '==': equals,
  '!=': (a, b, fuel) => !equals(a, b, fuel),
  in: contains,
  '+': add,
  '-': subtract,
  '*': multiply,
  '/': divide,
  '%': remainder,
  '<': (a, b, fuel) => compare(a, b, fuel) < 0,
  '<=': (a, b, fuel) => compare(a, b, fuel) <= 0,
  '>': (a, b, fuel) => compare(a, b, fuel) > 0,
  '>=': (a, b, fuel) => compare(a, b, fuel) >= 0,
};

function binary(op: BinaryOperator, args: readonly [ASTNode, ASTNode], unit: Compilation): Evaluate {
  const apply = binaries[op];
  const [left, right] = [compileNode(args[0], unit), compileNode(args[1], unit)];
  return (frame) => apply(left(frame), right(frame), frame.fuel);
}

function contains(value: Value, range: Value, fuel: Fuel): boolean {
  if (isList(range)) return range.some((item) => equals(item, value, fuel));
  if (isMap(range)) {
    if (typeof value !== 'string') return false;
    fuel.spendText(value.length);
    return Object.hasOwn(range, value);
  }
  if (range instanceof Optional) throw new ExpressionError('end an optional value with .orValue(…) before `in`');
  throw new ExpressionError(`a ${typeOf(range)} has no items`);
}
