/** The versions of a job's document, and the difference between two of them (`?from=&to=`). */
import { Link } from 'wouter';
import { Answer } from '../../kit/answer.tsx';
import { useShown, useUrlState } from '../../kit/url-state.ts';
import type { JobViewProps } from '../use-job.ts';
import { Comparison } from './comparison.tsx';
import { Age } from '../../time/times.tsx';
import { useVersions, type Version } from './use-versions.ts';
import './versions.css';

const firstRows = 50;
const mostRows = 1_000;

/** The comparison in the address. Default: the changes of the newest version. */
function useCompared(newest: number): { readonly from: number; readonly to: number } {
  const [toText] = useUrlState('to');
  const [fromText] = useUrlState('from');
  const to = numberOf(toText) ?? newest;
  return { from: numberOf(fromText) ?? to - 1, to };
}

function numberOf(text: string): number | undefined {
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

export default function VersionsView({ job }: JobViewProps) {
  const [shown, showMore] = useShown(firstRows, mostRows);
  const versions = useVersions(job.id, shown);
  const compared = useCompared(job.version);
  return (
    <Answer of={versions} what="Reading versions">
      {({ items, next }) => (
        <div className="versions">
          <section aria-label="Versions">
            <VersionTable job={job.id} items={items} compared={compared} />
            {next === null || shown === mostRows ? null : (
              <button type="button" className="button more" onClick={showMore}>
                Show older versions
              </button>
            )}
          </section>
          <Comparison job={job} from={compared.from} to={compared.to} />
        </div>
      )}
    </Answer>
  );
}

interface TableProps {
  readonly job: string;
  readonly items: readonly Version[];
  readonly compared: { readonly from: number; readonly to: number };
}

function VersionTable({ job, items, compared }: TableProps) {
  return (
    <table className="table">
      <thead>
        <tr>
          <th scope="col">Version</th>
          <th scope="col">Written</th>
          <th scope="col">By</th>
        </tr>
      </thead>
      <tbody>
        {items.map(({ version, at, actor }) => (
          <tr key={version} data-compared={version === compared.to || version === compared.from ? '' : undefined}>
            <th scope="row">
              <Link
                href={`/jobs/${job}/versions?from=${version - 1}&to=${version}`}
                aria-current={version === compared.to ? 'true' : undefined}
              >
                {version}
              </Link>
            </th>
            <td>
              <Age at={at} />
            </td>
            <td className="version-actor">{actor}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
