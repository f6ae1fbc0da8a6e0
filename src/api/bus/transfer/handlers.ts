/** Handlers of export and import. Credentials leave only encrypted with a passphrase. */
import { importBus } from '../../../bus/subscribers/import.ts';
import { makeSealer, type Sealer } from '../../../bus/subscribers/sealing.ts';
import { MillraceError } from '../../../errors.ts';
import { recording } from '../../../events/append.ts';
import { Slices } from '../../../kernel/process/slices.ts';
import { type ApiContext, type ApiHandlers, author } from '../../context.ts';
import { decryptCredential } from '../subscribers/views.ts';
import type { transferEndpoints } from './endpoints.ts';
import { exportSealable, exportSubscribers, exportTopics, type SealableRow } from './queries.ts';

type Endpoints = typeof transferEndpoints;

/** Limits of one import. */
const maxTopics = 100_000;
const maxSubscribers = 10_000;

interface ExportedBus {
  readonly subscribers: number;
  readonly json: string;
}

async function exportBus(ctx: ApiContext, sealer: Sealer | undefined): Promise<ExportedBus> {
  const [topics, subscribers] = await Promise.all([
    exportTopics(ctx.db, maxTopics + 1),
    sealer === undefined ? exportSubscribers(ctx.db, maxSubscribers + 1) : exportSealed(ctx, sealer),
  ]);
  if (topics.count > maxTopics || subscribers.count > maxSubscribers) {
    throw new MillraceError('conflict', 'the bus has too many topics or subscribers for one export');
  }
  const json = `{"version":1,"topics":${topics.json},"subscribers":${subscribers.json}}`;
  return { json, subscribers: subscribers.count };
}

async function exportSealed(ctx: ApiContext, sealer: Sealer): Promise<{ count: number; json: string }> {
  const slices = new Slices();
  const rendered: string[] = [];
  for (const row of await exportSealable(ctx.db, maxSubscribers + 1)) {
    rendered.push(`${row.json.slice(0, -1)},"sealed":${JSON.stringify(seal(ctx, sealer, row))}}`);
    if (slices.isOver) await slices.pause();
  }
  return { count: rendered.length, json: `[${rendered.join(',')}]` };
}

function seal(ctx: ApiContext, sealer: Sealer, { name, credential, secrets }: SealableRow): string | null {
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
