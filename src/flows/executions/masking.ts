/** Masks the values of sealed fields wherever people see the state or the history of an execution. */
import { isList, isObject, type Json, type JsonObject, sizeOf } from '../json.ts';
import type { Flow } from '../language/step.ts';

export const mask = '•••';

/** Shorter texts, and smaller numbers, occur by chance: they are masked only at the places of sealed fields. */
const minSecretChars = 4;
const minSecretNumber = 1_000;

/** An execution, or a value of it, as people may see it. */
export function maskSealed<T>(flow: Pick<Flow, 'sealed'>, value: T): T {
  return maskerOf(flow, [value])(value);
}

/**
 * Replaces the values of sealed fields in any value that may hold some: a state, a delta, an input. They are found by their path inside
 * any object, because frames, compensations and inputs hold copies of fields, and by their value, because tasks get them under other
 * names. `sources`: where the fields are, as a delta holds only those that it changes.
 */
export function maskerOf(flow: Pick<Flow, 'sealed'>, sources: readonly unknown[]): <T>(value: T) => T {
  if (flow.sealed.length === 0) return (value) => value;
  const paths = flow.sealed.map((path) => path.replace(/^f\./, '').split('.'));
  const secrets = new Set<string | number>();
  for (const source of sources) collectSecrets(source as Json, paths, secrets);
  const texts = [...new Set([...secrets].flatMap(writtenForms))];
  return <T>(value: T) => {
    const isCostly = texts.length * (sizeOf(value as Json, maxSearches) / charsOfSearch) > maxSearches;
    const maskText = isCostly ? () => mask : (text: string) => replaceAll(text, texts);
    return new Masking(paths, secrets, maskText).mask(value as Json) as T;
  };
}

/** A search for one secret in so many characters counts as one. With more searches than that, every text is masked as a whole. */
const charsOfSearch = 32;
const maxSearches = 1_000_000;

/** As it is, and inside of JSON. */
function writtenForms(secret: string | number): string[] {
  return [String(secret), JSON.stringify(String(secret)).slice(1, -1)];
}

function replaceAll(text: string, secrets: readonly string[]): string {
  return secrets.reduce((left, secret) => left.replaceAll(secret, mask), text);
}

type Paths = readonly (readonly string[])[];

function collectSecrets(value: Json, paths: Paths, secrets: Set<string | number>): void {
  if (isList(value)) for (const item of value) collectSecrets(item, paths, secrets);
  if (!isObject(value)) return;
  for (const path of paths) for (const scalar of scalarsOf(valueAt(value, path))) secrets.add(scalar);
  for (const inner of Object.values(value)) collectSecrets(inner, paths, secrets);
}

function valueAt(object: JsonObject, path: readonly string[]): Json {
  let value: Json = object;
  for (const key of path) {
    if (!isObject(value) || !Object.hasOwn(value, key)) return null;
    value = value[key] ?? null;
  }
  return value;
}

function scalarsOf(value: Json): (string | number)[] {
  if (typeof value === 'string') return value.length >= minSecretChars && value !== mask ? [value] : [];
  if (typeof value === 'number') return Math.abs(value) >= minSecretNumber ? [value] : [];
  if (isList(value)) return value.flatMap(scalarsOf);
  return isObject(value) ? Object.values(value).flatMap(scalarsOf) : [];
}

class Masking {
  readonly #paths: Paths;
  readonly #secrets: ReadonlySet<string | number>;
  readonly #maskText: (text: string) => string;

  constructor(paths: Paths, secrets: ReadonlySet<string | number>, maskText: (text: string) => string) {
    this.#paths = paths;
    this.#secrets = secrets;
    this.#maskText = maskText;
  }

  mask(value: Json): Json {
    if (isList(value)) return value.map((item) => this.mask(item));
    if (isObject(value)) {
      const masked = this.#paths.reduce<JsonObject>(maskPath, value);
      return Object.fromEntries(Object.entries(masked).map(([key, item]) => [key, this.mask(item)]));
    }
    if (typeof value === 'number') return this.#secrets.has(value) ? mask : value;
    return typeof value === 'string' ? this.#maskText(value) : value;
  }
}

/** The object with the value at a path replaced, if it has one. */
function maskPath(object: JsonObject, [first = '', ...rest]: readonly string[]): JsonObject {
  if (!Object.hasOwn(object, first)) return object;
  const inner = object[first] ?? null;
  if (rest.length === 0) return { ...object, [first]: mask };
  return isObject(inner) ? { ...object, [first]: maskPath(inner, rest) } : object;
}
