/**
 * Activity per minute: the number of runs by result, and how late triggers fired and runs started. It is read from the table
 * `activity`, in which the stages count, so its cost does not depend on history or traffic.
 */
import type { CallAnswer } from '../../http/client.ts';
import { type Db, type Sql, sql } from '../../kernel/sql.ts';
import type { ApiHandlers } from '../context.ts';
import type { overviewEndpoints } from './endpoints.ts';

type Endpoints = Pick<typeof overviewEndpoints, 'GET /api/activity'>;
type Minute = CallAnswer<Endpoints['GET /api/activity']>['items'][number];

const minuteMs = 60_000;
const maxSteps = 360;
/** In minutes. The longest span, thirty days, is `maxSteps` of the last. */
const stepLengths = [1, 2, 5, 10, 15, 20, 30, 60, 120];

/** `toMs` is exclusive. Steps begin at multiples of their length, so a later request has the same boundaries. */
export interface Steps {
  readonly stepMs: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/** The last step contains `untilMs`. */
export function stepsOf(minutes: number, untilMs: number): Steps {
  const length = stepLengths.find((each) => minutes <= each * maxSteps) ?? Math.ceil(minutes / maxSteps);
  const stepMs = length * minuteMs;
  const toMs = Math.ceil(untilMs / stepMs) * stepMs;
  return { stepMs, fromMs: toMs - Math.ceil(minutes / length) * stepMs, toMs };
}

type Row = Omit<Minute, 'at'> & { at: Date };

function listActivity(db: Db, { stepMs, fromMs, toMs }: Steps): Promise<Row[]> {
  const ms = (part: Sql): Sql => sql`(extract(epoch from ${part}) * 1000)::float8`;
  return db.rows<Row>(sql`
    select date_bin(${stepMs}::integer * interval '1 millisecond', at, timestamptz '1970-01-01 00:00:00+00') as at,
           sum(success)::integer as success, sum(failure)::integer as failure, sum(timeout)::integer as timeout,
           sum(error)::integer as error, sum(cancelled)::integer as cancelled, sum(fired)::integer as fired,
           ${ms(sql`sum(late) / nullif(sum(fired), 0)`)} as late_mean,
           ${ms(sql`max(worst_late) filter (where fired > 0)`)} as late_worst,
           ${ms(sql`sum(wait) / nullif(sum(started), 0)`)} as wait_mean,
           ${ms(sql`max(worst_wait) filter (where started > 0)`)} as wait_worst
      from activity
     where at >= ${new Date(fromMs)} and at < ${new Date(toMs)}
     group by 1`);
}

const nothing = {
  success: 0,
  failure: 0,
  timeout: 0,
  error: 0,
  cancelled: 0,
  fired: 0,
  late_mean: null,
  late_worst: null,
  wait_mean: null,
  wait_worst: null,
};

export const activityHandlers: ApiHandlers<Endpoints> = {
  'GET /api/activity': async ({ query }, ctx) => {
    const steps = stepsOf(query.minutes, query.until?.getTime() ?? ctx.time.now());
    const known = new Map((await listActivity(ctx.db, steps)).map((row) => [row.at.getTime(), row]));
    const { stepMs, fromMs, toMs } = steps;
    const items = Array.from({ length: (toMs - fromMs) / stepMs }, (_, i) => {
      const atMs = fromMs + i * stepMs;
      return { ...(known.get(atMs) ?? nothing), at: new Date(atMs).toISOString() };
    });
    return { step: stepMs / minuteMs, items };
  },
};
