/** Endpoints of the installation's tenants, slots, engines and launchers, for root. */
import { z } from 'zod';
import { reasonCodes } from '../../control/reasons.ts';
import { limit } from '../../api/shapes.ts';
import { endpoints } from '../../http/endpoint.ts';
import { standings } from './standing.ts';

const id = z.guid({ error: 'not a UUID' });
const time = z.iso.datetime({ offset: true });
/** Part of URLs and, unless another one is given, the name of the database. */
const name = z
  .string()
  .min(1, { error: 'a tenant needs a name', abort: true })
  .max(63, { error: 'a name has at most 63 characters', abort: true })
  .regex(
    /^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$/,
    'lower-case letters, digits, - and _; begins and ends with a letter or digit',
  );
const database = z.string().min(1, 'a database needs a name').max(63, 'a name has at most 63 characters').optional();
const tenantPath = z.object({ name: z.string().min(1).max(200, 'no tenant has a name of more than 200 characters') });

/**
 * `silent`: the launcher has left the tenant as STARTED, but its host is silent. `database`: the control database does not answer
 * or rejects writes, so the state is unknown.
 */
const shownCode = z.enum([...reasonCodes, 'silent', 'database']);
const processView = z.object({ id, machine: z.string(), pid: z.int() });

export const tenantView = z.object({
  id,
  name: z.string(),
  database: z.string(),
  desired: z.enum(['on', 'off']),
  /** The standing, and the same in words: "runs", "runs, but …", "will run: why", "off: by whom or why". */
  standing: z.enum(standings),
  summary: z.string(),
  state: z.enum(['ENABLED', 'ALLOCATED', 'STARTED', 'DISABLED']),
  /** Why it is not STARTED; or that it is recorded as STARTED but its host is silent; and that no launcher is active. */
  reason: z.string().nullable(),
  reason_code: shownCode.nullable(),
  /** The version that is recorded in its database; null: not installed. */
  version: z.string().nullable(),
  /** The host that runs its scheduler, or ran it when it was last heard of. */
  host: processView.nullable(),
  own_host: z.boolean(),
  /** Failing parts of a running scheduler. */
  trouble: z.string().nullable(),
  /** Failures in a row, and the time of the next attempt. */
  failures: z.int(),
  retry_at: time.nullable(),
  changed_at: time,
  created_at: time,
});

export const messageView = z.object({
  id: z.int(),
  kind: z.enum(['start', 'stop', 'restart']),
  sender: z.string(),
  cause: z.string(),
  transaction: z.string().nullable(),
  sent_at: time,
  /** A launcher that receives the message later only follows the desired state. */
  deadline: time,
  outcome: z.string().nullable(),
  detail: z.string().nullable(),
  acknowledged_at: time.nullable(),
  settled_at: time.nullable(),
});

/** The body must be empty: unknown fields are rejected, not ignored. */
const nothing = z.strictObject({}).optional();
const ordered = z.object({ tenant: tenantView, message: messageView });
/** Answered at once; the launcher acts later. */
const accepted = z.object({
  tenant: tenantView,
  message: messageView,
  /** The path of the message, with its outcome. */
  follow: z.string(),
});
const root = { tag: 'tenants', allow: ['root'] } as const;
const list = <T extends z.ZodType>(item: T) => z.object({ items: z.array(item), next: z.string().nullable() });
/** A page has a thousand items unless fewer are requested, and fewer if they are large (`http/page.ts`). */
const pageQuery = z.object({ limit: limit(1_000), cursor: z.string().max(200).optional() });
/** The last slot of a page: whether it waits, since when (in microseconds), and its id. */
export const slotCursor = /^(?<waits>[01])\.(?<since>\d{1,18})\.(?<id>[0-9a-f-]{36})$/;
const version = z.string().min(1).max(100);
/** The maximum number of named tenants per engine in the list of engines. */
export const maxNamedTenants = 100;

/** How long the list of engines waits for their code to load, in ms. A trial that takes longer goes on, for the next request. */
export const maxTrialMs = 1_500;

