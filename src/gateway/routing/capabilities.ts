/**
 * The optional groups of an engine, and the paths below which an engine with such a group serves it. A request for a tenant
 * whose engine lacks the group gets an answer that says so: a 404 would suggest a mistake in the path.
 */
import type { Engine } from '../../contract/engine.ts';
import { type ErrorCode, MillraceError } from '../../errors.ts';

type Group = 'bus' | 'flows';

const groups: Readonly<Record<Group, { readonly paths: RegExp; readonly code: ErrorCode; readonly title: string }>> = {
  // 503: publishers keep their events and repeat the request
  bus: { paths: /^\/(bus\/|api\/errands(\/|$))/, code: 'no_bus', title: 'no event bus' },
  flows: {
    paths: /^\/(api\/(flows|flow-schema|executions|workitems)|answers)(\/|$)/,
    code: 'not_supported',
    title: 'no flows',
  },
};

/** The group that serves a path; undefined: every engine serves it. */
export function groupOf(path: string): Group | undefined {
  if (groups.bus.paths.test(path)) return 'bus';
  return groups.flows.paths.test(path) ? 'flows' : undefined;
}

/** Returns the group. Throws if the engine of this tenant lacks it. */
export function requireGroup<G extends Group>(
  engine: Pick<Engine, Group | 'version'>,
  group: G,
  tenant: string,
): NonNullable<Engine[G]> {
  const found = engine[group];
  if (found !== undefined) return found;
  const { code, title } = groups[group];
  throw new MillraceError(code, `the engine of tenant ${tenant}, ${engine.version}, has ${title}`);
}
