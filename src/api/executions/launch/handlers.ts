/** Launches executions, one or many at once. A launch is idempotent by its key. */
import type { Delivered, LaunchBody } from '../../../contract/flow-messages.ts';
import { MillraceError } from '../../../errors.ts';
import type { Json } from '../../../flows/json.ts';
import type { CallAnswer } from '../../../http/client.ts';
import type { Input } from '../../../http/endpoint.ts';
import { newId } from '../../../kernel/id.ts';
import type { Caller } from '../../../contract/roles.ts';
import { type ApiContext, type ApiHandlers, badRequest } from '../../context.ts';
import { deliver, type Letter, refusalOf, whyWaiting } from '../deliver.ts';
import { isTooLarge, requireSmall, tooLarge } from '../value-size.ts';
import type { launchEndpoints } from './endpoints.ts';
import { findCallingDepth } from './queries.ts';

type Endpoints = typeof launchEndpoints;
type BulkAnswer = CallAnswer<Endpoints['POST /api/executions/bulk']>;

async function launch(input: Input<Endpoints['POST /api/executions']>, ctx: ApiContext): Promise<Response> {
  const { body, caller } = input;
  const depth = await depthOf(ctx, caller);
  const letter = letterOf({ ...body, input: requireSmall(body.input, 'body.input'), depth }, newId(ctx.time.now()));
  const [delivered] = await deliver(ctx, caller, [letter]);
  return answerOfLaunch(ctx, delivered);
}

/** Also the answer to a fork. */
export async function answerOfLaunch(ctx: ApiContext, delivered: Delivered | undefined): Promise<Response> {
  if (delivered === undefined) throw new MillraceError('internal', 'the launch has no outcome');
  const { outcome, execution: id } = delivered;
  switch (outcome) {
    case 'committed':
      return Response.json({ id, created: true }, { status: 201 });
    case 'known':
      return Response.json({ id, created: false });
    case 'accepted': {
      const detail = await whyWaiting(ctx, delivered);
      return Response.json({ id, created: true, accepted: true, detail }, { status: 202 });
    }
    case 'refused':
    case 'gone':
      throw refusalOf(delivered);
    default:
      return outcome satisfies never;
  }
}

type Wanted = Omit<LaunchBody, 'point'>;

export function letterOf(wanted: { [K in keyof Wanted]: Wanted[K] | undefined }, id: string): Letter {
  const given = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined));
  return { id, execution: id, body: { point: 'launch', ...given } };
}

/** Executions may launch others by their tasks, too, and must not do so without end. */
const maxDepth = 64;

/** Of a task that performs a step of an execution: one more than the depth of that. */
async function depthOf(ctx: ApiContext, caller: Caller | undefined): Promise<number | undefined> {
  if (caller?.kind !== 'task') return undefined;
  const depth = await findCallingDepth(ctx.db, caller.run);
  if (depth === undefined) return undefined;
  if (depth < maxDepth) return depth + 1;
  throw new MillraceError('conflict', `executions launched each other ${maxDepth} times; this one may launch no other`);
}

async function launchMany(
  { body, caller }: Input<Endpoints['POST /api/executions/bulk']>,
  ctx: ApiContext,
): Promise<BulkAnswer> {
  rejectRepeatedKeys(body.items.map(({ key }) => key));
  const depth = await depthOf(ctx, caller);
  const { flow, version } = body;
  const letters = body.items.map(({ input, key }) =>
    isTooLarge(input)
      ? undefined
      : letterOf({ flow, version, input: input as Json, key, depth }, newId(ctx.time.now())),
  );
  const sent = letters.filter((letter) => letter !== undefined);
  const delivered = sent.length === 0 ? [] : await deliver(ctx, caller, sent);
  if (delivered.length > 0 && delivered.every(isUnknownFlow)) throw refusalOf(delivered[0] ?? {});
  const outcomes = new Map(delivered.map((each) => [each.id, each]));
  return { items: letters.map((letter) => itemOf(letter === undefined ? undefined : outcomes.get(letter.id ?? ''))) };
}

function rejectRepeatedKeys(keys: readonly (string | undefined)[]): void {
  const seen = new Set<string>();
  for (const [i, key] of keys.entries()) {
    if (key === undefined) continue;
    if (seen.has(key)) throw badRequest(`body.items[${i}].key`, 'is the key of an earlier item');
    seen.add(key);
  }
}

/** It is the same for all items. */
function isUnknownFlow({ outcome, code = '' }: Delivered): boolean {
  return outcome === 'refused' && ['no_such_flow', 'no_such_version'].includes(code);
}

function itemOf(delivered: Delivered | undefined): BulkAnswer['items'][number] {
  if (delivered === undefined) {
    const { code, message: detail } = tooLarge('input');
    return { id: null, outcome: 'refused', code, detail };
  }
  const { outcome, execution: id, code, detail } = delivered;
  if (outcome === 'refused' || outcome === 'gone')
    return { id: null, outcome: 'refused', code: code ?? 'conflict', detail: detail ?? 'it was refused' };
  return { id, outcome: outcome === 'committed' ? 'created' : outcome };
}

export const launchHandlers: ApiHandlers<Endpoints> = {
  'POST /api/executions': launch,
  'POST /api/executions/bulk': launchMany,
};
