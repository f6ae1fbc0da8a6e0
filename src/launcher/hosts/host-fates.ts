/**
 * Hosts that are gone, found sooner than by their silence, and how they ended as far as anybody knows.
 *
 * 1. A process of this machine that has ended is gone (`HostsPort.fate`), whoever started it.
 * 2. A host on another machine is gone when its beat is late and the server has no connection of it left. This holds only
 *    for hosts that ran a scheduler, which keeps its tenant's lock on a connection with the host's name.
 */
import { type Db, sql } from '../../kernel/sql.ts';
import { connectionsOf } from '../../hosts/host-queries.ts';
import type { LaunchHost } from '../launch-queries.ts';
import type { LaunchEntry } from '../ledger.ts';
import type { HostsPort } from './spawning.ts';

/** A host beats every second. Two missed beats are a reason to look for its connections. */
const lateMs = 2_500;

export interface FateOptions {
  readonly now: Date;
  readonly entries: readonly LaunchEntry[];
  readonly fate: HostsPort['fate'];
  /** Whether a missing connection says anything: the launcher and its server have been awake. */
  readonly mayMiss: boolean;
  /** Whether connections of its schedulers would be seen here. */
  readonly isSeen: (entry: LaunchEntry) => boolean;
}

/** The hosts, those that are gone marked as ended. */
export async function findFates(db: Db, hosts: readonly LaunchHost[], options: FateOptions): Promise<LaunchHost[]> {
  const known = hosts.map((host) => markEnded(host, options.fate(host)));
  const late = lateHosts(known, options);
  if (late.size === 0 || !options.mayMiss) return known;
  const connected = await readConnected(db);
  return known.map((host) =>
    late.has(host.id) && !connected.has(connectionsOf(host.id))
      ? markEnded(host, 'is gone: all its connections have ended')
      : host,
  );
}

function markEnded(host: LaunchHost, fate: string | undefined): LaunchHost {
  return fate === undefined ? host : { ...host, leaving: true, beatMs: Number.NEGATIVE_INFINITY, fate };
}

/** Those whose schedulers run, as they said, and whose beat is late. */
function lateHosts(hosts: readonly LaunchHost[], { now, entries, isSeen }: FateOptions): ReadonlySet<string> {
  const running = new Set(entries.filter((entry) => isRunning(entry) && isSeen(entry)).map((e) => e.launch?.hostId));
  const isLate = ({ id, beatMs }: LaunchHost): boolean =>
    Number.isFinite(beatMs) && now.getTime() - beatMs > lateMs && running.has(id);
  return new Set(hosts.filter(isLate).map(({ id }) => id));
}

function isRunning({ launch, report }: LaunchEntry): boolean {
  return launch?.state === 'STARTED' && report?.phase === 'running' && report.orderNo === launch.orderNo;
}

/** How the names of hosts' connections begin, of those that the server has. */
async function readConnected(db: Db): Promise<ReadonlySet<string>> {
  const rows = await db.rows<{ name: string }>(sql`
    select distinct application_name as name from pg_stat_activity where application_name like 'millrace host %'`);
  const length = connectionsOf('').length + 12;
  return new Set(rows.map(({ name }) => name.slice(0, length)));
}
