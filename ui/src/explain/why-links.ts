/** Links from an explanation to the pages of what it mentions. */
import type { TenantAnswer } from '../client.ts';

export type Why = TenantAnswer<'GET /api/explain/run/{id}'>;
type Link = Why['chain'][number];

const pages: Readonly<Record<Link['what'], (id: string, job: string | null) => string | undefined>> = {
  run: (id) => `/runs/${id}`,
  token: (id, job) => {
    const instant = id.split('@')[1];
    return job === null || instant === undefined ? undefined : `/jobs/${job}?instant=${encodeURIComponent(instant)}`;
  },
  trigger: (_, job) => (job === null ? undefined : `/jobs/${job}/triggers`),
  backfill: (_, job) => (job === null ? undefined : `/jobs/${job}/backfills`),
  person: () => '/audit',
  execution: (id) => `/executions/${id}`,
  more: () => undefined,
};

/** `job` is the job that the explanation is about; a chain mostly mentions the same job. */
export function linkOf({ what, id }: Link, job: string | null): string | undefined {
  return id === null ? undefined : pages[what](id, job);
}

interface LabelledLink {
  readonly href: string;
  readonly label: string;
}

/** Fields of a reason's data that have a page. */
const named: readonly (readonly [name: string, label: string, page: (id: string) => string])[] = [
  ['run', 'That run', (id) => `/runs/${id}`],
  ['worker', 'That worker', (id) => `/workers/${id}`],
];

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function reasonLinks(data: Readonly<Record<string, unknown>>): readonly LabelledLink[] {
  return named.flatMap(([name, label, page]) => {
    const id = data[name];
    return typeof id === 'string' && uuid.test(id) ? [{ href: page(id), label }] : [];
  });
}
