/** The inbox: messages that no commit has consumed. */
import type { EngineContext } from '../../contract/context.ts';
import type { FlowMessage } from '../../contract/flow-messages.ts';
import type { AcceptOutcome, Member } from '../../contract/flows.ts';
import { onPool, sql } from '../../kernel/sql.ts';
import { jsonArray, smallIntegerArray, textArray, uuidArray } from '../../postgres/binary-array.ts';
import { resolveLaunches } from './launch.ts';
import type { LoadedFlow } from './loaded-flow.ts';
import { fetchExecutions, flowsOf } from './load.ts';
import { commitFormat, memoryOf } from './memory.ts';
import { type InboxRow, messageText, toMessage } from './message-text.ts';
import { isSealed } from './sealing.ts';

/** Ids are indexed. */
const maxIdChars = 255;

export async function acceptMessages(
  ctx: EngineContext,
  messages: readonly FlowMessage[],
  owner: string | null,
): Promise<AcceptOutcome[]> {
  const launches = messages.filter(({ point }) => point === 'launch');
  const others = messages.filter(({ point }) => point !== 'launch');
  const outcomes = new Map<FlowMessage, AcceptOutcome>();
  for (const [message, outcome] of await acceptLaunches(ctx, launches, owner)) outcomes.set(message, outcome);
  for (const [message, outcome] of await acceptOthers(ctx, others)) outcomes.set(message, outcome);
  return messages.map((message) => outcomes.get(message) ?? { kind: 'gone' });
}

type Accepted = readonly (readonly [FlowMessage, AcceptOutcome])[];

async function acceptLaunches(
  ctx: EngineContext,
  launches: readonly FlowMessage[],
  owner: string | null,
): Promise<Accepted> {
  if (launches.length === 0) return [];
  const resolved = await resolveLaunches(ctx, launches);
  const refused: [FlowMessage, AcceptOutcome][] = [];
  const valid: { message: FlowMessage; flow: LoadedFlow; key: string | null; depth: number }[] = [];
  for (const [i, message] of launches.entries()) {
    const each = resolved[i];
    if (each?.ok === true) {
      const { flow, launch } = each;
      valid.push({ message, flow, key: launch.key ?? null, depth: launch.depth ?? 0 });
    } else if (each !== undefined) refused.push([message, { kind: 'refused', code: each.code, detail: each.detail }]);
  }
  if (valid.length === 0) return refused;
  const rows = await onPool(ctx.pool).rows<{ id: string; holder: string | null }>(sql`
    select id, holder
      from accept_launches(
        ${uuidArray(valid.map(({ message }) => message.execution))}::uuid[],
        ${textArray(valid.map(({ key }) => key))}::text[],
        ${uuidArray(valid.map(({ flow }) => flow.flowId))}::uuid[],
        ${valid.map(({ flow }) => flow.version)}::integer[],
        ${smallIntegerArray(valid.map(({ depth }) => depth))}::smallint[],
        ${jsonArray(valid.map(({ message, flow }) => textFor(ctx, message, flow)))}::json[],
        ${owner}::uuid, ${commitFormat}::smallint, ${new Date(ctx.time.now())}::timestamptz)`);
  const holders = new Map(rows.map(({ id, holder }) => [id, holder]));
  const accepted = valid.map(({ message }): readonly [FlowMessage, AcceptOutcome] => {
    const holder = holders.get(message.execution) ?? null;
    return [message, holder === null ? { kind: 'accepted' } : { kind: 'known', execution: holder }];
  });
  return [...refused, ...accepted];
}

