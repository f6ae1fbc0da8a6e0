/** Handlers of export and import. Credentials leave only encrypted with a passphrase. */
import { importBus } from '../../../bus/subscribers/import.ts';
import { makeSealer, type Sealer } from '../../../bus/subscribers/sealing.ts';
import type { CallAnswer } from '../../../http/client.ts';
import { MillraceError } from '../../../errors.ts';
import { recording } from '../../../events/append.ts';
import { type ApiContext, type ApiHandlers, author } from '../../context.ts';
import { decryptCredential } from '../subscribers/views.ts';
import type { transferEndpoints } from './endpoints.ts';
import { exportSubscribers, type ExportedRow, exportTopics } from './queries.ts';

type Endpoints = typeof transferEndpoints;
type Exported = CallAnswer<Endpoints['GET /bus/export']>;

/** Limits of one import. */
const maxTopics = 100_000;
const maxSubscribers = 10_000;

async function exportBus(ctx: ApiContext, sealer: Sealer | undefined): Promise<{ json: string; subscribers: number }> {
  const [topics, rows] = await Promise.all([
    exportTopics(ctx.db, maxTopics + 1),
    exportSubscribers(ctx.db, maxSubscribers + 1),
  ]);
  if (topics.count > maxTopics || rows.length > maxSubscribers) {
    throw new MillraceError('conflict', 'the bus has too many topics or subscribers for one export');
  }
  const subscribers: Exported['subscribers'] = rows.map(({ credential, secrets, ...row }) => ({
    ...row,
    sealed: sealer === undefined ? null : seal(ctx, sealer, { credential, secrets, ...row }),
  }));
  const json = `{"version":1,"topics":${topics.json},"subscribers":${JSON.stringify(subscribers)}}`;
  return { json, subscribers: rows.length };
}

function seal(ctx: ApiContext, sealer: Sealer, { name, credential, secrets }: ExportedRow): string | null {
  if (credential === null && secrets.length === 0) return null;
  return sealer.seal(name, {
    uuid: decryptCredential(ctx, credential),
    secrets: secrets.map((secret) => ctx.secrets.decrypt(secret).toString('base64')),
  });
}

function respond({ json }: { json: string }): Response {
  return new Response(json, { headers: { 'content-type': 'application/json' } });
}

export const transferHandlers: ApiHandlers<Endpoints> = {
  'GET /bus/export': async (_, ctx) => respond(await exportBus(ctx, undefined)),
  'POST /bus/export': async ({ body, caller }, ctx) => {
    const exported = await exportBus(ctx, await makeSealer(body.passphrase));
    await recording(ctx.db, author(ctx, caller), async (tx) => {
      const counts = { subscribers: exported.subscribers };
      tx.record('millrace_bus', { type: 'bus.exported', subject: null, body: counts });
    });
    return respond(exported);
  },
  'POST /bus/import': async ({ body, caller }, ctx) => {
    const { topics, subscribers, skipped } = await importBus(ctx, author(ctx, caller), body);
    return { topics, subscribers, skipped: [...skipped] };
  },
};
