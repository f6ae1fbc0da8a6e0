/** The handlers of topics, publishing and health of the event bus. */
import { changeOwner, deleteTopic, findTopic, listTopics } from '../../../bus/topics/topics.ts';
import { publish } from '../../../bus/publish/publish.ts';
import { postedResponse } from '../../../bus/publish/posted-response.ts';
import type { Caller } from '../../../contract/roles.ts';
import { MillraceError } from '../../../errors.ts';
import { pause } from '../../../kernel/service.ts';
import { type Db, sql } from '../../../kernel/sql.ts';
import { type ApiContext, type ApiHandlers, author } from '../../context.ts';
import type { topicEndpoints } from './endpoints.ts';

const scaling = { errands: 100, delayMs: 1_000 } as const;

const pong = async (_: unknown, { time }: ApiContext) => ({ pong: new Date(time.now()).toISOString() });

export const topicHandlers: ApiHandlers<typeof topicEndpoints> = {
  'GET /bus/health': async () => ({}),
  'GET /bus/health/ping': pong,
  'GET /bus/health/ping.json': pong,
  'GET /bus/pulse': async (_, { db }) => void (await db.one(sql`select 1`)),
  'GET /bus/pulse/scaling': async ({ signal }, { db }) => {
    if (await isBusy(db)) await pause(scaling.delayMs, signal);
  },
  'GET /bus/topics': async (_, { db, time }) =>
    new Response(await listTopics(db, new Date(time.now())), { headers: { 'content-type': 'application/json' } }),
  'POST /bus/topics/{name}': async ({ params, body, caller, request }, ctx) => {
    if (caller === undefined) throw new MillraceError('unauthenticated', 'send a key');
    const key = request.headers.get('idempotency-key');
    const [posted] = await publish(ctx, [{ caller, topic: params.name, body, key }]);
    if (posted === undefined) throw new Error('a request to publish has no outcome');
    const { status, headers, text } = postedResponse(posted);
    return new Response(text, { status, headers });
  },
  'DELETE /bus/topics/{name}': async ({ params: { name }, caller }, ctx) => {
    const topic = await findTopic(ctx.db, name);
    if (topic === undefined) throw new MillraceError('not_found', `topic not found: ${name}`);
    if (!mayDelete(caller, topic.owner))
      throw new MillraceError('forbidden', `topic claimed: only the owner of ${name} and operators may delete it`);
    if (!(await deleteTopic(ctx.db, author(ctx, caller), topic)))
      throw new MillraceError('conflict', `topic ${name} was changed meanwhile; try again`);
  },
  'PUT /bus/topics/{name}/owner': async ({ params: { name }, body, caller }, ctx) => {
    if (!(await changeOwner(ctx.db, author(ctx, caller), name, body)))
      throw new MillraceError('not_found', `topic not found: ${name}`);
  },
};

function mayDelete(caller: Caller | undefined, owner: string | null): boolean {
  if (caller === undefined || caller.kind === 'task') return false;
  if (caller.role === 'root' || caller.role === 'operator') return true;
  return owner !== null && caller.identity?.id === owner;
}

async function isBusy(db: Db): Promise<boolean> {
  const { due } = await db.one<{ due: number }>(sql`
    select count(*)::integer as due
      from (select
              from errand e
             where e.queue = 'main' and e.state = 'r'
               and (e.id <@ (select range_agg(r.ids)
                               from errand_hold h
                              cross join lateral unnest(h.ids) as r (ids)
                              where h.queue = 'main')) is not true
             limit ${scaling.errands}) as ready`);
  return due >= scaling.errands;
}
