/**
 * The embedded PostgreSQL server of a home. It is created at the first start, adopted if it has outlived the `up` that started
 * it, and ended by `stop` or `millrace down`. The caller of `startEmbedded` holds the home's claim (`home.ts`), so no other
 * process starts, ends or creates the same cluster meanwhile.
 *
 * 1. It runs in its own session, so that Ctrl-C does not end it while we drain, and logs to `<home>/postgres.log`.
 * 2. It listens only on a socket, in a folder that other users cannot enter (`cluster.ts`).
 * 3. A running server with our version and settings is adopted; any other is ended, and a new one is started.
 * 4. After `kill -9` of any process at any time, the next start has every committed row.
 */
import type { ChildProcess } from 'node:child_process';
import { realpath } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type ClientConfig } from 'pg';
import type { Log } from '../../kernel/log.ts';
import { makeCluster, role, writeAccess } from './cluster.ts';
import { fingerprintSetting, launch, type Plan, planLaunch } from './launch.ts';
import { dataFolders, findLayout, type LayoutOptions, port } from './server-layout.ts';
import { clearRemains, endPostmaster, findPostmaster, type StopMode, untilReady } from './postmaster.ts';
import { clusterOf, isPostmaster } from './processes.ts';
import { unless } from './home-lock.ts';

export interface EmbeddedOptions extends LayoutOptions {
  readonly log: Log;
  /** Server settings that override ours. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface EmbeddedServer {
  readonly connection: { readonly host: string; readonly port: number; readonly user: string };
  /** The pid of the postmaster. */
  readonly pid: number;
  /** Whether it was already running. */
  readonly adopted: boolean;
  /** Notices for the operator, to be logged once. */
  readonly notes: readonly string[];
  /** Writes a checkpoint, so that a `fast` stop soon afterwards has little to write. */
  checkpoint(): Promise<void>;
  /** Returns when the server has ended. After `fastMs` it is ended more forcefully. May be called twice. */
  stop(mode?: StopMode, fastMs?: number): Promise<void>;
  /** Calls back once when the server has ended, for any reason. */
  onExit(callback: () => void): void;
}

const watchMs = 100;
const answerMs = 5_000;

export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const place = await findLayout(options);
  const plan = planLaunch(place, options.settings);
  await makeCluster(place);
  const running = await findAdoptable(plan, options.log);
  if (running !== undefined) return serve(plan, running);
  await clearRemains(plan.cluster, place.sockets);
  await writeAccess(place, place.data);
  const child = await launchOrYield(plan);
  return child === undefined ? await startEmbedded(options) : serve(plan, child.pid, child);
}

/** The pid of the running postmaster, if it has our version and settings. Ends any other. */
async function findAdoptable(plan: Plan, log: Log): Promise<number | undefined> {
  const pid = await findPostmaster(plan.cluster);
  if (pid === undefined) return undefined;
  if (!(await untilReady(pid, plan.cluster))) return undefined;
  if ((await fingerprintOf(plan)) === plan.fingerprint) return pid;
  log.info({ serverPid: pid }, 'a PostgreSQL of another version or with other settings is ended and started anew');
  await endPostmaster(pid, plan.cluster, 'fast');
  return undefined;
}

/** The fingerprint with which the server was started. Undefined if it does not answer. */
async function fingerprintOf(plan: Plan): Promise<string | undefined> {
  const limits = { connectionTimeoutMillis: answerMs, query_timeout: answerMs };
  return askServer(plan, limits, async (client) => {
    const query = 'select current_setting($1, true) as fingerprint';
    const { rows } = await client.query<{ fingerprint: string | null }>(query, [fingerprintSetting]);
    return rows[0]?.fingerprint ?? undefined;
  }).catch(() => undefined);
}

async function checkpoint(plan: Plan): Promise<void> {
  await askServer(plan, { connectionTimeoutMillis: answerMs }, (client) => client.query('checkpoint'));
}

async function askServer<T>(plan: Plan, limits: ClientConfig, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ ...connectionFor({ connection: connectionOf(plan) }, 'postgres'), ...limits });
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Undefined if the server of an `up` that was killed meanwhile has started first: it can be adopted. */
async function launchOrYield(plan: Plan): Promise<Awaited<ReturnType<typeof launch>> | undefined> {
  try {
    return await launch(plan);
  } catch (error) {
    if ((await findPostmaster(plan.cluster)) === undefined) throw error;
    return undefined;
  }
}

function connectionOf(plan: Plan): EmbeddedServer['connection'] {
  return { host: plan.place.sockets, port, user: role };
}

/** The parameters with which `pg` connects to the server. */
export function connectionFor(server: Pick<EmbeddedServer, 'connection'>, database: string): ClientConfig {
  return { ...server.connection, database, ssl: false };
}

function serve(plan: Plan, pid: number, child?: ChildProcess): EmbeddedServer {
  const exited = child === undefined ? untilGone(pid, plan) : untilExit(child);
  return {
    connection: connectionOf(plan),
    pid,
    adopted: child === undefined,
    notes: plan.place.notes,
    checkpoint: () => checkpoint(plan),
    stop: (mode = 'fast', fastMs) => endPostmaster(pid, plan.cluster, mode, fastMs),
    onExit(callback) {
      void after(exited, callback);
    },
  };
}

async function after(event: Promise<void>, callback: () => void): Promise<void> {
  await event;
  callback();
}

async function untilExit(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await new Promise<void>((resolve) => child.once('exit', () => resolve()));
}

/** An adopted server is not our child process, so its end must be polled. */
async function untilGone(pid: number, { cluster }: Plan): Promise<void> {
  while (await isPostmaster(pid, cluster)) await sleep(watchMs, undefined, { ref: false });
}

/** Ends a server that an earlier `up` has left on this home. Returns whether there was one. */
export async function stopEmbedded(
  home: string,
  options: { mode?: StopMode; fastMs?: number | undefined; elsewhere?: string } = {},
): Promise<boolean> {
  const real = await realpath(home).catch(unless('ENOENT', undefined));
  if (real === undefined) return false;
  for (const cluster of dataFolders(real, options.elsewhere).map(clusterOf)) {
    const pid = await findPostmaster(cluster);
    if (pid === undefined) continue;
    await endPostmaster(pid, cluster, options.mode ?? 'fast', options.fastMs);
    return true;
  }
  return false;
}
