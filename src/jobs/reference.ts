/**
 * References between triggers and tasks: `[project/][job/](task|trigger)/name[@offset]`.
 *
 * Two parts name something in the same job, three in another job of the same project, four in another project. The
 * keyword's position decides, so a job may be called `task`. The offset is a positive duration: the child's instant is the
 * parent's plus the offset. (Waterwheel allowed only letters, digits, `_` and spaces in a reference. Here a reference may
 * use every valid name.)
 */
import { formatDuration } from '../kernel/text/duration.ts';
import { nameFault } from '../documents/name.ts';
import { type Read, readSpan } from '../documents/values.ts';

export interface Reference {
  /** null: the project of the document. */
  readonly project: string | null;
  /** null: the job of the document. */
  readonly job: string | null;
  readonly kind: 'task' | 'trigger';
  readonly name: string;
  /** 0: none. */
  readonly offsetMs: number;
}

const shape = 'write it like task/name, trigger/name, job/task/name or project/job/task/name, with @1d for an offset';

export function parseReference(text: string): Read<Reference> {
  const [path = '', offset, ...more] = text.split('@');
  if (more.length > 0) return { ok: false, message: 'has more than one @' };
  const parts = path.split('/');
  const name = parts.at(-1);
  const kind = parts.at(-2);
  if (name === undefined || (kind !== 'task' && kind !== 'trigger') || parts.length > 4) {
    return { ok: false, message: `is not a reference; ${shape}` };
  }
  const owners = parts.slice(0, -2);
  for (const part of [...owners, name]) {
    const fault = nameFault(part);
    if (fault !== undefined) return { ok: false, message: `has a name in it (${JSON.stringify(part)}) that ${fault}` };
  }
  const read = offset === undefined ? { ok: true as const, value: 0 } : readSpan(offset);
  if (!read.ok) return { ok: false, message: `has an offset after the @ that ${read.message}` };
  const job = owners.at(-1) ?? null;
  const project = owners.at(-2) ?? null;
  return { ok: true, value: { project, job, kind, name, offsetMs: read.value } };
}

/** The shortest text that `parseReference` reads back as the same reference. */
export function formatReference(reference: Reference): string {
  const { project, job, kind, name, offsetMs } = reference;
  const owners = job === null ? [] : project === null ? [job] : [project, job];
  const offset = offsetMs === 0 ? '' : `@${formatDuration(offsetMs)}`;
  return `${[...owners, kind, name].join('/')}${offset}`;
}
