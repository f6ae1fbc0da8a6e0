/** Serves the API, in `api` and `up`: the gateway with its desks, its listener, and its heartbeat in the control database. */
import { createHash } from 'node:crypto';
import { everyone } from '../contract/channels.ts';
import { tenantEndpoints } from '../api/endpoints.ts';
import { engineVersion } from '../engine/engine.ts';
import { defaultTenant } from '../contract/tenants.ts';
import { Admissions } from '../gateway/bus/admissions.ts';
import { PublishDesk } from '../gateway/bus/publish-desk.ts';
import { Callers, hashOf } from '../gateway/access/callers.ts';
import { ClaimDesk } from '../gateway/claims/claim-desk.ts';
import type { GatewayContext } from '../gateway/installation/context.ts';
import { noteGateway, removeGateway, schedulerTallies } from '../gateway/installation/queries.ts';
import { makeDescription } from '../gateway/installation/description.ts';
import { gatewayEndpoints } from '../gateway/installation/endpoints.ts';
import { makeBusFetch } from '../gateway/bus/bus-fetch.ts';
import { makePublishRoute, type PublishRoute } from '../gateway/bus/publish-route.ts';
import { Gateway, guards } from '../gateway/routing/gateway.ts';
import { makeListener } from '../gateway/routing/listener.ts';
import { readLauncherFigures } from '../gateway/installation/launcher-metrics.ts';
import { readFlowFigures } from '../gateway/installation/conductor-metrics.ts';
import { readBusFigures } from '../gateway/installation/courier-metrics.ts';
import { makeMetrics } from '../gateway/installation/metrics.ts';
import { OpenStreams } from '../gateway/routing/open-streams.ts';
import { RejectedCredentials } from '../gateway/access/rejected-credentials.ts';
import { ReportDesk } from '../gateway/desks/report-desk.ts';
import { enforceRootKey } from '../gateway/access/root-key.ts';
import { HeartbeatTenants } from '../gateway/desks/heartbeat-tenants.ts';
import { makeLink } from '../gateway/access/sessions.ts';
import { SignalDesk } from '../gateway/desks/signal-desk.ts';
import { makeTenantDesks } from '../gateway/desks/tenant-desks.ts';
import { BatchTurns } from '../gateway/claims/batch-turns.ts';
import { WorkerAccess } from '../gateway/access/worker-access.ts';
import { leaseTimes } from '../contract/lease-times.ts';
import { makeOpenApi } from '../http/openapi.ts';
import { newId } from '../kernel/id.ts';
import { LogThrottle } from '../kernel/log-throttle.ts';
import { packageFile } from '../kernel/process/package-files.ts';
import { all, every, type Service } from '../kernel/service.ts';
import { proveDiskSpace } from '../postgres/disk-space.ts';
import { openPool } from '../postgres/pool/pool.ts';
import { DatabaseHealth } from '../postgres/database-health.ts';
import type { Installation } from './installation.ts';
import { makeLife } from './tenant-life.ts';

export interface Serving extends Service {
  readonly gateway: Gateway;
  readonly url: () => string;
  readonly signInLink: () => Promise<string>;
}

export interface ServingOptions {
  readonly installation: Installation;
  readonly rootKey: string;
  /** Whether the default tenant is healthy, for the health answer of `up`; undefined: this process answers only for itself. */
  readonly healthy?: () => Promise<boolean>;
}

/** Metrics leave out a scheduler that has not been heard of for this long. */
const schedulerLifeMs = 10_000;
/**
 * The interval of disk checks. Each one writes a temporary file, which the server may log, so not every heartbeat makes one.
 * After a failed check, the next heartbeat tries again. Heartbeats are 2 s apart and two failures make a fault, so a full disk
 * is found within 6 s.
 */
const diskProofEveryMs = 4_000;
/** The timeout of a statement; its connection is then closed. */
const vitalsGiveUpMs = 5_000;
const uiFolder = packageFile('ui', 'dist');

