/** The product with keys, topics and subscribers, its publishers and receivers, and what it is compared with. */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Options } from '../options.ts';
import { startUp, type Up } from '../product.ts';
import { percentiles, type Percentiles } from '../percentiles.ts';
import { pidsBelow } from '../processes.ts';
import { profilingSettings } from '../profile.ts';
import { type Server, startServer } from '../server.ts';
import { controlDatabase, openTenant, type Tenant, tenantDatabase } from '../tenant.ts';
import { type Appender, firstPartitions, openAppender, prepareTables } from './append.ts';
import { type Remote, startPart } from '../parts.ts';
import type { Flooded, Target } from './publisher.ts';
import type { Behaviour } from './receiver.ts';

export interface BusStage {
  readonly options: Options;
  readonly server: Server;
  readonly up: Up;
  readonly tenant: Tenant;
  readonly publisher: Remote<'publisher'>;
  readonly receiver: Remote<'receiver'>;
  readonly bare: Target;
  readonly appender: Appender;
  /** Where the topic is published. */
  target(topic: string, tenant?: string): Target;
  /** Subscribes new receivers; returns their paths. */
  subscribe(subscribers: Subscribers): Promise<string[]>;
  /** Subscribes a receiver that behaves so. Returns a function that removes it. */
  subscribeSick(
    subscriber: Limits & { readonly topic: string; readonly behaviour: Behaviour },
  ): Promise<() => Promise<void>>;
  addTenant(name: string): Promise<void>;
  /** The processes of each part. */
  trees(): Promise<Readonly<Record<'up' | 'courier' | 'postgres' | 'publisher' | 'receiver', readonly number[]>>>;
  stop(): Promise<void>;
}

interface Limits {
  readonly max: number;
  readonly timeout: number;
}

interface Subscribers extends Limits {
  readonly topic: string;
  readonly count: number;
  readonly tenant?: string;
}

/** Bulks of 100. Twenty connections are two groups of 1,000: one is committed while the next one gathers. */
export const bulk = { flood: { perPost: 100, connections: 20 }, limits: { max: 100, timeout: 500 } } as const;

const turnSeconds = 4;

/** The turns of a measurement, and how long each side of a turn takes. */
export function turnsOf({ seconds }: Options): { readonly turns: number; readonly ms: number } {
  const turns = Math.max(1, Math.round(seconds / turnSeconds));
  return { turns, ms: (seconds * 1_000) / turns };
}

const appendDatabase = 'bench_append';
/** Deliveries go to this machine, without TLS. */
const openGuard = { MILLRACE_BUS_ALLOW_HTTP: 'true', MILLRACE_BUS_ALLOW_CIDRS: '127.0.0.0/8' };

export async function setBusStage(options: Options): Promise<BusStage> {
  const server = await startServer(options, options.profile === undefined ? {} : profilingSettings);
  const control = await server.fresh(controlDatabase);
  await server.drop(tenantDatabase);
  const up = await startUp({
    home: server.home,
    databaseUrl: control.url,
    worker: false,
    env: openGuard,
    profileTo: options.profile,
  });
  const tenant = await openTenant(control, server.address(tenantDatabase));
  const appendAddress = await server.fresh(appendDatabase);
  await prepareTables(appendAddress);
  const appender = await openAppender(appendAddress.url, firstPartitions.append);
  const key = await makeKey(up, 'shop');
  const receiver = startPart('receiver');
  const publisher = startPart('publisher');
  const bareServer = startPart('bare');
  const receiverUrl = await receiver.listen();
  const bare = { url: await bareServer.listen({ database: appendAddress.url, key }), topic: 'orders', key };
  const place = { up, receiverUrl };
  const keys = new Map<string | undefined, string>();
  let sick = 0;
  return {
    options,
    server,
    up,
    tenant,
    publisher,
    receiver,
    bare,
    appender,
    target: (topic, name) => ({ url: urlOf(up, name), topic, key: keys.get(name) ?? key }),
    async subscribe({ topic, count, tenant: name, ...limits }) {
      const paths = Array.from({ length: count }, (_, i) => `/${name ?? 'default'}/${topic}/${i}`);
      for (const path of paths) await subscribe(place, { topic, path, limits, tenant: name });
      return paths;
    },
    async subscribeSick({ topic, behaviour, ...limits }) {
      const path = `/sick/${(sick += 1)}`;
      await receiver.behave({ path, behaviour });
      const subscribed = await subscribe(place, { topic, path, limits, tenant: undefined });
      return () => call(subscribed, 'DELETE', '/bus/subscriber');
    },
    async addTenant(name) {
      await addTenant({ server, up }, name);
      keys.set(name, await makeKey(up, 'shop-elsewhere', name));
    },
    async trees() {
      const postgres = server.pid === undefined ? [] : [server.pid];
      const courier = await couriersBelow(up.pid);
      return { up: [up.pid], courier, postgres, publisher: [publisher.pid], receiver: [receiver.pid] };
    },
    async stop() {
      await Promise.all([receiver.end(), bareServer.end(), appender.close(), tenant.close()]);
      await up.stop();
      await server.stop();
    },
  };
}

