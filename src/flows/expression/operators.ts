/** Arithmetic, and reading members, of expressions. */
import {
  brief,
  ExpressionError,
  finite,
  type Fuel,
  isList,
  isMap,
  moment,
  Optional,
  Span,
  typeOf,
  type Value,
} from './values.ts';

function undefinedFor(operator: string, a: Value, b: Value): never {
  throw new ExpressionError(`${typeOf(a)} ${operator} ${typeOf(b)} is not defined`);
}

export function add(a: Value, b: Value, fuel: Fuel): Value {
  if (typeof a === 'number' && typeof b === 'number') return finite(a + b, 'the sum');
  if (typeof a === 'string' && typeof b === 'string') {
    fuel.spendText(a.length + b.length);
    return a + b;
  }
  if (isList(a) && isList(b)) {
    fuel.spend(a.length + b.length);
    return [...a, ...b];
  }
  if (a instanceof Date && b instanceof Span) return moment(a.getTime() + b.ms);
  if (a instanceof Span && b instanceof Date) return moment(a.ms + b.getTime());
  if (a instanceof Span && b instanceof Span) return new Span(a.ms + b.ms);
  return undefinedFor('+', a, b);
}

export function subtract(a: Value, b: Value): Value {
  if (typeof a === 'number' && typeof b === 'number') return finite(a - b, 'the difference');
  if (a instanceof Date && b instanceof Date) return new Span(a.getTime() - b.getTime());
  if (a instanceof Date && b instanceof Span) return moment(a.getTime() - b.ms);
  if (a instanceof Span && b instanceof Span) return new Span(a.ms - b.ms);
  return undefinedFor('-', a, b);
}

export function multiply(a: Value, b: Value): Value {
  if (typeof a === 'number' && typeof b === 'number') return finite(a * b, 'the product');
  return undefinedFor('*', a, b);
}

export function divide(a: Value, b: Value): Value {
  if (typeof a !== 'number' || typeof b !== 'number') return undefinedFor('/', a, b);
  if (b === 0) throw new ExpressionError('a division by zero');
  return finite(a / b, 'the quotient');
}

export function remainder(a: Value, b: Value): Value {
  if (typeof a !== 'number' || typeof b !== 'number') return undefinedFor('%', a, b);
  if (b === 0) throw new ExpressionError('a division by zero');
  return finite(a % b, 'the remainder');
}

export function negate(value: Value): Value {
  if (typeof value === 'number') return finite(-value, 'the result');
  if (value instanceof Span) return new Span(-value.ms);
  throw new ExpressionError(`a ${typeOf(value)} cannot be negated`);
}

/** `f.name`, or `f.?name`, whose result is optional. A member of an optional value is optional, too. */
export function readMember(object: Value, name: string, isOptional: boolean): Value {
  if (object instanceof Optional)
    return object.value === undefined ? object : new Optional(findMember(object.value, name));
  const value = findMember(object, name);
  if (isOptional) return new Optional(value);
  if (value !== undefined) return value;
  if (isMap(object)) throw new ExpressionError(`there is no member ${name}`);
  throw new ExpressionError(`a ${typeOf(object)} has no member ${name}`);
}

interface IndexOptions {
  readonly isOptional: boolean;
  readonly fuel: Fuel;
}

export function readIndex(object: Value, key: Value, { isOptional, fuel }: IndexOptions): Value {
  if (typeof key === 'string') fuel.spendText(key.length);
  if (object instanceof Optional)
    return object.value === undefined ? object : new Optional(findIndex(object.value, key));
  const value = findIndex(object, key);
  if (isOptional) return new Optional(value);
  if (value === undefined) throw new ExpressionError(`there is no member ${brief(key)}`);
  return value;
}

function findMember(object: Value, name: string): Value | undefined {
  return isMap(object) && Object.hasOwn(object, name) ? object[name] : undefined;
}

function findIndex(object: Value, key: Value): Value | undefined {
  if (isList(object)) {
    if (typeof key !== 'number' || !Number.isInteger(key))
      throw new ExpressionError(`an index must be a whole number, not ${brief(key)}`);
    return key < 0 ? undefined : object[key];
  }
  if (isMap(object)) {
    if (typeof key !== 'string') throw new ExpressionError(`a key must be text, not a ${typeOf(key)}`);
    return findMember(object, key);
  }
  throw new ExpressionError(`a ${typeOf(object)} has no members`);
}
