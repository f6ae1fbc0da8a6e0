/**
 * Checks objects of Kubernetes as its API server does before it stores them: known kinds, known fields, types, required fields.
 * test/fixtures/kubernetes-1.35.json is the OpenAPI description of release 1.35, for the kinds in deploy/kubernetes and without
 * texts: a name with `!` is required, `#name` refers to a definition, `[x]` is a list, `{"*": x}` a map.
 */
import { readFileSync } from 'node:fs';
import { isRecord } from '../../../src/kernel/text/path.ts';

type Shape = string | readonly [Shape] | { readonly [field: string]: Shape };

const schema = JSON.parse(readFileSync(new URL('../../fixtures/kubernetes-1.35.json', import.meta.url), 'utf8')) as {
  readonly kinds: Readonly<Record<string, string>>;
  readonly definitions: Readonly<Record<string, Shape>>;
};

const quantity = /^\d+(\.\d+)?(m|[kMGTPE]i?)?$/;

/** Each fault with its path; none for a valid object. */
export function faultsOfObject(object: unknown): string[] {
  if (!isRecord(object)) return ['not an object'];
  const kind = `${String(object['apiVersion'])}/${String(object['kind'])}`;
  const shape = schema.kinds[kind];
  return shape === undefined ? [`${kind}: unknown kind`] : faultsAt(object, shape, String(object['kind']));
}

function faultsAt(value: unknown, shape: Shape, path: string): string[] {
  if (typeof shape === 'string') {
    if (shape.startsWith('#')) return faultsAt(value, schema.definitions[shape.slice(1)] ?? 'unknown', path);
    return isScalar(value, shape) ? [] : [`${path}: must be ${shape}, is ${JSON.stringify(value)}`];
  }
  if (isList(shape)) {
    if (!Array.isArray(value)) return [`${path}: must be a list`];
    return value.flatMap((item: unknown, index) => faultsAt(item, shape[0], `${path}[${index}]`));
  }
  if (!isRecord(value)) return [`${path}: must be an object`];
  const missing = Object.keys(shape).filter((field) => field.endsWith('!') && !(field.slice(0, -1) in value));
  return [
    ...missing.map((field) => `${path}.${field.slice(0, -1)}: is missing`),
    ...Object.entries(value).flatMap(([field, item]) => {
      const of = shape['*'] ?? shape[field] ?? shape[`${field}!`];
      return of === undefined ? [`${path}.${field}: unknown field`] : faultsAt(item, of, `${path}.${field}`);
    }),
  ];
}

function isList(shape: Shape): shape is readonly [Shape] {
  return Array.isArray(shape);
}

function isScalar(value: unknown, type: string): boolean {
  if (type === 'any') return true;
  if (type === 'quantity') return quantity.test(String(value));
  return type.split('|').some((each) => (each === 'integer' ? Number.isInteger(value) : typeof value === each));
}