function urlOf(up: Up, tenant: string | undefined): string {
  return tenant === undefined ? up.url : `${up.url}/t/${tenant}`;
}

async function makeKey(up: Up, name: string, tenant = 'default'): Promise<string> {
  return (await up.call('POST /api/keys', { body: { name, role: 'client', tenant } })).key;
}

interface Subscribed {
  readonly url: string;
  readonly key: string;
}

/** Each key has one subscriber. */
async function subscribe(
  { up, receiverUrl }: { readonly up: Up; readonly receiverUrl: string },
  wish: { readonly topic: string; readonly path: string; readonly limits: Limits; readonly tenant: string | undefined },
): Promise<Subscribed> {
  const { topic, path, limits, tenant } = wish;
  const subscribed = { url: urlOf(up, tenant), key: await makeKey(up, path.replaceAll(/[/_]/g, '-').slice(1), tenant) };
  await call(subscribed, 'POST', '/bus/subscription', {
    topics: [topic],
    callback: `${receiverUrl}${path}`,
    uuid: 'bench',
    ...limits,
  });
  return subscribed;
}

async function call({ url, key }: Subscribed, method: string, path: string, body?: object): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const response = await fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
}

const startMs = 60_000;

async function addTenant({ server, up }: { readonly server: Server; readonly up: Up }, name: string): Promise<void> {
  server.reserve(name);
  await up.call('POST /api/tenants', { body: { name } });
  for (const fromMs = Date.now(); ; await sleep(20)) {
    const { state } = await up.call('GET /api/tenants/{name}', { params: { name } });
    if (state === 'STARTED') return;
    if (Date.now() - fromMs > startMs) throw new Error(`tenant ${name} has not started within ${startMs / 1_000} s`);
  }
}

/** The couriers among the children of a process. */
async function couriersBelow(root: number): Promise<number[]> {
  const pids = await pidsBelow(root);
  const commands = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return pids.filter((_, i) => commands[i]?.split('\0').includes('courier'));
}

/** The longest time that the last event of a turn may take. */
const drainMs = 120_000;

export interface Delivered extends Flooded {
  /** Events per second until the last acknowledgement, and until the last receipt. */
  readonly in: number;
  readonly out: number;
}

/** Publishes for a while and waits until every subscriber has every event. Fails if one is missing. A repeated batch counts once. */
export async function floodAndDrain(
  { publisher, receiver }: BusStage,
  flood: Parameters<BusStage['publisher']['flood']>[0],
  paths: readonly string[],
): Promise<Delivered> {
  const flooded = await publisher.flood(flood);
  const ends = await Promise.all(paths.map((path) => receiver.wait({ path, events: flooded.events, ms: drainMs })));
  for (const path of paths) await receiver.clear({ path });
  const lastNs = ends.map(BigInt).reduce((a, b) => (a > b ? a : b), BigInt(flooded.startedNs));
  const allMs = Math.max(flooded.ms, Number(lastNs - BigInt(flooded.startedNs)) / 1e6);
  return { ...flooded, in: (flooded.events / flooded.ms) * 1_000, out: (flooded.events / allMs) * 1_000 };
}

/** Publishes single events with rests, and returns the percentiles of the answers, and from each publish to its receipts. */
export async function trickle(
  stage: BusStage,
  target: Target,
  paths: readonly string[],
  { count, restMs }: { readonly count: number; readonly restMs: number },
): Promise<{ readonly accepted: Percentiles; readonly received: Percentiles }> {
  const accepted = percentiles(await stage.publisher.trickle({ ...target, count, restMs }));
  return { accepted, received: percentiles(await receipts(stage, paths, count)) };
}

/** The same for a while. Returns the milliseconds from each publish to each receipt. */
export async function sampleTrickle(
  stage: BusStage,
  target: Target,
  paths: readonly string[],
  { ms, restMs }: { readonly ms: number; readonly restMs: number },
): Promise<number[]> {
  const answers = await stage.publisher.trickle({ ...target, ms, restMs });
  return receipts(stage, paths, answers.length);
}

async function receipts({ receiver }: BusStage, paths: readonly string[], events: number): Promise<number[]> {
  await Promise.all(paths.map((path) => receiver.wait({ path, events, ms: drainMs })));
  return (await Promise.all(paths.map((path) => receiver.clear({ path })))).flat();
}
