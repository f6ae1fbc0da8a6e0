/** The `api` role: the gateway with its desks, its listener, and its word in the control database that it serves. */
import { createHash } from 'node:crypto';
import { tenantEndpoints } from '../api/endpoints/table.ts';
import { broadcastKind, lanesOf, signalKind } from '../broker/postgres.ts';
import { engineVersion } from '../engine/engine.ts';
import { newLink } from '../gateway/access.ts';
import { Callers, hashOf } from '../gateway/callers.ts';
import { ClaimDesk } from '../gateway/claim-desk.ts';
import type { GatewayContext } from '../gateway/context.ts';
import {
  insertKey,
  noteGateway,
  removeGateway,
  retireKeysOf,
  reviveKey,
  schedulerTallies,
} from '../gateway/control-queries.ts';
import { gatewayEndpoints } from '../gateway/endpoints.ts';
import { Gateway } from '../gateway/gateway.ts';
import { makeListener } from '../gateway/listener.ts';
import { readLauncherFigures } from '../gateway/launcher-metrics.ts';
import { makeMetrics } from '../gateway/metrics.ts';
import { OpenStreams } from '../gateway/open-streams.ts';
import { ReportDesk } from '../gateway/report-desk.ts';
import { Servings } from '../gateway/servings.ts';
import { SignalDesk } from '../gateway/signal-desk.ts';
import { makeTenantDesks } from '../gateway/tenant-desks.ts';
import { Turns } from '../gateway/turns.ts';
import { leaseTimes } from '../contract/lease-times.ts';
import type { Invalidation } from '../contract/wire.ts';
import { openApi } from '../http/openapi.ts';
import { newId } from '../kernel/id.ts';
import { Seldom } from '../kernel/seldom.ts';
import { packageFile } from '../kernel/package-files.ts';
import { all, every, type Service } from '../kernel/service.ts';
import { anything } from '../postgres/wake.ts';
import type { Installation } from './installation.ts';
import { makeLife } from './life.ts';

export interface Serving extends Service {
  readonly gateway: Gateway;
  readonly url: () => string;
  readonly signInLink: () => Promise<string>;
}

export interface ServingOptions {
  readonly installation: Installation;
  readonly rootKey: string | undefined;
  readonly healthy: () => Promise<boolean>;
}

/** A scheduler that has not been heard of for this long is not told of. */
const schedulerLifeMs = 10_000;
const uiFolder = packageFile('ui', 'dist');

export function makeServing(options: ServingOptions): Serving {
  const { installation } = options;
  const { config, control, hub, time, log, loader, secrets, telemetry } = installation;
  const cookieName = `millrace_${createHash('sha256').update(config.home).digest('hex').slice(0, 8)}`;
  const servings = new Servings(control, log);
  const turns = new Turns();
  const context: GatewayContext = {
    control,
    loader,
    life: makeLife(installation),
    hub,
    time,
    log,
    callers: new Callers({ control, secrets, time, cookieName }),
    streams: new OpenStreams({ control, time, log }),
    claims: new ClaimDesk({ loader, control, servings, turns, log, leaseMs: config.leaseMs }),
    reports: new ReportDesk(loader, turns),
    desks: makeTenantDesks(loader),
    servings,
    seldom: new Seldom(),
    signals: new SignalDesk(loader, log),
    leaseMs: config.leaseMs,
    publicUrl: () => config.publicUrl ?? listener.url(),
    secureCookies: config.tls !== undefined || (config.publicUrl?.startsWith('https:') ?? false),
    cookieName,
    healthy: options.healthy,
    metrics: makeMetrics(telemetry, {
      schedulers: () => schedulerTallies(control, new Date(time.now() - schedulerLifeMs)),
      launcher: () => readLauncherFigures(control, config.maxBackgroundWorkers),
    }),
    settings: config.settings,
    openapi: once(() => openApi([gatewayEndpoints, tenantEndpoints], engineVersion)),
  };
  const hostNames = new Set(
    [config.host, ...config.allowedHosts, ...publicHost(config.publicUrl)].map((name) => name.toLowerCase()),
  );
  const gateway = new Gateway({ context, telemetry, uiFolder, hostNames });
  const listener = makeListener({ gateway, host: config.host, port: config.port, tls: config.tls });
  const services = all('api', [
    wakeUps(installation, context),
    context.claims.service,
    context.streams.service,
    rootKey(options),
    listener,
    announcement(installation, () => listener.url()),
  ]);
  return {
    name: 'api',
    start: services.start,
    stop: services.stop,
    gateway,
    url: () => listener.url(),
    signInLink: async () => (await newLink(context)).url,
  };
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

function publicHost(url: string | undefined): string[] {
  return url === undefined ? [] : [new URL(url).hostname];
}

/** What happens elsewhere and concerns those who wait here. */
function wakeUps({ hub }: Installation, { claims, signals, callers, streams }: GatewayContext): Service {
  const undo: (() => void)[] = [];
  return {
    name: 'wake-ups',
    async start() {
      undo.push(
        hub.onAny('ready', (about, lanes) =>
          about === anything ? claims.lookAgain() : claims.ready(about, lanesOf(lanes)),
        ),
        hub.onAny('tenant', (about) => (about === anything ? claims.lookAgain() : claims.changed(about))),
        hub.on('keys', 'revoked', () => {
          callers.forget();
          streams.check();
        }),
        hub.on('workers', signalKind, (_, tenantId) => void (tenantId === '' ? undefined : signals.lookAt(tenantId))),
        hub.on('workers', broadcastKind, (_, text) => {
          if (text !== '') signals.invalidate(JSON.parse(text) as Invalidation);
        }),
      );
    },
    async stop() {
      for (const stop of undo.splice(0)) stop();
    },
  };
}

/** The installation's own root key; one that was set before and is another now no longer opens anything. */
function rootKey({ installation: { control, time }, rootKey: secret }: ServingOptions): Service {
  const createdBy = 'installation';
  return {
    name: 'root key',
    async start() {
      if (secret === undefined) return;
      const at = new Date(time.now());
      const hash = hashOf(secret);
      await control.transaction(async (tx) => {
        await insertKey(tx, { id: newId(), name: 'root', role: 'root', tenantId: null, hash, at, by: createdBy });
        await reviveKey(tx, hash);
        await retireKeysOf(tx, createdBy, hash, at);
      });
    },
    async stop() {},
  };
}

function announcement({ config, control, time, log }: Installation, url: () => string): Service {
  const id = newId();
  const { gatewayBeatMs, gatewayLifeMs: lifeMs } = leaseTimes(config.leaseMs);
  const note = (): Promise<void> =>
    noteGateway(control, { id, addr: url(), version: engineVersion, at: new Date(time.now()), lifeMs });
  const beat = every(gatewayBeatMs, 'gateway beat', note, (error) =>
    log.debug({ err: error }, 'the control database is out of reach'),
  );
  return {
    name: 'announcement',
    async start() {
      await note();
      await beat.start();
    },
    async stop() {
      await beat.stop();
      await removeGateway(control, id).catch(() => {});
    },
  };
}
