/** What the gateway's own handlers are given. */
import type { Log } from '../../kernel/log.ts';
import type { LogThrottle } from '../../kernel/log-throttle.ts';
import type { Db } from '../../kernel/sql.ts';
import type { Time } from '../../kernel/time.ts';
import type { Life } from '../../tenants/life.ts';
import type { Loader } from '../../loader/loader.ts';
import type { WakeHub } from '../../postgres/wake.ts';
import type { Callers } from '../access/callers.ts';
import type { ClaimDesk } from '../claims/claim-desk.ts';
import type { Description } from './description.ts';
import type { OpenStreams } from '../routing/open-streams.ts';
import type { RejectedCredentials } from '../access/rejected-credentials.ts';
import type { ReportDesk } from '../desks/report-desk.ts';
import type { Servings } from '../desks/servings.ts';
import type { SignalDesk } from '../desks/signal-desk.ts';
import type { TenantDesks } from '../desks/tenant-desks.ts';
import type { WorkerAccess } from '../access/worker-access.ts';

export interface GatewayContext {
  readonly control: Db;
  readonly loader: Loader;
  /** What makes, changes and ends tenants. */
  readonly life: Life;
  readonly hub: WakeHub;
  readonly time: Time;
  readonly log: Log;
  readonly callers: Callers;
  readonly rejectedCredentials: RejectedCredentials;
  /** The address that the request came from; null outside of a request, and for one from inside this process. */
  readonly remote: string | null;
  readonly streams: OpenStreams;
  readonly claims: ClaimDesk;
  readonly reports: ReportDesk;
  readonly desks: TenantDesks;
  readonly servings: Servings;
  readonly workers: WorkerAccess;
  /** What is wrong with a tenant for long is wrong with each heartbeat of each worker. */
  readonly throttle: LogThrottle;
  readonly signals: SignalDesk;
  readonly leaseMs: number;
  /** Where people reach this installation; for sign-in links. */
  readonly publicUrl: () => string;
  readonly secureCookies: boolean;
  readonly cookieName: string;
  /** Whether this installation does its work; under `up`, that the default tenant is STARTED. */
  readonly healthy: () => Promise<boolean>;
  /** Whether `/healthz` speaks for the default tenant, as under `up`, or for this process alone. */
  readonly speaksForTenant: boolean;
  /** Of all tenants, or of one. */
  readonly metrics: (tenantId: string | null) => Promise<string>;
  /** How the installation is configured, secrets left out. */
  readonly settings: readonly { name: string; value: string | null; set: boolean; about: string }[];
  readonly description: Description;
}
