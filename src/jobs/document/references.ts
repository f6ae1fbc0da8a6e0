/**
 * Resolves the references of a job document, and checks that those within the job lead to an existing trigger or task. The
 * server resolves references to other jobs (`apply.ts`).
 */
import type { Fault } from '../../errors.ts';
import type { EdgeKind, ParentReference } from '../definition.ts';
import { formatPath, type Records } from '../../kernel/text/path.ts';
import { parseReference, type Reference } from '../reference.ts';
import { nearest } from '../../kernel/text/suggest.ts';

/** The fields of a task that hold references, and the kind of edge from a task that is named there. */
export const edgeFields = [
  ['depends', 'success'],
  ['depends_failure', 'failure'],
  ['depends_done', 'done'],
] as const satisfies readonly (readonly [string, EdgeKind])[];

/** The names that a reference's missing parts stand for. */
export interface Home {
  readonly project: unknown;
  readonly name: unknown;
}

export function resolve(reference: Reference, home: Home): ParentReference {
  const project = reference.project ?? String(home.project);
  const job = reference.job ?? String(home.name);
  const local = reference.job === null || (job === home.name && project === home.project);
  return { local, project, job, kind: reference.kind, name: reference.name };
}

/** Maximum suggestions per document. Each compares a name with all others, so without a limit the cost would be quadratic. */
const maxSuggestions = 50;

const maxListedNames = 10;

type Names = Readonly<Record<'task' | 'trigger', ReadonlySet<string>>>;

export function checkReferences(
  document: Readonly<Record<string, unknown>>,
  triggers: Records,
  tasks: Records,
): Fault[] {
  const home = { project: document['project'], name: document['name'] };
  const names = { trigger: namesOf(triggers), task: namesOf(tasks) };
  const budget = { suggestions: maxSuggestions };
  return tasks.flatMap(([i, task]) =>
    edgeFields.flatMap(([field, kind]) =>
      checkList(task[field], { path: ['tasks', i, field], kind, home, names, budget }),
    ),
  );
}

function namesOf(records: Records): ReadonlySet<string> {
  return new Set(records.flatMap(([, { name }]) => (typeof name === 'string' ? [name] : [])));
}

interface Place {
  readonly path: readonly (string | number)[];
  readonly kind: EdgeKind;
  readonly home: Home;
  readonly names: Names;
  readonly budget: { suggestions: number };
}

function checkList(list: unknown, place: Place): Fault[] {
  if (!Array.isArray(list)) return [];
  const texts: readonly unknown[] = list;
  const seen = new Map<string, number>();
  return texts.flatMap((text, i) => {
    const parsed = typeof text === 'string' ? parseReference(text) : undefined;
    if (!parsed?.ok) return [];
    const parent = resolve(parsed.value, place.home);
    const key = JSON.stringify([parent, parsed.value.offsetMs]);
    const first = seen.get(key);
    if (first === undefined) seen.set(key, i);
    const message =
      parentFault(parent, place) ??
      (first === undefined ? undefined : `repeats ${String(place.path.at(-1))}[${first}]`);
    return message === undefined ? [] : [{ path: formatPath([...place.path, i]), message }];
  });
}

function parentFault(parent: ParentReference, { kind, names, path, budget }: Place): string | undefined {
  if (parent.kind === 'trigger' && kind !== 'success') {
    return `names a trigger, which only fires and never ends: only tasks are allowed in ${String(path.at(-1))}`;
  }
  if (!parent.local || names[parent.kind].has(parent.name)) return undefined;
  const more =
    budget.suggestions-- > 0 ? `${suggestion(parent, names)}; ${formatNames(parent.kind, names[parent.kind])}` : '';
  return `names the ${parent.kind} ${JSON.stringify(parent.name)}, which this job does not have${more}`;
}

function formatNames(kind: ParentReference['kind'], names: ReadonlySet<string>): string {
  if (names.size === 0) return `it has no ${kind}s`;
  const shown = [...names].slice(0, maxListedNames).map((name) => JSON.stringify(name));
  const rest = names.size > shown.length ? ` and ${names.size - shown.length} more` : '';
  return `it has ${shown.join(', ')}${rest}`;
}

function suggestion(parent: ParentReference, names: Names): string {
  const other = parent.kind === 'task' ? 'trigger' : 'task';
  if (names[other].has(parent.name)) return `; did you mean ${other}/${parent.name}?`;
  const found = nearest(parent.name, names[parent.kind]);
  return found === undefined ? '' : `; did you mean ${parent.kind}/${found}?`;
}
