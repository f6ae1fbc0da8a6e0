/** The audit log, newest first. The address holds the filters: actor, log, and whether machines are included. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { gateway, tenant } from '../client.ts';
import { Answer } from '../kit/answer.tsx';
import { Choice } from '../kit/choice.tsx';
import { Empty } from '../kit/empty.tsx';
import { SearchField } from '../kit/search-field.tsx';
import { useTitle } from '../kit/title.ts';
import { useShown, useUrlState } from '../kit/url-state.ts';
import { keys } from '../queries.ts';
import { useIsRoot } from '../session/root-only.tsx';
import './admin.css';
import { AuditTable } from './audit-table.tsx';

const firstRows = 50;
const maxRows = 1_000;

/** The tenant's log, with or without machines, and the log of the installation, which only root may read. */
const logs = [
  { value: 'people', label: 'People' },
  { value: 'everything', label: 'Everything' },
  { value: 'installation', label: 'Keys, sign-ins, tenants', isRoot: true },
] as const;
type Log = (typeof logs)[number]['value'];

function useAudit(log: Log, actor: string, limit: number) {
  const query = { limit, ...(actor === '' ? {} : { actor }), machines: log === 'people' ? 'false' : 'true' } as const;
  return useQuery({
    queryKey: [...keys.audit, log, query],
    queryFn: ({ signal }) =>
      log === 'installation'
        ? gateway('GET /api/installation/audit', { query, signal })
        : tenant('GET /api/audit', { query, signal }),
    placeholderData: keepPreviousData,
  });
}

export default function AuditPage() {
  useTitle('Audit');
  const isRoot = useIsRoot();
  const [asked, choose] = useUrlState('log', 'people');
  const [actor, setActor] = useUrlState('actor');
  const [shown, showMore] = useShown(firstRows, maxRows);
  const offered = logs.filter((log) => isRoot || !('isRoot' in log));
  const log = offered.find(({ value }) => value === asked)?.value ?? 'people';
  const audit = useAudit(log, actor, shown);
  return (
    <>
      <header className="page-head">
        <h1>Audit</h1>
        <SearchField label="Exact name of the actor" value={actor} change={setActor} />
      </header>
      <div className="bar">
        <Choice label="Which log" options={offered} value={log} change={choose} />
        {log === 'installation' ? (
          // it is in the control database, which sends no live changes
          <button type="button" className="button" onClick={() => void audit.refetch()}>
            Refresh
          </button>
        ) : null}
      </div>
      <Answer of={audit} what="Reading the audit">
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty title={actor === '' ? 'No entries yet' : `No entries by “${actor}”`} />
          ) : (
            <>
              <AuditTable entries={items} choose={setActor} />
              {next === null || shown === maxRows ? null : (
                <button type="button" className="button more" onClick={showMore}>
                  Show older
                </button>
              )}
            </>
          )
        }
      </Answer>
    </>
  );
}
