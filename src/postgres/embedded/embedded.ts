/**
 * The embedded PostgreSQL server of a home: made at first start, adopted when it outlived the `up` that started it,
 * ended by `stop` or by `millrace down`.
 *
 * 1. It runs in a session of its own (a Ctrl-C must not reach it while we drain) and logs to `<home>/postgres.log`.
 * 2. It listens on a socket only, in a folder that other users cannot enter; see `cluster.ts` for who may.
 * 3. A running server with our version and settings is adopted; any other is ended and started anew.
 * 4. After `kill -9` of anything, at any moment, the next start comes up with every committed row.
 *
 * Whoever starts it holds the home's claim (`home.ts`): nobody else starts, ends or makes the same cluster meanwhile.
 */
import type { ChildProcess } from 'node:child_process';
import { realpath } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type ClientConfig } from 'pg';
import type { Log } from '../../kernel/log.ts';
import { makeCluster, role, writeAccess } from './cluster.ts';
import { fingerprintSetting, launch, type Plan, planLaunch } from './launch.ts';
import { dataFolders, findPlace, type PlaceOptions, port } from './place.ts';
import { clearRemains, endPostmaster, findPostmaster, type StopMode, untilReady } from './postmaster.ts';
import { clusterOf, isPostmaster } from './processes.ts';
import { unless } from './home-lock.ts';

export interface EmbeddedOptions extends PlaceOptions {
  readonly log: Log;
  /** Server settings over our own. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface EmbeddedServer {
  readonly connection: { readonly host: string; readonly port: number; readonly user: string };
  /** The postmaster's. */
  readonly pid: number;
  /** Whether it was running already. */
  readonly adopted: boolean;
  /** What an operator should be told once. */
  readonly notes: readonly string[];
  /** Writes out what a `fast` end would have to: asked for ahead of it, that one is quick. */
  checkpoint(): Promise<void>;
  /** Returns when it is gone; one that is not after `fastMs` is ended by harder means. May be called twice. */
  stop(mode?: StopMode, fastMs?: number): Promise<void>;
  /** Calls back once when the server is gone, asked or not. */
  onExit(callback: () => void): void;
}

const watchMs = 100;
const answerMs = 5_000;

export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const place = await findPlace(options);
  const plan = planLaunch(place, options.settings);
  await makeCluster(place);
  const running = await findAdoptable(plan, options.log);
  if (running !== undefined) return serve(plan, running);
  await clearRemains(plan.cluster, place.sockets);
  await writeAccess(place, place.data);
  const child = await launchOrYield(plan);
  return child === undefined ? await startEmbedded(options) : serve(plan, child.pid, child);
}

/** The running postmaster's pid, if it is one that we would have started. Any other is ended here. */
async function findAdoptable(plan: Plan, log: Log): Promise<number | undefined> {
  const pid = await findPostmaster(plan.cluster);
  if (pid === undefined) return undefined;
  if (!(await untilReady(pid, plan.cluster))) return undefined;
  if ((await fingerprintOf(plan)) === plan.fingerprint) return pid;
  log.info({ serverPid: pid }, 'a PostgreSQL of another version or with other settings is ended and started anew');
  await endPostmaster(pid, plan.cluster, 'fast');
  return undefined;
}

/** What the server says it was started with; undefined when it does not answer. */
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

/** Undefined when another came first, one that an `up` killed since was just starting: it is there to be adopted. */
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

/** What `pg` needs to connect to one of the server's databases. */
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

/** An adopted server is not our child: the kernel does not tell us. */
async function untilGone(pid: number, { cluster }: Plan): Promise<void> {
  while (await isPostmaster(pid, cluster)) await sleep(watchMs, undefined, { ref: false });
}

/** Ends the server that an `up` left behind on this home; whether there was one. */
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