async function acceptOthers(ctx: EngineContext, messages: readonly FlowMessage[]): Promise<Accepted> {
  if (messages.length === 0) return [];
  const db = onPool(ctx.pool);
  const heads = await db.rows<{
    id: string;
    status: number;
    flow_id: string;
    version: number;
    name: string;
    project_id: null;
  }>(sql`
    select e.id, e.status, e.flow_id, e.version, f.name, f.project_id
      from execution e join flow f on f.id = e.flow_id
     where e.id = any (${uuidArray(messages.map(({ execution }) => execution))}::uuid[])`);
  const flows = await flowsOf(ctx, heads);
  const byId = new Map(heads.map((head) => [head.id, head]));
  const isOver = ({ execution }: FlowMessage): boolean => (byId.get(execution)?.status ?? 0) > 2;
  const known = await findKnown(ctx, messages.filter(isOver));
  const outcomes = messages.map((message): readonly [FlowMessage, AcceptOutcome] => {
    const head = byId.get(message.execution);
    if (head === undefined) return [message, { kind: 'gone' }];
    if (known.has(message)) return [message, { kind: 'known', execution: head.id }];
    if (isOver(message)) return [message, { kind: 'refused', code: 'over', detail: 'the execution has ended' }];
    if (message.id.length > maxIdChars) return [message, tooLongId];
    return [message, { kind: 'accepted' }];
  });
  const stored = outcomes.filter(([, { kind }]) => kind === 'accepted').map(([message]) => message);
  if (stored.length === 0) return outcomes;
  const texts = stored.map((message) => {
    const head = byId.get(message.execution);
    return textFor(ctx, message, head && flows.get(`${head.flow_id}/${head.version}`));
  });
  await db.exec(sql`
    select send_to_executions(
      ${uuidArray(stored.map(({ execution }) => execution))}::uuid[], ${textArray(stored.map(({ id }) => id))}::text[],
      ${jsonArray(texts)}::json[], ${new Date(ctx.time.now())}::timestamptz)`);
  return outcomes;
}

/** Messages to executions that have ended, which had their effect before: their sender did not get the answer, and repeats them. */
async function findKnown(ctx: EngineContext, messages: readonly FlowMessage[]): Promise<ReadonlySet<FlowMessage>> {
  const found = await fetchExecutions(ctx, [...new Set(messages.map(({ execution }) => execution))]);
  const seen = new Map(found.map((each) => [each.id, new Set(memoryOf(each).state.seen.map(({ id }) => id))]));
  return new Set(messages.filter(({ id, execution }) => seen.get(execution)?.has(id) === true));
}

const tooLongId: AcceptOutcome = {
  kind: 'refused',
  code: 'bad_request',
  detail: `the id of a message has at most ${maxIdChars} characters`,
};

function textFor({ secrets }: EngineContext, message: FlowMessage, flow: LoadedFlow | undefined): string {
  return messageText(message, flow !== undefined && isSealed(flow) ? secrets : undefined);
}

/** Of one page. A message has about 1 MB at most, and thousands may have been stored while no conductor ran. */
const maxPageBytes = 16 * 1024 * 1024;

/** Messages of executions that this member may take, the oldest first: at least one, and no more than fit in a page. */
export async function readWaiting(ctx: EngineContext, member: Member, limit: number): Promise<FlowMessage[]> {
  const rows = await onPool(ctx.pool).rows<InboxRow>(sql`
    select p.id, p.execution_id, p.body
      from (
        select o.*, octet_length(o.body::text) as bytes,
               sum(octet_length(o.body::text)) over (order by o.at, o.execution_id, o.id) as bytes_so_far
          from (
            select i.id, i.execution_id, i.at, i.body
              from inbox i
              join execution e on e.id = i.execution_id
             where i.at <= ${new Date(ctx.time.now())}::timestamptz
               and (e.owner is null or e.owner = ${member.id}::uuid
                    or e.owner <> all (${uuidArray(member.living)}::uuid[]))
             order by i.at, i.execution_id, i.id
             limit ${limit}
          ) as o
      ) as p
     where p.bytes_so_far - p.bytes < ${maxPageBytes}
     order by p.at, p.execution_id, p.id`);
  return rows.map((row) => toMessage(row, ctx.secrets));
}
