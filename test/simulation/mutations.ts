/**
 * Rules of the product, each broken in a database of simulations by a change to one of its functions or tables. A mutation
 * whose text is no longer found fails, because it would no longer test anything.
 */
import { type Db, Sql, sql } from '../../src/kernel/sql.ts';

export interface Mutation {
  /** The faulty behaviour. */
  readonly name: string;
  readonly breakRule: (db: Db) => Promise<void>;
}

/** In the function `name`, the text `from` is replaced by `to`, wherever it occurs. */
type Replacement = readonly [name: string, from: string, to: string];

export function changeFunction(name: string, ...replacements: readonly Replacement[]): Mutation {
  return {
    name,
    breakRule: async (db) => {
      for (const replacement of replacements) await replace(db, replacement);
    },
  };
}

async function replace(db: Db, [name, from, to]: Replacement): Promise<void> {
  const { text } = await db.one<{ text: string }>(sql`
    select pg_get_functiondef(oid) as text
      from pg_proc
     where proname = ${name} and pronamespace = 'millrace'::regnamespace`);
  if (!text.includes(from)) throw new Error(`${name} does not contain: ${from}`);
  await db.exec(new Sql([text.replaceAll(from, () => to)], []));
}

function alterTable(name: string, ...statements: readonly Sql[]): Mutation {
  return {
    name,
    breakRule: async (db) => {
      for (const statement of statements) await db.exec(statement);
    },
  };
}

const sum = '(t.count + excluded.count + excluded.fire * excluded.reach)';

