/** Finds the cached answers that a digest makes stale: details of a page at once, summaries of all jobs a little later. */
import type { QueryKey } from '@tanstack/react-query';
import type { DigestMessage } from '../../../src/api/live/digest.ts';
import { keys } from '../queries.ts';

interface Touched {
  readonly soon: readonly QueryKey[];
  readonly later: readonly QueryKey[];
}

/** The beginnings of names that stand for all jobs, all runs and all executions. */
const anyJob: QueryKey = [keys.jobState('')[0]];
const anyRun: QueryKey = [keys.run('')[0]];
const anyExecution: QueryKey = [keys.execution('')[0]];
const everything: QueryKey = [];
const sums: readonly QueryKey[] = [
  keys.jobs,
  keys.overview,
  keys.activity,
  keys.runs,
  keys.backfills,
  keys.pools,
  // what a worker holds changes, though its places stay full
  keys.fleet,
  keys.auditOfAll,
];
/** Queries that depend on the clock, such as the last hour, and those about other tenants, which have no stream here. */
const clocked: readonly QueryKey[] = [keys.overview, keys.activity, anyJob, keys.tenants];

export function touchedBy(digest: DigestMessage): Touched {
  if (digest.all) return { soon: [everything], later: [] };
  const { jobs = [], runs = [], written = [], executions = [] } = digest;
  const hasRun = digest.many === true || jobs.length + runs.length > 0;
  const hasExecution = digest.anyExecution === true || executions.length > 0;
  return {
    soon: [
      ...(digest.many ? [anyJob] : jobs.map((id) => keys.jobState(id))),
      // too many to be named: whichever is on show may be one of them
      ...(hasRun && runs.length === 0 ? [anyRun] : runs.map((id) => keys.run(id))),
      ...written.flatMap((id) => [keys.jobWritten(id), keys.jobState(id)]),
      ...(written.length > 0 ? [keys.jobs, keys.search] : []),
      ...(digest.anyExecution ? [anyExecution] : executions.map((id) => keys.execution(id))),
      ...(digest.workitems ? [keys.workitems] : []),
      ...(digest.flows ? [keys.flows, keys.search] : []),
      ...(digest.pools ? [keys.pools] : []),
      ...(digest.projects ? [keys.projects, keys.jobs, keys.stash, keys.search] : []),
      ...(digest.people ? [keys.audit] : []),
      ...(digest.fleet ? [keys.fleet] : []),
      ...(digest.scheduler ? [keys.tenants] : []),
    ],
    later: [
      ...(hasRun ? sums : []),
      ...(hasExecution ? [keys.executions, keys.flows, keys.overview] : []),
      ...(digest.fleet || digest.late ? [keys.overview] : []),
      ...(digest.minute ? clocked : []),
    ],
  };
}
