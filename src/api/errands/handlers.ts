/** Handlers of errands. A retry and its event are one commit; couriers are woken after it. */
import { type BusWork, parseKey } from '../../bus/errand-keys.ts';
import type { ErrandState } from '../../errands/contract.ts';
import { countErrands, promoteErrands, reviveErrands } from '../../errands/queries.ts';
import { recording } from '../../events/append.ts';
import type { Input } from '../../http/endpoint.ts';
import { cutPage } from '../bus/page-bytes.ts';
import { type ApiContext, type ApiHandlers, author, badRequest } from '../context.ts';
import { toWire } from '../wire-times.ts';
import type { errandEndpoints } from './endpoints.ts';
import { type ErrandRow, listErrands, stateLetters, subscriberNames } from './queries.ts';

type Endpoints = typeof errandEndpoints;

/** Keys named in the event of a retry. */
const maxNamedKeys = 20;

const stateNames = Object.fromEntries(Object.entries(stateLetters).map(([name, letter]) => [letter, name])) as Readonly<
  Record<ErrandRow['state'], ErrandState>
>;

async function list({ query }: Input<Endpoints['GET /api/errands']>, ctx: ApiContext) {
  const { queue, state, limit } = query;
  const after = parseCursor(query.cursor);
  const [rows, main, aux] = await Promise.all([
    listErrands(ctx.db, { queue, state, after, limit: limit + 1 }),
    countErrands(ctx.db, 'main'),
    countErrands(ctx.db, 'aux'),
  ]);
  const names = await subscriberNames(
    ctx.db,
    rows.flatMap(({ key }) => idOf(parseKey(key)) ?? []),
  );
  const page = cutPage(
    rows,
    limit,
    (row) => render(row, names),
    (row) => `${row.queue}:${row.key}`,
  );
  return { ...page, counts: { main, aux } };
}

function parseCursor(cursor: string | undefined): { queue: string; key: string } | undefined {
  if (cursor === undefined) return undefined;
  const colon = cursor.indexOf(':');
  if (colon < 0) throw badRequest('query.cursor', 'is not `next` of a page');
  return { queue: cursor.slice(0, colon), key: cursor.slice(colon + 1) };
}

/** The subscriber or the replay that it is about. */
function idOf(work: BusWork | undefined): string | undefined {
  if (work === undefined || work.kind === 'relay') return undefined;
  return work.kind === 'replay' ? work.replay : work.subscriber;
}

function render(row: ErrandRow, names: ReadonlyMap<string, string>) {
  const work = parseKey(row.key);
  const subscriber = names.get(idOf(work) ?? '') ?? null;
  return toWire({ ...row, work: work?.kind ?? null, subscriber, state: stateNames[row.state] });
}

async function retry({ body, caller }: Input<Endpoints['POST /api/errands/retry']>, ctx: ApiContext) {
  const { queue } = body;
  const keys = [...new Set(body.keys)];
  const done = await recording(ctx.db, author(ctx, caller), async (tx) => {
    const promoted = await promoteErrands(tx, queue, keys);
    const revived = (await reviveErrands(tx, queue, keys)).length;
    if (promoted + revived > 0) {
      const named = { queue, promoted, revived, keys: keys.slice(0, maxNamedKeys) };
      tx.record('millrace_bus', { type: 'errands.retried', subject: null, body: named });
    }
    return { promoted, revived };
  });
  ctx.hints.send('bus');
  return done;
}

export const errandHandlers: ApiHandlers<Endpoints> = { 'GET /api/errands': list, 'POST /api/errands/retry': retry };
