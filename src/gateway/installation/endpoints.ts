/** The gateway's own endpoints: health, keys, sessions, and those that workers call. Those of tenants are in `api/endpoints`. */
import { z } from 'zod';
import { auditPage, auditQuery } from '../../api/audit/endpoints.ts';
import { limit } from '../../api/shapes.ts';
import { roles } from '../../contract/roles.ts';
import {
  claimAnswer,
  claimRequest,
  definitionsAnswer,
  definitionsRequest,
  heartbeatAnswer,
  heartbeatBytes,
  heartbeatRequest,
  logsAnswer,
  logsRequest,
  reportAnswer,
  reportRequest,
  secretsAnswer,
  secretsRequest,
} from '../../contract/wire.ts';
import { endpoints } from '../../http/endpoint.ts';
import { tokenEndpoints } from '../bus/api-token-endpoints.ts';
import { tenantEndpointsOfGateway } from '../tenants/endpoints.ts';

const id = z.guid({ error: 'not a UUID' });
const time = z.iso.datetime({ offset: true });
const role = z.enum(roles);

const key = z.object({ id, name: z.string(), role, tenant: z.string().nullable() });
const me = z.object({ role: z.union([role, z.literal('task')]), tenant: z.string().nullable(), actor: z.string() });

const session = z.object({
  id,
  /** The name of the session in the audit. */
  actor: z.string(),
  role,
  tenant: z.string().nullable(),
  /** The key that opened it, or that created the link that opened it. It ends with this key. */
  key: z.object({ id, name: z.string() }),
  opened_with: z.enum(['key', 'link']),
  created_at: time,
  /** With an accuracy of a minute. */
  used_at: time,
  expires_at: time,
  /** It is the session of the caller. */
  current: z.boolean(),
});

/** A cursor is the id of the last item of the previous page. */
const pageQuery = z.object({ limit: limit(1_000), cursor: id.optional() });

const internal = { tag: 'internal', allow: ['worker'] } as const;
const open = { allow: ['anyone'] } as const;

