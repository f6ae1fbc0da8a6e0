/** A gateway over a fleet in this process, with real keys, sessions, credentials and engines. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Role } from '../../src/contract/roles.ts';
import { defaultTenant } from '../../src/contract/tenants.ts';
import { Admissions } from '../../src/gateway/bus/admissions.ts';
import { PublishDesk } from '../../src/gateway/bus/publish-desk.ts';
import { Callers, hashOf } from '../../src/gateway/access/callers.ts';
import { ClaimDesk } from '../../src/gateway/claims/claim-desk.ts';
import type { GatewayContext } from '../../src/gateway/installation/context.ts';
import { insertKey } from '../../src/gateway/installation/queries.ts';
import { makeDescription } from '../../src/gateway/installation/description.ts';
import { gatewayEndpoints } from '../../src/gateway/installation/endpoints.ts';
import { Gateway } from '../../src/gateway/routing/gateway.ts';
import { readFlowFigures } from '../../src/gateway/installation/conductor-metrics.ts';
import { readBusFigures } from '../../src/gateway/installation/courier-metrics.ts';
import { readLauncherFigures } from '../../src/gateway/installation/launcher-metrics.ts';
import { makeMetrics } from '../../src/gateway/installation/metrics.ts';
import { OpenStreams } from '../../src/gateway/routing/open-streams.ts';
import { RejectedCredentials } from '../../src/gateway/access/rejected-credentials.ts';
import { ReportDesk } from '../../src/gateway/desks/report-desk.ts';
import { makeSecrets, type RunSecrets } from '../../src/gateway/access/secrets.ts';
import { HeartbeatTenants } from '../../src/gateway/desks/heartbeat-tenants.ts';
import { SignalDesk } from '../../src/gateway/desks/signal-desk.ts';
import { makeTenantDesks } from '../../src/gateway/desks/tenant-desks.ts';
import { BatchTurns } from '../../src/gateway/claims/batch-turns.ts';
import { WorkerAccess } from '../../src/gateway/access/worker-access.ts';
import { engine, engineVersion } from '../../src/engine/engine.ts';
import { makeOpenApi } from '../../src/http/openapi.ts';
import { newId } from '../../src/kernel/id.ts';
import { newSecret } from '../../src/kernel/text/secret-text.ts';
import { LogThrottle } from '../../src/kernel/log-throttle.ts';
import { silent } from '../../src/kernel/log.ts';
import { makeTelemetry } from '../../src/kernel/telemetry.ts';
import { Engines } from '../../src/loader/engines/engines.ts';
import type { Loader } from '../../src/loader/loader.ts';
import { onDatabase } from '../../src/postgres/address.ts';
import { ownSchemaSource } from '../../src/postgres/schema-source.ts';
import { WakeHub } from '../../src/postgres/wake.ts';
import type { Fleet } from './fleet.ts';

const origin = 'http://127.0.0.1';

export interface TestGateway {
  readonly gateway: Gateway;
  readonly context: GatewayContext;
  readonly secrets: RunSecrets;
  /** Creates a key; `tenant` is null for roles that serve the whole installation. */
  key(role: Role, tenant: string | null): Promise<string>;
  /** The cookie of a session opened with that key. */
  session(key: string): Promise<string>;
  fetch(method: string, path: string, headers?: Record<string, string>, body?: unknown): Promise<Response>;
}

export function makeTestGateway(fleet: Fleet, loader: Loader = fleet.loader): TestGateway {
  const { time } = fleet;
  const { db: control } = fleet.control;
  // the same keys as in the engines' contexts
  const secrets = makeSecrets(['a master key of the tests'], () => time.now());
  const heartbeatTenants = new HeartbeatTenants(control, silent);
  const turns = new BatchTurns();
  const telemetry = makeTelemetry(() => {});
  const cookieName = 'millrace_test';
  const leaseMs = 30_000;
  const callers = new Callers({ control, secrets, time, cookieName });
  const claims = new ClaimDesk({ loader, control, heartbeatTenants, turns, log: silent, leaseMs });
  const hub = new WakeHub(fleet.control.address, silent);
  const context: GatewayContext = {
    control,
    loader,
    time,
    log: silent,
    heartbeatTenants,
    workers: new WorkerAccess(control, time),
    leaseMs,
    cookieName,
    hub,
    life: {
      control,
      hub,
      time,
      controlAddress: fleet.control.address,
      version: engineVersion,
      engines: new Engines(engine, join(tmpdir(), 'no-engines')),
      schemaOf: () => ownSchemaSource('tenant'),
      addressOf: (row) => onDatabase(fleet.control.address, row.database, row.databaseOid),
      isElsewhere: () => false,
      discovers: false,
      slotLimit: 64,
      databaseFault: () => undefined,
    },
    callers,
    secrets,
    rejectedCredentials: new RejectedCredentials({ control, time, log: silent }),
    remote: null,
    tenant: defaultTenant,
    streams: new OpenStreams({ control, time, log: silent }),
    claims,
    reports: new ReportDesk({ loader, turns, claims }),
    desks: makeTenantDesks(loader),
    publishing: new PublishDesk({ loader, turns }),
    admissions: new Admissions(callers, loader),
    throttle: new LogThrottle(),
    signals: new SignalDesk(loader, silent),
    publicUrl: () => origin,
    secureCookies: false,
    healthy: async () => true,
    speaksForTenant: true,
    metrics: makeMetrics(telemetry, {
      schedulers: async () => [],
      launcher: () => readLauncherFigures(control, { slotLimit: 64, workerLifeMs: 30_000 }),
      bus: () => readBusFigures(control),
      flows: () => readFlowFigures(control),
    }),
    settings: [],
    description: makeDescription(() => makeOpenApi([gatewayEndpoints], engineVersion)),
  };
  const uiFolder = join(tmpdir(), `no-pages-${newId()}`);
  const gateway = new Gateway({ context, telemetry, uiFolder, hostNames: new Set() });
  const fetchFrom: TestGateway['fetch'] = (method, path, headers = {}, body) => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    return gateway.fetch(
      new Request(origin + path, { method, headers: { host: '127.0.0.1', ...type, ...headers }, ...sent }),
    );
  };
  return {
    gateway,
    context,
    secrets,
    fetch: fetchFrom,
    async key(role, tenant) {
      const secret = newSecret('mrk_');
      const tenantId = fleet.tenants.find(({ row }) => row.name === tenant)?.row.id ?? null;
      const at = new Date(time.now());
      await insertKey(control, { id: newId(), name: role, role, tenantId, hash: hashOf(secret), at, by: 'test' });
      return secret;
    },
    async session(key) {
      const answer = await fetchFrom('POST', '/api/session', { origin }, { key });
      if (answer.status !== 201) throw new Error(`signing in failed with status ${answer.status}`);
      return answer.headers.get('set-cookie')?.split(';')[0] ?? '';
    },
  };
}
