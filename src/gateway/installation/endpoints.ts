/** The gateway's own endpoints: health, keys, sessions, and what workers call. A tenant's are in `api/endpoints`. */
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
import { tenantEndpointsOfGateway } from '../tenants/endpoints.ts';

const id = z.guid({ error: 'not a UUID' });
const time = z.iso.datetime({ offset: true });
const role = z.enum(roles);

const key = z.object({ id, name: z.string(), role, tenant: z.string().nullable() });
const me = z.object({ role: z.union([role, z.literal('task')]), tenant: z.string().nullable(), actor: z.string() });

const session = z.object({
  id,
  /** How the audit names it. */
  actor: z.string(),
  role,
  tenant: z.string().nullable(),
  /** The key that it was opened with, or that made the link it was opened with; it ends with this key. */
  key: z.object({ id, name: z.string() }),
  opened_with: z.enum(['key', 'link']),
  created_at: time,
  /** To the minute. */
  used_at: time,
  expires_at: time,
  /** It is the session that asks. */
  current: z.boolean(),
});

/** A cursor is the id of the last item of the page before. */
const pageQuery = z.object({ limit: limit(1_000), cursor: id.optional() });

const internal = { tag: 'internal', allow: ['worker'] } as const;
const open = { allow: ['anyone'] } as const;

export const gatewayEndpoints = endpoints({
  ...tenantEndpointsOfGateway,
  'GET /healthz': {
    ...open,
    summary: '200 once this process serves and, under `up`, the default tenant is STARTED',
    tag: 'health',
    answer: z.object({
      status: z.literal('ok'),
      /** What is wrong all the same. */
      warnings: z.array(z.string()).optional(),
    }),
    others: {
      503: 'it does not run, and why; with a key of the tenant, in the words of the server or the engine, too',
    },
  },
  'GET /readyz': {
    ...open,
    summary: '200 while the database answers, takes writes and has room on its disk',
    tag: 'health',
    answer: z.object({ status: z.literal('ok') }),
    others: { 503: 'the database does not answer or refuses writes, or its disk is full: why, and since when' },
  },
  'GET /metrics': { summary: 'Prometheus metrics', tag: 'health', allow: ['viewer', 'operator'], answer: 'text' },
  'GET /openapi.json': {
    ...open,
    summary: 'This description',
    tag: 'health',
    answer: z.record(z.string(), z.unknown()),
  },
  'GET /docs': { ...open, summary: 'This description, for people', tag: 'health', answer: 'bytes' },
  'POST /api/keys': {
    summary: 'Make a key; it is shown only this once',
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
      items: z.array(z.object({ ...key.shape, created_at: time, created_by: z.string() })),
      next: z.string().nullable(),
    }),
  },
  'DELETE /api/keys/{id}': {
    summary: 'Revoke a key; its sessions end with it',
    tag: 'keys',
    allow: ['root'],
    params: z.object({ id }),
    status: 204,
    answer: 'none',
    others: { 409: "it is the installation's own root key, which is replaced by a restart with another" },
  },
  'GET /api/installation': {
    summary:
      'What this installation is: its version, settings of the PostgreSQL server that make it slow and, for root, how it is configured, secrets left out',
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
      /** Null for all but root. `set`: by the environment or an option; the others are defaults. */
      settings: z
        .array(z.object({ name: z.string(), value: z.string().nullable(), set: z.boolean(), about: z.string() }))
        .nullable(),
    }),
  },
  'GET /api/installation/audit': {
    summary: 'Who made and revoked keys, signed in or was refused, and changed tenants, newest first',
    tag: 'audit',
    allow: ['root'],
    query: auditQuery,
    answer: auditPage,
  },
  'GET /api/me': {
    summary: 'Who this key or session is',
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
    others: { 401: 'the link is spent or too old, or the key is wrong' },
  },
  'DELETE /api/session': { ...open, summary: 'Sign out', tag: 'keys', status: 204, answer: 'none' },
  'POST /api/session/links': {
    summary: 'Make a one-time sign-in link, valid for ten minutes',
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
    summary: 'End a session, and the streams that it has open',
    tag: 'keys',
    allow: ['root'],
    params: z.object({ id }),
    status: 204,
    answer: 'none',
  },
  'DELETE /api/sessions': {
    summary: 'End all sessions, save the one that asks',
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
    summary: 'Ask for work of any tenant; waits until there is some, or a signal, or the time is up',
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
    summary: 'Renew the leases of the runs held',
    body: heartbeatRequest,
    bodyBytes: heartbeatBytes,
    answer: heartbeatAnswer,
  },
  'POST /internal/logs': {
    ...internal,
    summary: 'Ship output',
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
