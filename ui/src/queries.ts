/**
 * The names under which answers are cached. An answer stays good until a digest of changes says
 * otherwise (`live/touched.ts`), so a page that is opened again shows at once what it showed before.
 *
 * What runs do touches `state` names, several times a second where much runs; what people write touches `written` ones.
 * A page asks for the two apart, so that a busy job does not have its graph and versions read over and over.
 */
import type { QueryKey } from '@tanstack/react-query';

export const keys = {
  me: ['me'],
  installation: ['installation'],
  overview: ['overview'],
  activity: ['activity'],
  jobs: ['jobs'],
  projects: ['projects'],
  search: ['search'],
  runs: ['runs'],
  backfills: ['backfills'],
  fleet: ['fleet'],
  audit: ['audit'],
  /** Including entries of machines. */
  auditOfAll: ['audit', 'everything'],
  accessKeys: ['access keys'],
  sessions: ['sessions'],
  /** All data of tenants, and of the launchers and hosts that run their schedulers. */
  tenants: ['tenants'],
  tenantList: ['tenants', 'list'],
  tenant: (name: string, ...more: readonly unknown[]): QueryKey => ['tenants', 'one', name, ...more],
  pools: ['pools'],
  stash: ['stash'],
  /** All data of the event bus. */
  bus: ['bus'],
  deadLetters: ['bus', 'dead letters'],
  subscriber: (id: string, ...more: readonly unknown[]): QueryKey => ['bus', 'subscriber', id, ...more],
  /** All data of the definitions of flows. */
  flows: ['flows'],
  flow: (name: string, ...more: readonly unknown[]): QueryKey => ['flows', 'one', name, ...more],
  /** Lists of executions. */
  executions: ['executions'],
  execution: (id: string, ...more: readonly unknown[]): QueryKey => ['execution', id, ...more],
  /** Tasks of people. */
  workitems: ['workitems'],
  /** The state of a job: counts, tokens, runs, durations. */
  jobState: (job: string, ...more: readonly unknown[]): QueryKey => ['job state', job, ...more],
  /** The definition of a job: document, graph, versions, triggers. */
  jobWritten: (job: string, ...more: readonly unknown[]): QueryKey => ['job written', job, ...more],
  run: (id: string, ...more: readonly unknown[]): QueryKey => ['run', id, ...more],
} as const;
