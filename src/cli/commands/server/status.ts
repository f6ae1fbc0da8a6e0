/** `millrace status`: the health of the server, the tenant's scheduler, and the workers. */
import { isRecord } from '../../../kernel/text/path.ts';
import type { GatewayEndpoints } from '../../../gateway/installation/endpoints.ts';
import { type CallAnswer, CallFailed } from '../../../http/client.ts';
import { Ended, exitCodes } from '../../session/exit.ts';
import { type Output, showTime, stateStyle } from '../../print/output.ts';
import { listWorkers } from '../../session/pages.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';

async function fetchStatus(server: Server) {
  const { url, tenantName: name } = server;
  const unread: Unread[] = [];
  /** Records a part whose request fails. The gateway still answers for a tenant whose own API fails. */
  const unlessFailed = async <T>(part: string, asked: Promise<T>): Promise<T | null> =>
    asked.catch((error: unknown) => {
      if (!(error instanceof CallFailed) || error.status < 500) throw error;
      unread.push({ part, reason: error.message });
      return null;
    });
  const [tenant, version, installation, counts, workers, schedulers] = await Promise.all([
    unlessUnavailable(server.gateway('GET /api/explain/tenant/{name}', { params: { name } })),
    unlessUnavailable(fetchVersion(server)),
    unlessUnavailable(server.gateway('GET /api/installation')),
    unlessFailed('counts', server.tenant('GET /api/status')),
    unlessFailed('workers', listWorkers(server)),
    unlessFailed('schedulers', server.tenant('GET /api/schedulers')),
  ]);
  unread.sort((a, b) => (a.part < b.part ? -1 : 1));
  const database = installation?.database ?? null;
  const couriers = installation && { alive: installation.couriers.length, warnings: installation.warnings };
  const conductors = installation && { alive: installation.conductors.length };
  return (
    tenant && {
      url,
      tenant,
      version: version ?? null,
      database,
      couriers: couriers ?? null,
      conductors: conductors ?? null,
      counts,
      workers,
      schedulers,
      unread,
    }
  );
}

/** A part that the tenant's API could not answer. */
interface Unread {
  readonly part: string;
  readonly reason: string;
}

/** Returns undefined if the server answers that its database is unavailable. */
async function unlessUnavailable<T>(asked: Promise<T>): Promise<T | undefined> {
  return asked.catch((error: unknown) => {
    if (error instanceof CallFailed && error.problem?.code === 'database_unavailable') return undefined;
    throw error;
  });
}

type TenantWhy = CallAnswer<GatewayEndpoints['GET /api/explain/tenant/{name}']>;
type Status = NonNullable<Awaited<ReturnType<typeof fetchStatus>>> & { readonly health: Health };

export interface Health {
  readonly ok: boolean;
  readonly reason: string | null;
  readonly code: string | null;
}

export async function fetchHealth(server: Server): Promise<Health> {
  try {
    await server.gateway('GET /healthz');
    return { ok: true, reason: null, code: null };
  } catch (error) {
    if (!(error instanceof CallFailed) || error.status !== 503) throw error;
    return { ok: false, reason: error.message, code: error.problem?.code ?? null };
  }
}

/** Adds the health of the tenant: `/healthz` covers only the server and the default tenant. */
function healthWith(health: Health, { tenant, unread }: Omit<Status, 'health'>): Health {
  if (!health.ok) return health;
  if (!hasLauncher(tenant))
    return { ok: false, reason: 'no launcher is active, so nothing is started', code: 'no_launcher' };
  if (isTenantWell(tenant) && unread.length > 0)
    return { ok: false, reason: `the API of ${tenant.tenant} fails`, code: 'tenant_unavailable' };
  if (isTenantWell(tenant)) return health;
  return { ok: false, reason: `the scheduler of ${tenant.tenant} does not run`, code: tenant.reason_code };
}

/** STARTED with a reason means that the launcher has died since. A tenant that a user stopped is well. */
function isTenantWell({ state, reason_code: code }: TenantWhy): boolean {
  return (state === 'STARTED' && code === null) || code === 'stopped_by_user';
}

function isWell({ health, tenant, unread }: Status): boolean {
  return (
    unread.length === 0 &&
    (health.ok || health.code === 'tenant_stopped') &&
    hasLauncher(tenant) &&
    isTenantWell(tenant)
  );
}

function hasLauncher({ facts }: TenantWhy): boolean {
  return facts['launcher_active'] !== false;
}

/** Reads the server's version from its OpenAPI description. */
async function fetchVersion(server: Server): Promise<string | null> {
  const { info } = await server.gateway('GET /openapi.json');
  return isRecord(info) && typeof info['version'] === 'string' ? info['version'] : null;
}

export async function showStatus(session: Session): Promise<void> {
  const server = await session.connect();
  const [health, found] = await Promise.all([fetchHealth(server), fetchStatus(server)]);
  if (found === undefined) return showUnavailable(session, server.url, health);
  const status = { ...found, health: healthWith(health, found) };
  session.out.answer(status, () => {
    showFacts(session.out, status);
    showWorkers(session.out, status.workers ?? []);
    showSchedulers(session.out, status.schedulers ?? []);
  });
  if (!isWell(status)) throw new Ended(exitCodes.failed);
}