export const gatewayEndpoints = endpoints({
  ...tenantEndpointsOfGateway,
  ...tokenEndpoints,
  'GET /healthz': {
    ...open,
    summary: '200 once this process serves and, under `up`, the default tenant is STARTED',
    tag: 'health',
    answer: z.object({
      status: z.literal('ok'),
      /** Faults that do not prevent the work. */
      warnings: z.array(z.string()).optional(),
    }),
    others: {
      503: 'not healthy, with the reason; a key of the tenant also gets the message of the server or the engine',
    },
  },
  'GET /readyz': {
    ...open,
    summary: '200 while the database answers, accepts writes and has disk space',
    tag: 'health',
    answer: z.object({
      status: z.literal('ok'),
      /** Faults that do not prevent this process from serving. */
      warnings: z.array(z.string()).optional(),
    }),
    others: {
      503: 'the database does not answer or rejects writes, or its disk is full; with the reason and since when',
    },
  },
  'GET /metrics': { summary: 'Prometheus metrics', tag: 'health', allow: ['viewer', 'operator'], answer: 'text' },
  'GET /openapi.json': {
    ...open,
    summary: 'This description',
    tag: 'health',
    answer: z.record(z.string(), z.unknown()),
  },
  'GET /docs': { ...open, summary: 'This description as a page', tag: 'health', answer: 'bytes' },
  'POST /api/keys': {
    summary: 'Create a key; its secret is shown only once',
    tag: 'keys',
    allow: ['root'],
    body: z.strictObject({
      name: z.string().min(1).max(200),
      role,
      tenant: z.string().min(1).max(200).optional(),
    }),
    status: 201,
    answer: z.object({ ...key.shape, key: z.string() }),
  },
  'GET /api/keys': {
    summary: 'Keys, without their secrets, the oldest first, a page at a time',
    tag: 'keys',
    allow: ['root'],
    query: pageQuery,
    answer: z.object({
      items: z.array(
        z.object({
          ...key.shape,
          identity: id.describe('owns topics and subscriptions; the same for all secrets of a rotated key'),
          created_at: time,
          created_by: z.string(),
          expires_at: time.nullable().describe('when a rotated key ends'),
        }),
      ),
      next: z.string().nullable(),
    }),
  },
  'POST /api/keys/{id}/rotate': {
    summary: 'Give a key another secret, shown only once; the former one is accepted for 24 hours',
    tag: 'keys',
    allow: ['root'],
    params: z.object({ id }),
    status: 201,
    answer: z.object({ ...key.shape, key: z.string(), former_expires_at: time }),
    others: { 409: 'it is the root key of the installation, or the key of a worker' },
  },
  'DELETE /api/keys/{id}': {
    summary: 'Revoke a key; its sessions end with it',
    tag: 'keys',
    allow: ['root'],
    params: z.object({ id }),
    status: 204,
    answer: 'none',
    others: { 409: 'it is the root key of the installation, which is replaced by a restart with another one' },
  },
  'GET /api/installation': {
    summary:
      'The version of this installation, its couriers and conductors, settings of PostgreSQL that cost speed and, for root, the configuration without secrets',
    tag: 'installation',
    allow: ['viewer', 'operator'],
    answer: z.object({
      version: z.string(),
      node: z.string(),
      /** The server of the control database, and its settings that cost speed. */
      database: z.object({
        version: z.string(),
        slow: z.array(z.object({ name: z.string(), value: z.string(), advice: z.string() })),
      }),
      /** Couriers that are alive. They deliver the events of all tenants. */
      couriers: z.array(
        z.object({ id, machine: z.string(), version: z.string(), started_at: time, last_seen_at: time }),
      ),
      /** Conductors that are alive. They drive executions of flows, of all tenants, and call these functions. */
      conductors: z.array(
        z.object({
          id,
          machine: z.string(),
          version: z.string(),
          functions: z.array(z.string()),
          started_at: time,
          last_seen_at: time,
        }),
      ),
      /** What an operator should know, with the remedy. */
      warnings: z.array(z.string()),
      /** Null for roles other than root. `set`: by the environment or an option; otherwise it is the default. */
      settings: z
        .array(z.object({ name: z.string(), value: z.string().nullable(), set: z.boolean(), about: z.string() }))
        .nullable(),
    }),
  },
  'GET /api/installation/audit': {
    summary: 'The audit of keys, sign-ins, rejected credentials and changes of tenants, newest first',
    tag: 'audit',
    allow: ['root'],
    query: auditQuery,
    answer: auditPage,
  },
  'GET /api/me': {
    summary: 'The role, tenant and name of this key or session',
    tag: 'keys',
    allow: [...roles, 'task'],
    answer: me,
  },
  'POST /api/session': {
    ...open,
    summary: 'Sign a browser in with a one-time link or a key; answers with a cookie',
    tag: 'keys',
    body: z.union([z.strictObject({ link: z.string().max(200) }), z.strictObject({ key: z.string().max(200) })], {
      error: 'must have a link or a key, as text',
    }),
    status: 201,
    answer: me,
    others: { 401: 'the link was used or has expired, or the key is wrong' },
  },
  'DELETE /api/session': { ...open, summary: 'Sign out', tag: 'keys', status: 204, answer: 'none' },
  'POST /api/session/links': {
    summary: 'Create a one-time sign-in link, valid for ten minutes',
    tag: 'keys',
    allow: ['root'],
    status: 201,
    answer: z.object({ url: z.string(), expires_at: time }),
  },
  'GET /api/sessions': {
    summary: 'Open sessions of browsers, the newest first, a page at a time',
    tag: 'keys',
    allow: ['root'],
    query: pageQuery,
    answer: z.object({ items: z.array(session), next: z.string().nullable() }),
  },
  'DELETE /api/sessions/{id}': {
    summary: 'End a session and its open streams',
    tag: 'keys',
    allow: ['root'],
    params: z.object({ id }),
    status: 204,
    answer: 'none',
  },
  'DELETE /api/sessions': {
    summary: 'End all sessions except that of the caller',
    tag: 'keys',
    allow: ['root'],
    answer: z.object({ ended: z.int() }),
  },
  'POST /int-api/heartbeat': {
    summary: "Waterwheel's worker heartbeat",
    tag: 'tasks and workers',
    allow: ['worker'],
    body: z.object({
      uuid: id,
      addr: z.string().max(300),
      last_seen_datetime: time,
      running_tasks: z.int().min(0).max(1_000_000),
      total_tasks: z.int().min(0).max(1_000_000),
      version: z.string().max(100),
    }),
    answer: 'none',
  },
  'POST /internal/claim': {
    ...internal,
    summary: 'Claim runs of any tenant; waits for runs, a signal, or the end of the time',
    body: claimRequest,
    bodyBytes: 256 * 1024,
    answer: claimAnswer,
  },
  'POST /internal/report': {
    ...internal,
    summary: 'Report results',
    body: reportRequest,
    bodyBytes: 4 * 1024 * 1024,
    answer: reportAnswer,
  },
  'POST /internal/heartbeat': {
    ...internal,
    summary: 'Renew the leases of the held runs',
    body: heartbeatRequest,
    bodyBytes: heartbeatBytes,
    answer: heartbeatAnswer,
  },
  'POST /internal/logs': {
    ...internal,
    summary: 'Send output of tasks',
    body: logsRequest,
    bodyBytes: 4 * 1024 * 1024,
    answer: logsAnswer,
  },
  'POST /internal/definitions': {
    ...internal,
    summary: 'Fetch task definitions',
    body: definitionsRequest,
    bodyBytes: 256 * 1024,
    answer: definitionsAnswer,
  },
  'POST /internal/secrets': {
    ...internal,
    summary: 'Read the stash values that a leased run names',
    body: secretsRequest,
    bodyBytes: 1024 * 1024,
    answer: secretsAnswer,
  },
});

export type GatewayEndpoints = typeof gatewayEndpoints;
