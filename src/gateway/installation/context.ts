/** The context of the gateway's own handlers. */
import type { Secrets } from '../../contract/context.ts';
import type { Log } from '../../kernel/log.ts';
import type { LogThrottle } from '../../kernel/log-throttle.ts';
import type { Db } from '../../kernel/sql.ts';
import type { Time } from '../../kernel/time.ts';
import type { Life } from '../../tenants/life.ts';
import type { Loader } from '../../loader/loader.ts';
import type { WakeHub } from '../../postgres/wake.ts';
import type { Admissions } from '../bus/admissions.ts';
import type { PublishDesk } from '../bus/publish-desk.ts';
import type { Callers } from '../access/callers.ts';
import type { ClaimDesk } from '../claims/claim-desk.ts';
import type { Description } from './description.ts';
import type { OpenStreams } from '../routing/open-streams.ts';
import type { RejectedCredentials } from '../access/rejected-credentials.ts';
import type { ReportDesk } from '../desks/report-desk.ts';
import type { HeartbeatTenants } from '../desks/heartbeat-tenants.ts';
import type { SignalDesk } from '../desks/signal-desk.ts';
import type { TenantDesks } from '../desks/tenant-desks.ts';
import type { WorkerAccess } from '../access/worker-access.ts';

export interface GatewayContext {
  readonly control: Db;
  readonly loader: Loader;
  /** The operations that create, change and delete tenants. */
  readonly life: Life;
  readonly hub: WakeHub;
  readonly time: Time;
  readonly log: Log;
  readonly callers: Callers;
  /** Verifies links by which tasks are answered. */
  readonly secrets: Pick<Secrets, 'verifyLink'>;
  readonly rejectedCredentials: RejectedCredentials;
  /** The client's address; null outside of a request, and for a request from inside this process. */
  readonly remote: string | null;
  /** The tenant that the path of the request names, or the default tenant. */
  readonly tenant: string;
  readonly streams: OpenStreams;
  readonly claims: ClaimDesk;
  readonly reports: ReportDesk;
  readonly desks: TenantDesks;
  readonly publishing: PublishDesk;
  readonly admissions: Admissions;
  readonly heartbeatTenants: HeartbeatTenants;
  readonly workers: WorkerAccess;
  /** Throttles log lines, because a persistent fault of a tenant occurs with each heartbeat of each worker. */
  readonly throttle: LogThrottle;
  readonly signals: SignalDesk;
  readonly leaseMs: number;
  /** The public URL of this installation, for sign-in links. */
  readonly publicUrl: () => string;
  readonly secureCookies: boolean;
  readonly cookieName: string;
  /** Whether this installation works; under `up`: whether the default tenant is STARTED. */
  readonly healthy: () => Promise<boolean>;
  /** Whether `/healthz` includes the default tenant, as under `up`, or only this process. */
  readonly speaksForTenant: boolean;
  /** The metrics of all tenants (null), or of one. */
  readonly metrics: (tenantId: string | null) => Promise<string>;
  /** The configuration of the installation, without the values of secrets. */
  readonly settings: readonly { name: string; value: string | null; set: boolean; about: string }[];
  readonly description: Description;
}
