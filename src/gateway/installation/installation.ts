/** The version and configuration of this installation, and the audit of keys, sign-ins and tenants. */
import { MillraceError } from '../../errors.ts';
import { bodyOf, nameIn, readAudit } from '../../events/audit.ts';
import { findTopic, type LoggedEvent } from '../../events/queries.ts';
import type { Handlers } from '../../http/endpoint.ts';
import { packageVersion } from '../../kernel/process/package-files.ts';
import type { Db } from '../../kernel/sql.ts';
import { readServerSpeed } from '../../postgres/slow-settings.ts';
import type { GatewayContext } from './context.ts';
import type { gatewayEndpoints } from './endpoints.ts';
import { readStandings } from './standings.ts';

type Keys = 'GET /api/installation' | 'GET /api/installation/audit';

export const installationHandlers: Handlers<Pick<typeof gatewayEndpoints, Keys>, GatewayContext> = {
  'GET /api/installation': async ({ caller }, { control, settings }) => ({
    version: packageVersion,
    node: process.versions.node,
    database: await readServerSpeed(control),
    ...(await renderStandings(control)),
    settings: caller?.kind !== 'task' && caller?.role === 'root' ? [...settings] : null,
  }),
  'GET /api/installation/audit': async ({ query }, { control }) => {
    const topicId = query.topic === undefined ? undefined : await findTopic(control, query.topic);
    if (query.topic !== undefined && topicId === undefined) {
      const fault = { path: 'query.topic', message: 'there is no such topic' };
      throw new MillraceError('bad_request', `${fault.path}: ${fault.message}`, { faults: [fault] });
    }
    const { before, actor, machines, limit } = query;
    const { events, next } = await readAudit(control, { before, actor, topicId, machines, limit });
    return { items: events.map(renderEvent), next };
  },
};

async function renderStandings(control: Db) {
  const { couriers, conductors, warnings } = await readStandings(control);
  return {
    couriers: couriers.map(renderProcess),
    conductors: conductors.map((row) => ({ ...renderProcess(row), functions: row.functions })),
    warnings,
  };
}

interface ProcessRow {
  readonly id: string;
  readonly machine: string;
  readonly version: string;
  readonly startedAt: Date;
  readonly beatAt: Date;
}

function renderProcess({ id, machine, version, startedAt, beatAt }: ProcessRow) {
  return { id, machine, version, started_at: startedAt.toISOString(), last_seen_at: beatAt.toISOString() };
}

/** The name of a key or tenant is that in its event. */
function renderEvent(event: LoggedEvent) {
  const { seq, at, actor, topic, type, subject } = event;
  const body = bodyOf(event);
  return { seq, at: at.toISOString(), actor, topic, type, subject, name: nameIn(body), page: null, body };
}