export const tenantEndpointsOfGateway = endpoints({
  'GET /api/tenants': {
    ...root,
    summary: 'Tenants by name, a page at a time, with their state and its reason',
    query: pageQuery,
    answer: list(tenantView),
  },
  'POST /api/tenants': {
    ...root,
    summary: 'Create a tenant: creates its database, installs Millrace in it, and starts its scheduler',
    body: z.strictObject({
      name,
      database,
      /** Default: the running release. */
      version: z.string().max(100).optional(),
      own_host: z.boolean().optional(),
    }),
    status: 201,
    answer: ordered,
    others: { 409: 'a tenant or database with this name exists already' },
  },
  'GET /api/tenants/{name}': { ...root, summary: 'One tenant', params: tenantPath, answer: tenantView },
  'PATCH /api/tenants/{name}': {
    ...root,
    summary: 'Set whether it has a host of its own',
    params: tenantPath,
    body: z.strictObject({ own_host: z.boolean() }),
    answer: tenantView,
  },
  'DELETE /api/tenants/{name}': {
    ...root,
    summary: 'Drop a tenant with its database, running or not',
    params: tenantPath,
    status: 204,
    answer: 'none',
  },
  'POST /api/tenants/{name}/start': {
    ...root,
    summary: 'Start its scheduler, unless it runs. Answers at once; `follow` shows the outcome',
    params: tenantPath,
    body: nothing,
    status: 202,
    answer: accepted,
  },
  'POST /api/tenants/{name}/stop': {
    ...root,
    summary:
      'Stop its scheduler until it is started again; its API stays available. Answers at once; `follow` shows the outcome',
    params: tenantPath,
    body: nothing,
    status: 202,
    answer: accepted,
  },
  'POST /api/tenants/{name}/restart': {
    ...root,
    summary: 'Stop its scheduler if it runs, and start it again. Answers at once; `follow` shows the outcome',
    params: tenantPath,
    body: nothing,
    status: 202,
    answer: accepted,
  },
  'POST /api/tenants/{name}/adopt': {
    ...root,
    summary: 'Make an existing database a tenant; Millrace is installed in it unless it is there',
    /** The handler checks the name, so that the answer to an invalid name can propose a valid one. */
    params: tenantPath,
    body: z.strictObject({
      database,
      version: z.string().max(100).optional(),
      own_host: z.boolean().optional(),
    }),
    status: 201,
    answer: ordered,
  },
  'POST /api/tenants/{name}/release': {
    ...root,
    summary: 'Remove Millrace, with all jobs and runs, from its database; the database stays',
    params: tenantPath,
    status: 204,
    answer: 'none',
  },
  'POST /api/tenants/{name}/upgrade': {
    ...root,
    summary:
      'Upgrade a tenant to the version of another engine, in one transaction; with dry_run, only show what that would do',
    params: tenantPath,
    /** Default of `to`: the newest usable stable engine; for a tenant at a pre-release, the newest of all. */
    body: z.strictObject({ to: z.string().max(100).optional(), dry_run: z.boolean().optional() }),
    answer: z.object({
      from: z.string(),
      to: z.string(),
      /** Migrations that were, or would be, applied. */
      migrations: z.array(z.string()),
      /** For a dry run: the number of engine connections that would have to close; otherwise null. */
      sessions: z.int().nullable(),
      dry_run: z.boolean(),
      tenant: tenantView,
      /** Null for a dry run, and if the tenant is at that version already. */
      message: messageView.nullable(),
    }),
  },
  'POST /api/tenants/{name}/rename': {
    ...root,
    summary: 'Rename it; a database of the same name is renamed with it',
    params: tenantPath,
    body: z.strictObject({ name }),
    answer: tenantView,
  },
  'GET /api/tenants/{name}/messages': {
    ...root,
    summary: 'Messages to the launcher about it, with their outcomes, newest first, a page at a time',
    params: tenantPath,
    query: z.object({
      limit: limit(50),
      cursor: z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER).optional(),
    }),
    answer: list(messageView),
  },
  'GET /api/tenants/{name}/messages/{id}': {
    ...root,
    summary:
      'The outcome of one message to the launcher; with `wait`, answers as soon as it is known, or after that many seconds',
    params: tenantPath.extend({ id: z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER) }),
    query: z.object({ wait: z.coerce.number().int().min(0).max(30).default(0) }),
    answer: ordered,
  },
  'GET /api/explain/tenant/{name}': {
    tag: 'explain',
    allow: ['viewer', 'operator'],
    summary: 'Why its scheduler runs, or why not: one sentence, and the facts behind it',
    params: tenantPath,
    answer: z.object({
      tenant: z.string(),
      standing: z.enum(standings),
      summary: z.string(),
      state: z.enum(['ENABLED', 'ALLOCATED', 'STARTED', 'DISABLED']),
      reason_code: shownCode.nullable(),
      sentence: z.string(),
      /** The advice; null: there is nothing to do. */
      advice: z.string().nullable(),
      facts: z.record(z.string(), z.unknown()),
    }),
  },
  'GET /api/slots': {
    ...root,
    summary:
      'Slots with their holders, then those that wait for one, a page at a time; `taken` and `waiting` count all',
    query: pageQuery.extend({ cursor: z.string().regex(slotCursor, 'take `next` of a page as it is').optional() }),
    answer: z.object({
      limit: z.int(),
      taken: z.int(),
      waiting: z.int(),
      items: z.array(
        z.object({
          kind: z.enum(['launcher', 'scheduler']),
          tenant: z.string().nullable(),
          holder: processView.nullable(),
          reason: z.string(),
          since: time,
          /** The position in the queue; null: it has the slot. */
          position: z.int().nullable(),
        }),
      ),
      next: z.string().nullable(),
    }),
  },
  'PUT /api/slots': {
    ...root,
    summary: 'Change max_background_workers; takes effect at once',
    body: z.strictObject({ limit: z.int().min(0).max(10_000) }),
    answer: z.object({ limit: z.int() }),
  },
  'GET /api/engines': {
    ...root,
    summary: 'The installed engines, and the tenants that use them',
    answer: list(
      z.object({
        version: z.string(),
        contract: z.int().nullable(),
        /** Why it cannot be used; null: it can. */
        fault: z.string().nullable(),
        /** Whether its code can be loaded, as tried in a process of its own; null: not known yet, ask again. */
        loads: z.boolean().nullable(),
        /** It is part of this release. */
        running: z.boolean(),
        /** The first hundred by name. `GET /api/tenants` has the version of each. */
        tenants: z.array(z.string()),
        tenant_count: z.int(),
      }),
    ),
  },
  'GET /api/engines/{version}/users': {
    ...root,
    summary:
      'The tenants at this version, as recorded in their databases now. Checks `limit` tenants by name; `next` continues',
    params: z.object({ version }),
    query: pageQuery,
    answer: z.object({
      tenants: z.array(z.string()),
      /** Tenants whose databases could not be read. */
      unknown: z.array(z.string()),
      next: z.string().nullable(),
    }),
  },
  'GET /api/engines/{version}/sql': {
    ...root,
    summary: 'One SQL script that installs this version, or upgrades to it, in a transaction',
    params: z.object({ version }),
    /** The present version of the tenant; without it, Millrace is not installed. */
    query: z.object({ from: version.optional() }),
    answer: 'text',
  },
  'GET /api/launcher': {
    ...root,
    summary: 'The active launcher, up to a hundred standby launchers, and the hosts, a page at a time',
    query: pageQuery.extend({ cursor: id.optional() }),
    answer: z.object({
      active: z.object({ ...processView.shape, epoch: z.int(), started_at: time }).nullable(),
      standing_by: z.array(processView),
      hosts: z.array(
        z.object({
          ...processView.shape,
          engine: z.string(),
          tenants: z.int(),
          memory: z.int(),
          started_at: time,
          /** Null: its process is known to have ended. */
          beat_at: time.nullable(),
        }),
      ),
      next: z.string().nullable(),
    }),
  },
});
