/** The audit log as a table: one line per entry, with all details on demand. */
import { Link } from 'wouter';
import type { TenantAnswer } from '../client.ts';
import { formatInstant } from '../time/format.ts';
import { Age } from '../time/times.tsx';

type Entry = TenantAnswer<'GET /api/audit'>['items'][number];

interface Props {
  readonly entries: readonly Entry[];
  /** Shows only entries of this actor. */
  readonly choose: (actor: string) => void;
}

export function AuditTable({ entries, choose }: Props) {
  return (
    <table className="table audit-table">
      <thead>
        <tr>
          <th scope="col">When</th>
          <th scope="col">Who</th>
          <th scope="col">Did</th>
          <th scope="col">To</th>
          <th scope="col" className="wide">
            Details
          </th>
        </tr>
      </thead>
      <tbody>
        {groupEntries(entries).map(({ entry, more }) => (
          <Row key={entry.seq} entry={entry} more={more} choose={choose} />
        ))}
      </tbody>
    </table>
  );
}

interface Group {
  readonly entry: Entry;
  /** Further entries of the same type, actor and time. */
  readonly more: readonly Entry[];
}

/** Groups the entries of one action that affected many subjects. */
function groupEntries(entries: readonly Entry[]): readonly Group[] {
  const groups: Group[] = [];
  for (const entry of entries) {
    const last = groups.at(-1);
    const isSame = last?.entry.at === entry.at && last.entry.type === entry.type && last.entry.actor === entry.actor;
    if (isSame) groups.splice(-1, 1, { ...last, more: [...last.more, entry] });
    else groups.push({ entry, more: [] });
  }
  return groups;
}

function Row({ entry, more, choose }: Group & { readonly choose: Props['choose'] }) {
  const { at, actor, type } = entry;
  return (
    <tr>
      <td className="muted">
        <Age at={at} />
      </td>
      <td>
        {actor === null ? (
          '–'
        ) : (
          <button type="button" className="link-button" title="Show only their entries" onClick={() => choose(actor)}>
            {actor}
          </button>
        )}
      </td>
      <th scope="row">{type.replaceAll(/[._]/g, ' ')}</th>
      <td>
        <Subject entry={entry} />
        {more.length === 0 ? null : (
          <details className="audit-details">
            <summary>and {more.length} more</summary>
            <ul>
              {more.map((each) => (
                <li key={each.seq}>
                  <Subject entry={each} />
                </li>
              ))}
            </ul>
          </details>
        )}
      </td>
      <td className="wide">
        <Details body={entry.body} />
      </td>
    </tr>
  );
}

function Subject({ entry: { subject, name, page } }: { readonly entry: Entry }) {
  const label = name ?? subject?.slice(-12) ?? '–';
  const paths = {
    run: '/runs/',
    job: '/jobs/',
    project: '/projects/',
    subscriber: '/subscribers/',
    flow: '/flows/',
    execution: '/executions/',
  } as const;
  if (page === null || page.kind === 'backfill') return <>{label}</>;
  const isByName = page.kind === 'subscriber' || page.kind === 'flow';
  const id = isByName ? encodeURIComponent(label) : page.id;
  return <Link href={`${paths[page.kind]}${id}`}>{label}</Link>;
}

/** Plain fields in one line, the whole body on demand. */
function Details({ body }: { readonly body: unknown }) {
  if (typeof body !== 'object' || body === null) return null;
  const plain = Object.entries(body).filter(
    ([name, value]) => !/^(job|task|name|id)$/.test(name) && value !== null && typeof value !== 'object',
  );
  const line = plain.map(
    ([name, value]) => `${name} ${name === 'instant' ? formatInstant(String(value)) : String(value)}`,
  );
  return (
    <details className="audit-details">
      <summary>{line.length > 0 ? line.join(' · ') : 'show details'}</summary>
      {/* a region that scrolls must be reachable by keyboard */}
      <pre tabIndex={0}>{JSON.stringify(body, null, 2)}</pre>
    </details>
  );
}
