/** The product with keys, topics and subscribers, its publishers and receivers, and what it is compared with. */
import type { Options } from '../options.ts';
import { startUp, type Up } from '../product.ts';
import { percentiles, type Percentiles } from '../percentiles.ts';
import { profilingSettings } from '../profile.ts';
import { type Server, startServer } from '../server.ts';
import { controlDatabase, openTenant, type Tenant, tenantDatabase } from '../tenant.ts';
import { type Appender, firstPartitions, openAppender, prepareTables } from './append.ts';
import { type Remote, startPart } from './parts.ts';
import type { Flooded, Target } from './publisher.ts';

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
  target(topic: string): Target;
  /** Subscribes new receivers; returns their paths. */
  subscribe(
    topic: string,
    count: number,
    limits: { readonly max: number; readonly timeout: number },
  ): Promise<string[]>;
  stop(): Promise<void>;
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
    worker: true,
    env: openGuard,
    profileTo: options.profile,
  });
  const tenant = await openTenant(control, server.address(tenantDatabase));
  const appendAddress = await server.fresh(appendDatabase);
  await prepareTables(appendAddress);
  const appender = await openAppender(appendAddress.url, firstPartitions.append);
  const key = await makeKey(up, 'shop');
  const receiver = startPart('receiver');
  const bareServer = startPart('bare');
  const receiverUrl = await receiver.listen();
  const bare = { url: await bareServer.listen({ database: appendAddress.url, key }), topic: 'orders', key };
  return {
    options,
    server,
    up,
    tenant,
    publisher: startPart('publisher'),
    receiver,
    bare,
    appender,
    target: (topic) => ({ url: up.url, topic, key }),
    subscribe: (topic, count, limits) => subscribe({ up, receiverUrl }, topic, count, limits),
    async stop() {
      await Promise.all([receiver.end(), bareServer.end(), appender.close(), tenant.close()]);
      await up.stop();
      await server.stop();
    },
  };
}

async function makeKey(up: Up, name: string): Promise<string> {
  return (await up.call('POST /api/keys', { body: { name, role: 'client' } })).key;
}

/** Each key has one subscriber. */
async function subscribe(
  { up, receiverUrl }: { readonly up: Up; readonly receiverUrl: string },
  topic: string,
  count: number,
  { max, timeout }: { readonly max: number; readonly timeout: number },
): Promise<string[]> {
  const paths = Array.from({ length: count }, (_, i) => `/${topic}/${i}`);
  for (const path of paths) {
    const authorization = `Bearer ${await makeKey(up, path.replaceAll('/', '-').slice(1))}`;
    const body = JSON.stringify({ topics: [topic], callback: `${receiverUrl}${path}`, uuid: 'bench', max, timeout });
    const headers = { authorization, 'content-type': 'application/json' };
    const response = await fetch(`${up.url}/bus/subscription`, { method: 'POST', headers, body });
    if (!response.ok) throw new Error(`not subscribed: ${response.status} ${await response.text()}`);
  }
  return paths;
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

/** Publishes single events with rests, and returns the percentiles from each publish to its receipt. */
export async function trickle(
  { publisher, receiver }: BusStage,
  target: Target,
  path: string,
  { count, restMs }: { readonly count: number; readonly restMs: number },
): Promise<{ readonly accepted: Percentiles; readonly received: Percentiles }> {
  const accepted = percentiles(await publisher.trickle({ ...target, count, restMs }));
  await receiver.wait({ path, events: count, ms: drainMs });
  return { accepted, received: percentiles(await receiver.clear({ path })) };
}
