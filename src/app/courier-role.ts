/** The role `courier`: delivers the events of all tenants. It has no listener, and does not load the code of the gateway. */
import type { Config } from '../config.ts';
import { parseRanges } from '../outbound/addresses.ts';
import { makeCourier } from '../courier/courier.ts';
import { makeOutbound } from '../courier/outbound.ts';
import { engineVersion } from '../engine/engine.ts';
import { makeLog } from '../kernel/log.ts';
import type { HostOrder } from './host-order.ts';
import { externalAddress, openExternal, readSecretKeys } from './open-installation.ts';
import { prepareControl } from './prepare-databases.ts';
import { type Role, RoleEnd, unlessAborted, untilAborted } from './role.ts';

/** After this time without an answer, the network counts as lost and a new connection is opened. */
const lostMs = 10_000;

/** The time from SIGTERM to the end of the process; services have 3 s of it to give back their errands. */
const stopMs = 5_000;
const closeMs = 1_000;

/** Under `up`, the order arrives with the address of the database, which is prepared then. */
export async function runCourier({ config, signal, say }: Role, order: Promise<HostOrder> | undefined): Promise<void> {
  const log = makeLog({ level: config.logLevel, role: 'courier' });
  const received = order && (await Promise.race([order, untilAborted(signal)]));
  if (signal.aborted) return;
  const given = { ...config, ...received };
  const address = externalAddress(given);
  const secretKeys = await readSecretKeys(config);
  const outbound = outboundOf(config);
  if (received === undefined) await unlessAborted(signal, prepareControl(address));
  if (signal.aborted) return;
  const opening = { role: 'courier', secretKeys, queryTimeoutMs: lostMs };
  const installation = await unlessAborted(signal, openExternal(given, log, opening));
  if (installation === undefined) return;
  const { time } = installation;
  const courier = makeCourier({ ...installation, outbound, version: engineVersion, now: () => time.now(), signal });
  const end = new RoleEnd(signal, stopMs, log);
  try {
    await courier.start().catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    if (received === undefined) say('Millrace courier');
    await untilAborted(signal);
  } finally {
    await end.stop(courier, closeMs);
    await end.finish('closing connections', installation.close());
  }
}

function outboundOf({ busAllowHttp, busAllowCidrs, busConnections, busCa }: Config): ReturnType<typeof makeOutbound> {
  return makeOutbound({
    allowHttp: busAllowHttp,
    allowed: parseRanges(busAllowCidrs, 'MILLRACE_BUS'),
    maxConnections: busConnections,
    caFile: busCa,
    now: () => Date.now(),
  });
}