export const mutations: readonly Mutation[] = [
  alterTable('I1: an instant fires once per request', sql`alter table firing drop constraint firing_pkey`),
  alterTable(
    'I1: marks move although the catch-up was not recorded',
    sql`create function forget() returns trigger language plpgsql as 'begin return null; end'`,
    sql`create trigger forget before insert on catchup for each row execute function forget()`,
  ),
  changeFunction('I2: a full token runs and stays full', [
    'count_tokens',
    `count = ${sum} % excluded.reach,`,
    `count = ${sum},`,
  ]),
  changeFunction('I2: a token is consumed though it is not full', [
    'count_tokens',
    `fire = ${sum} / excluded.reach,`,
    `fire = greatest(1, ${sum} / excluded.reach),`,
  ]),
  changeFunction('I2: a token that is more than full runs once', [
    'count_tokens',
    `fire = ${sum} / excluded.reach,`,
    `fire = least(1, ${sum} / excluded.reach),`,
  ]),
  changeFunction('I2: parents that end together count once', ['finish_runs', 'count(*)::integer as n', '1 as n']),
  changeFunction('I2: a retry takes a count off its token', [
    'queue_retries',
    'select * into v_runs from queue_runs',
    `update token set count = greatest(count - 1, 0)
      where (task_id, instant) in (select * from unnest(v_tasks, v_instants));
     select * into v_runs from queue_runs`,
  ]),
  changeFunction('I2: held tokens are never released', [
    'release_tokens',
    'where not k.paused order by 1, 2 limit',
    'where false order by 1, 2 limit',
  ]),
  changeFunction(
    'I3: a report needs no lease',
    ['lock_runs', 'and live.lease = r.lease', ''],
    ['finish_run', 'and live.lease = p_lease', ''],
  ),
  changeFunction('I3: what was cancelled counts', ['finish_runs', `and j.state <> 'cancelled'`, '']),
  changeFunction('I3: a result that is to be tried again counts', ['finish_runs', 'where not j.again and', 'where']),
  changeFunction(
    'I4: a hand-out does not bump the lease',
    ['lease_runs', 'lease = live.lease + 1', 'lease = greatest(live.lease, 1)'],
    ['hand_over_run', 'lease = live.lease + 1', 'lease = greatest(live.lease, 1)'],
  ),
  changeFunction('I4: a hand-over of several runs does not tell what it handed out', [
    'hand_over',
    `coalesce(json_agg(h), '[]')`,
    `'[]'::json`,
  ]),
  changeFunction('I4: a hand-over of one run does not tell what it handed out', [
    'hand_over',
    'json_build_array(v_run)',
    `'[]'::json`,
  ]),
  changeFunction(
    'a hand-over fills more places than there are',
    ['hand_over', 'lock_ready_runs(v_lanes, v_places, ', 'lock_ready_runs(v_lanes, v_places + 1, '],
    [
      'hand_over',
      'v_workers, v_incarnations, null, p_at) as l',
      'v_workers || v_workers[1], v_incarnations || v_incarnations[1], null, p_at) as l',
    ],
    [
      'hand_over',
      'v_ready.spots[:cardinality(v_workers)], v_ready.tasks[:cardinality(v_workers)]',
      'v_ready.spots, v_ready.tasks',
    ],
  ),
  changeFunction('ready runs are passed over', [
    'lock_ready_runs',
    'order by live.rank, live.id',
    'order by live.rank desc, live.id desc',
  ]),
  changeFunction('runs that wait at a gate are handed out', ['lock_ready_runs', 'and live.gate is null', '']),
  changeFunction('I4: a heartbeat renews nothing', ['renew_leases', 'until = excluded.until', 'until = w.until']),
  changeFunction('I4: a run is lost for ever and again', ['take_back_runs', 'losses < 2 and not cancel', 'not cancel']),
  changeFunction('I4: a run is reported lost for ever and again', [
    'lose_runs',
    'losses < 2 and not cancel',
    'not cancel',
  ]),
  changeFunction(
    'I4: lost runs do not come back',
    ['lost_runs', 'v.worker_id is not null and', 'false and'],
    ['renew_leases', 'v.losses < 2 and', 'false and'],
  ),
  changeFunction('I4: a run is taken from a worker that lives', [
    'lost_runs',
    'w.until <= p_at',
    `w.until <= p_at + interval '25 seconds'`,
  ]),
  changeFunction('a paused job’s tokens fire', [
    'count_tokens',
    'case when task.paused then 2147483647 else task.threshold end',
    'task.threshold',
  ]),
  changeFunction(
    'a paused job’s runs are handed out',
    ['lease_runs', 'and not coalesce(k.paused, false)', ''],
    ['hand_over_run', 'and not k.paused', ''],
  ),
  changeFunction('a retry is forgotten', ['finish_runs', 'where again', 'where again and attempt > 1']),
  changeFunction('attempts are not counted', ['finish_runs', 'f.attempt < k.max_attempts', 'true']),
  changeFunction('a retry does not wait', ['queue_retries', 'where due_at <= p_at', 'where true']),
  changeFunction('a cleared instant is tried again all the same', [
    'clear_tokens',
    'delete from retry where task_id = any (v_tasks) and instant = p_instant;',
    '',
  ]),
  changeFunction('only one of the runs made together has an event', [
    'append_run_events',
    'from unnest(p_created, p_created_causes, p_created_bodies) as c (subject, cause, body)',
    'from unnest(p_created, p_created_causes, p_created_bodies) as c (subject, cause, body) where c.subject = p_created[1]',
  ]),
  changeFunction('runs cancelled in the queue are missing from activity', [
    'append_run_events',
    'then cardinality(p_finished) else',
    'then 0 else',
  ]),
  changeFunction('runs that end together count as one in activity', [
    'finish_runs',
    `count(*) filter (where state = 'success') as success`,
    `least(1, count(*) filter (where state = 'success')) as success`,
  ]),
  changeFunction(
    'max_running is ignored',
    ['pass_runs', 'limit least(room.free, 1000)', 'limit 1000'],
    ['pass_runs', 'where w.place > ', 'where false and w.place > '],
  ),
  changeFunction('max_active_instants is ignored', [
    'pass_instants',
    'limit greatest(coalesce(g.capacity, 2147483647) - g.used, 0)',
    'limit 1000',
  ]),
  changeFunction('permits are not returned', [
    'finish_runs',
    'work_gates(v_runs.gates, v_left,',
    'work_gates(v_runs.gates, null,',
  ]),
  changeFunction(
    'permits of a run that is reported alone are not returned',
    ['finish_run', 'and live.permits is null', ''],
    ['finish_run', 'and k.gates is null', ''],
  ),
  changeFunction('a run that is reported alone starts nothing', [
    'finish_run',
    `e.kind in ('success', 'done')`,
    `e.kind = 'done'`,
  ]),
];
