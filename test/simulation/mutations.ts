/**
 * Rules of the product, each broken in a database of simulations by a change to one of its functions or tables. What is
 * replaced must be there: a mutation that no longer bites is a test that no longer tests.
 */
import { type Db, Sql, sql } from '../../src/kernel/sql.ts';

export interface Mutation {
  /** What is wrong then. */
  readonly name: string;
  readonly breakRule: (db: Db) => Promise<void>;
}

/** A function of the schema, with a part of its text replaced by another. */
type Replacement = readonly [name: string, from: string, to: string];

function changed(name: string, ...replacements: readonly Replacement[]): Mutation {
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
  await db.exec(new Sql([text.replace(from, () => to)], []));
}

function altered(name: string, ...statements: readonly Sql[]): Mutation {
  return {
    name,
    breakRule: async (db) => {
      for (const statement of statements) await db.exec(statement);
    },
  };
}

const sum = '(t.count + excluded.count + excluded.fire * excluded.reach)';

export const mutations: readonly Mutation[] = [
  altered('I1: an instant fires as often as it is asked to', sql`alter table firing drop constraint firing_pkey`),
  altered(
    'I1: marks move on though catch-up was not noted',
    sql`create function forget() returns trigger language plpgsql as 'begin return null; end'`,
    sql`create trigger forget before insert on catchup for each row execute function forget()`,
  ),
  changed('I2: a full token runs and stays full', [
    'count_tokens',
    `count = ${sum} % excluded.reach,`,
    `count = ${sum},`,
  ]),
  changed('I2: a token is consumed though it is not full', [
    'count_tokens',
    `fire = ${sum} / excluded.reach,`,
    `fire = greatest(1, ${sum} / excluded.reach),`,
  ]),
  changed('I2: a token that is more than full runs once', [
    'count_tokens',
    `fire = ${sum} / excluded.reach,`,
    `fire = least(1, ${sum} / excluded.reach),`,
  ]),
  changed('I2: parents that end together count once', ['finish_runs', 'count(*)::integer as n', '1 as n']),
  changed('I2: a retry takes a count off its token', [
    'queue_retries',
    'select * into v_runs from queue_runs',
    `update token set count = greatest(count - 1, 0)
      where (task_id, instant) in (select * from unnest(v_tasks, v_instants));
     select * into v_runs from queue_runs`,
  ]),
  changed('I2: what is held is never released', [
    'release_tokens',
    'where not k.paused order by 1, 2 limit',
    'where false order by 1, 2 limit',
  ]),
  changed('I3: a report needs no lease', ['lock_runs', 'and live.lease = r.lease', '']),
  changed('I3: what was cancelled counts', ['finish_runs', `and j.state <> 'cancelled'`, '']),
  changed('I3: a result that is to be tried again counts', ['finish_runs', 'where not j.again and', 'where']),
  changed('I4: a hand-out does not bump the lease', [
    'lease_runs',
    'lease = live.lease + 1',
    'lease = greatest(live.lease, 1)',
  ]),
  changed('I4: a heartbeat renews nothing', ['renew_leases', 'until = excluded.until', 'until = w.until']),
  changed('I4: a run is lost for ever and again', ['take_back_runs', 'losses < 2 and not cancel', 'not cancel']),
  changed('I4: a run is reported lost for ever and again', ['lose_runs', 'losses < 2 and not cancel', 'not cancel']),
  changed(
    'I4: lost runs do not come back',
    ['lost_runs', 'v.worker_id is not null and', 'false and'],
    ['renew_leases', 'v.losses < 2 and', 'false and'],
  ),
  changed('I4: a run is taken from a worker that lives', [
    'lost_runs',
    'w.until <= p_at',
    `w.until <= p_at + interval '25 seconds'`,
  ]),
  changed('a paused job’s tokens fire', [
    'count_tokens',
    'case when task.paused then 2147483647 else task.threshold end',
    'task.threshold',
  ]),
  changed('a paused job’s runs are handed out', ['lease_runs', 'and not coalesce(k.paused, false)', '']),
  changed('a retry is forgotten', ['finish_runs', 'where again', 'where again and attempt > 1']),
  changed('attempts are not counted', ['finish_runs', 'f.attempt < k.max_attempts', 'true']),
  changed('a retry does not wait', ['queue_retries', 'where due_at <= p_at', 'where true']),
  changed('a cleared instant is tried again all the same', [
    'clear_tokens',
    'delete from retry where task_id = any (v_tasks) and instant = p_instant;',
    '',
  ]),
  changed('of runs made together one is told', [
    'append_run_events',
    'from unnest(p_created, p_created_causes, p_created_bodies) as c (subject, cause, body)',
    'from unnest(p_created, p_created_causes, p_created_bodies) as c (subject, cause, body) where c.subject = p_created[1]',
  ]),
  changed('what is cancelled in the queue is not counted in its minute', [
    'append_run_events',
    'v_activity.cancelled := cardinality(p_finished);',
    'v_activity.cancelled := 0;',
  ]),
  changed('what ends with others is counted as one', [
    'finish_runs',
    `count(*) filter (where state = 'success') as success`,
    `least(1, count(*) filter (where state = 'success')) as success`,
  ]),
  changed(
    'max_running is not looked at',
    ['pass_runs', 'limit least(room.free, 1000)', 'limit 1000'],
    ['pass_runs', 'where w.place > ', 'where false and w.place > '],
  ),
  changed('max_active_instants is not looked at', [
    'pass_instants',
    'limit greatest(coalesce(g.capacity, 2147483647) - g.used, 0)',
    'limit 1000',
  ]),
  changed('a limit is not given back', [
    'finish_runs',
    'work_gates(v_runs.gates, v_left,',
    'work_gates(v_runs.gates, null,',
  ]),
];