export function makeServing(options: ServingOptions): Serving {
  const { installation } = options;
  const { config, telemetry } = installation;
  const { databaseHealth, watching } = makeDatabaseHealth(installation);
  const publicUrl = (): string => config.publicUrl ?? listener.url();
  const context = makeGatewayContext(options, { databaseHealth, publicUrl });
  const hostNames = new Set(
    [config.host, ...config.allowedHosts, ...publicHost(config.publicUrl)].map((name) => name.toLowerCase()),
  );
  const gateway = new Gateway({ context, telemetry, uiFolder, hostNames });
  const publishRoute = publishRouteOf(context, gateway, telemetry);
  const listener = makeListener({
    publish: publishRoute('below'),
    gateway,
    host: config.host,
    port: config.port,
    tls: config.tls,
  });
  const busListener =
    config.busPort === undefined
      ? []
      : [
          makeListener({
            fetch: makeBusFetch(gateway, context),
            publish: publishRoute('root'),
            gateway,
            host: config.host,
            port: config.busPort,
            tls: config.busTls ?? config.tls,
            setting: 'MILLRACE_BUS_PORT',
          }),
        ];
  const services = all('api', [
    watching,
    wakeUps(installation, context),
    context.claims.service,
    polls(context),
    context.streams.service,
    context.rejectedCredentials.service,
    rootKey(options),
    listener,
    ...busListener,
    announcement(installation, { url: () => listener.url(), databaseHealth }),
  ]);
  return {
    ...services,
    gateway,
    url: () => listener.url(),
    signInLink: async () => (await makeLink(context, hashOf(options.rootKey))).url,
  };
}

function makeGatewayContext(
  { installation, healthy }: ServingOptions,
  { databaseHealth, publicUrl }: { readonly databaseHealth: DatabaseHealth; readonly publicUrl: () => string },
): GatewayContext {
  const { config, control, hub, time, log, loader, secrets, telemetry } = installation;
  const { leaseMs, localTasks, settings } = config;
  const cookieName = `millrace_${createHash('sha256').update(config.home).digest('hex').slice(0, 8)}`;
  const heartbeatTenants = new HeartbeatTenants(control, log);
  const turns = new BatchTurns();
  const callers = new Callers({ control, secrets, time, cookieName });
  const claims = new ClaimDesk({ loader, control, heartbeatTenants, turns, log, leaseMs, localTasks });
  return {
    control,
    loader,
    life: makeLife(installation, () => databaseHealth.fault),
    hub,
    time,
    log,
    callers,
    secrets,
    rejectedCredentials: new RejectedCredentials({ control, time, log }),
    remote: null,
    tenant: defaultTenant,
    streams: new OpenStreams({ control, time, log }),
    claims,
    reports: new ReportDesk({ loader, turns, claims }),
    desks: makeTenantDesks(loader),
    publishing: new PublishDesk({ loader, turns }),
    admissions: new Admissions(callers, loader),
    heartbeatTenants,
    workers: new WorkerAccess(control, time),
    throttle: new LogThrottle(),
    signals: new SignalDesk(loader, log),
    leaseMs,
    publicUrl,
    secureCookies: config.tls !== undefined || (config.publicUrl?.startsWith('https:') ?? false),
    cookieName,
    healthy: healthy ?? (async () => true),
    speaksForTenant: healthy !== undefined,
    metrics: makeMetrics(telemetry, {
      schedulers: () => schedulerTallies(control, new Date(time.now() - schedulerLifeMs)),
      launcher: () =>
        readLauncherFigures(control, {
          slotLimit: config.maxBackgroundWorkers,
          workerLifeMs: leaseTimes(leaseMs).workerLifeMs,
        }),
      bus: () => readBusFigures(control),
      flows: () => readFlowFigures(control),
    }),
    settings,
    description: makeDescription(() => makeOpenApi([gatewayEndpoints, tenantEndpoints], engineVersion)),
  };
}