/** Prints the health, if nothing else is known. */
function showUnavailable({ out }: Session, url: string, health: Health): never {
  const reason = health.reason ?? 'the database does not answer';
  out.answer({ url, health: { ...health, ok: false, reason } }, () =>
    out.facts([
      ['server', url],
      ['health', `not ok: ${reason}`],
    ]),
  );
  throw new Ended(exitCodes.failed);
}

function showFacts(out: Output, status: Status): void {
  const { url, health, tenant, version, database, couriers, conductors, counts, unread } = status;
  out.facts([
    ['server', url],
    ['server version', version ?? '-'],
    ...(database === null ? [] : databaseFacts(database)),
    ['health', health.ok ? 'ok' : `not ok: ${health.reason}`],
    ['tenant', tenant.tenant],
    ['scheduler', tenant.summary],
    ...(tenant.summary === 'runs' ? [] : [['why', tenant.sentence] as const]),
    ...(tenant.advice === null ? [] : [['what to do', tenant.advice] as const]),
    ...(tenant.facts['launcher_active'] === false ? [['launcher', 'none is active'] as const] : []),
    ['state', tenant.state],
    ['engine', versionIn(tenant.facts)],
    ...(counts === null ? [] : countFacts(counts)),
    ...(couriers === null ? [] : courierFacts(couriers)),
    ...(conductors === null ? [] : [['conductors', String(conductors.alive)] as const]),
    ...[...new Set(unread.map(({ reason }) => reason))].map(
      (reason) => ['not read', partsWith(reason, unread)] as const,
    ),
  ]);
}

/** Settings that cost speed do not make the server unwell. */
function databaseFacts({ version, slow }: NonNullable<Status['database']>): (readonly [string, string])[] {
  return [
    ['PostgreSQL', version],
    ...slow.map(({ name, value, advice }) => ['slow', `${name} is ${value}. ${advice}`] as const),
  ];
}

/** An installation without an event bus needs no courier, and none is shown. */
function courierFacts({ alive, warnings }: NonNullable<Status['couriers']>): (readonly [string, string])[] {
  const count = alive === 0 ? [] : [['couriers', String(alive)] as const];
  return [...count, ...warnings.map((warning) => ['warning', warning] as const)];
}

function partsWith(reason: string, unread: readonly Unread[]): string {
  const parts = unread.filter((each) => each.reason === reason).map(({ part }) => part);
  return `${parts.join(', ')}: ${reason}`;
}

function countFacts(counts: NonNullable<Status['counts']>): (readonly [string, string])[] {
  return [
    ['projects', String(counts.num_projects)],
    ['workers', String(counts.num_workers)],
    ['running tasks', String(counts.running_tasks)],
  ];
}

/** The version of the tenant's engine, which may differ from the server's. */
function versionIn({ version }: Status['tenant']['facts']): string {
  return typeof version === 'string' ? version : '-';
}

function showWorkers(out: Output, workers: NonNullable<Status['workers']>): void {
  if (workers.length === 0) return;
  out.line('');
  out.table(
    [
      { title: 'WORKER', flexible: true },
      { title: 'ID' },
      { title: 'STATUS' },
      { title: 'RUNNING', align: 'right' },
      { title: 'PLACES', align: 'right' },
      { title: 'RUNTIMES', flexible: true },
      { title: 'QUEUES', flexible: true },
      { title: 'VERSION' },
      { title: 'LAST SEEN' },
    ],
    workers.map((worker) => [
      worker.name || worker.uuid,
      // the random end of the id is enough to distinguish the workers of one host
      worker.uuid.slice(-6),
      { text: worker.status, style: stateStyle(worker.status) },
      worker.running_tasks,
      worker.total_tasks,
      worker.runtimes.join(','),
      worker.queues.join(','),
      worker.version,
      showTime(worker.last_seen_datetime),
    ]),
  );
  for (const { name, uuid, unavailable } of workers) {
    for (const [runtime, reason] of Object.entries(unavailable ?? {}))
      out.line(`${name || uuid} takes no ${runtime} tasks now: ${reason}`);
  }
}

function showSchedulers(out: Output, schedulers: NonNullable<Status['schedulers']>): void {
  if (schedulers.length === 0) return;
  out.line('');
  out.table(
    [
      { title: 'SCHEDULER' },
      { title: 'STATUS' },
      { title: 'TRIGGERS', align: 'right' },
      { title: 'VERSION' },
      { title: 'LAST SEEN' },
    ],
    schedulers.map((scheduler) => [
      scheduler.uuid,
      { text: scheduler.status, style: stateStyle(scheduler.status) },
      scheduler.queued_triggers,
      scheduler.version,
      showTime(scheduler.last_seen_datetime),
    ]),
  );
}
