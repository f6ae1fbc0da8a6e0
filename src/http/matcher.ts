/** Finds the table entry for a method and path. Routes form a tree of path segments; fixed segments win over `{name}`. */
import { MillraceError } from '../errors.ts';
import type { EndpointKey } from './endpoint.ts';

export interface Match {
  readonly key: EndpointKey;
  readonly params: Record<string, string>;
}

interface Branch {
  readonly fixed: Map<string, Branch>;
  named: { readonly name: string; readonly branch: Branch } | undefined;
  readonly methods: Map<string, EndpointKey>;
}

const makeBranch = (): Branch => ({ fixed: new Map(), named: undefined, methods: new Map() });

/** Returns `undefined` if no entry has that path. Throws `method_not_allowed` if only the method is wrong. */
export function makeMatcher(keys: readonly EndpointKey[]): (method: string, path: string) => Match | undefined {
  const root = makeBranch();
  for (const key of keys) addRoute(root, key);
  return (method, path) => {
    const params: Record<string, string> = {};
    const end = walk(root, path.split('/').slice(1), params);
    if (end === undefined || end.methods.size === 0) return undefined;
    const key = end.methods.get(method === 'HEAD' ? 'GET' : method);
    if (key !== undefined) return { key, params };
    const known = [...end.methods.keys()].join(', ');
    throw new MillraceError('method_not_allowed', `this path takes ${known}`, { headers: { allow: known } });
  };
}

function addRoute(root: Branch, key: EndpointKey): void {
  const [method = '', path = ''] = key.split(' ');
  let at = root;
  for (const segment of path.split('/').slice(1)) {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    at = name === undefined ? fixedChild(at, segment) : namedChild(at, name);
  }
  at.methods.set(method, key);
}

function fixedChild(at: Branch, segment: string): Branch {
  const child = at.fixed.get(segment) ?? makeBranch();
  at.fixed.set(segment, child);
  return child;
}

function namedChild(at: Branch, name: string): Branch {
  at.named ??= { name, branch: makeBranch() };
  if (at.named.name !== name) throw new Error(`two names for one path segment: ${at.named.name} and ${name}`);
  return at.named.branch;
}

function walk(at: Branch, segments: readonly string[], params: Record<string, string>): Branch | undefined {
  const [segment, ...rest] = segments;
  if (segment === undefined) return at;
  const fixed = at.fixed.get(segment);
  const end = fixed && walk(fixed, rest, params);
  if (end && end.methods.size > 0) return end;
  if (!at.named || segment === '') return end;
  params[at.named.name] = decode(segment);
  return walk(at.named.branch, rest, params);
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new MillraceError('bad_request', 'the path is not valid percent-encoding');
  }
}