function publishRouteOf(
  { admissions, publishing: desk, rejectedCredentials }: GatewayContext,
  gateway: Gateway,
  telemetry: Installation['telemetry'],
): (where: 'below' | 'root') => PublishRoute {
  const { bodies } = gateway;
  const explain: Gateway['explain'] = (error, caller) => gateway.explain(error, caller);
  return (where) =>
    makePublishRoute({ admissions, desk, bodies, rejectedCredentials, telemetry, guards, explain }, where);
}

function publicHost(url: string | undefined): string[] {
  return url === undefined ? [] : [new URL(url).hostname];
}

/** Connects the wake-ups of other processes with the waiting requests of this one. */
function wakeUps(
  { hub, broker }: Installation,
  { claims, signals, callers, streams, admissions }: GatewayContext,
): Service {
  const undo: (() => void)[] = [];
  return {
    name: 'wake-ups',
    async start() {
      undo.push(
        broker.onAny('ready', (tenantId, lanes) =>
          tenantId === undefined ? claims.lookAgain() : claims.ready(tenantId, lanes),
        ),
        broker.onAny('cancel', (tenantId) => {
          if (tenantId !== undefined) void signals.lookAt(tenantId);
        }),
        broker.onAny('invalidate', (_, invalidation) => signals.invalidate(invalidation)),
        hub.onAny('tenant', (id) => {
          admissions.forget();
          if (id === undefined) claims.lookAgain();
          else claims.changed(id);
        }),
        hub.on('revoked', everyone, () => {
          callers.forget();
          streams.check();
        }),
      );
    },
    async stop() {
      for (const stop of undo.splice(0)) stop();
    },
  };
}

/** When quiet, the gateway answers long polls at once, so that workers call another gateway without waiting for this one to end. */
function polls({ signals }: GatewayContext): Service {
  return { name: 'polls', start: async () => {}, quiet: () => signals.quiet(), stop: async () => {} };
}

function rootKey({ installation, rootKey: secret }: ServingOptions): Service {
  return {
    name: 'root key',
    start: () => enforceRootKey(installation, secret),
    async stop() {},
  };
}

/** Observes the control database, by a connection of its own that no other work can occupy. */
function makeDatabaseHealth({ config, controlAddress, time, log }: Installation): {
  readonly databaseHealth: DatabaseHealth;
  readonly watching: Service;
} {
  const pool = openPool({
    address: controlAddress,
    schema: 'control',
    application: 'millrace vitals',
    max: 1,
    queryTimeoutMs: vitalsGiveUpMs,
    allowPooler: config.sessionPooler,
    onError: (error) => log.debug({ err: error }, 'connection that monitors the control database lost'),
  });
  const databaseHealth = new DatabaseHealth({
    read: () => pool.query('select 1'),
    now: () => time.now(),
    onChange: (fault) => {
      if (fault === undefined) log.info('control database usable again');
      else log.error({ reason: fault.detail }, 'control database not usable');
    },
  });
  const { name, start, stop } = databaseHealth.service;
  const close = async (): Promise<void> => {
    await stop();
    await pool.end().catch(() => {});
  };
  return { databaseHealth, watching: { name, start, stop: close } };
}

function announcement(
  { config, control, time, log }: Installation,
  { url, databaseHealth }: { readonly url: () => string; readonly databaseHealth: DatabaseHealth },
): Service {
  const id = newId();
  const { gatewayBeatMs, gatewayLifeMs: lifeMs } = leaseTimes(config.leaseMs);
  let nextProofMs = 0;
  const note = async (): Promise<void> => {
    await noteGateway(control, { id, addr: url(), version: engineVersion, at: new Date(time.now()), lifeMs });
    if (performance.now() >= nextProofMs) {
      await proveDiskSpace(control);
      nextProofMs = performance.now() + diskProofEveryMs;
    }
    databaseHealth.noteWrite();
  };
  const beat = every(gatewayBeatMs, 'gateway beat', note, (error) => {
    databaseHealth.noteWrite(error);
    log.debug({ err: error }, 'gateway heartbeat failed');
  });
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
