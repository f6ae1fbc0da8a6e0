/** Forecasts of triggers. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { id, idPath, instant, limit, time } from '../shapes.ts';

export const coming = z.object({
  instant: time,
  /** When it fires: the instant plus the trigger's offset. */
  due: time,
  /** The instant as local time in the trigger's zone, RFC 9557. */
  local: z.string(),
});

/** The trigger of a job that fires next. */
export const nextFiring = z.object({ trigger_id: id, trigger_name: z.string(), instant: time, due: time });

/** The immediate effects of applying a document. */
export const outlook = z.object({
  /** If true, nothing fires before the job is unpaused. */
  paused: z.boolean(),
  triggers: z.array(
    z.object({
      name: z.string(),
      /** Instants that fire at once, as if on time. */
      fires: z.array(time),
      /** `first`: the first hundred, or the first hundred after `after`; `more`: the number of instants after these. */
      caught_up: z.object({ total: z.int(), first: z.array(time), more: z.int(), last: time.nullable() }),
      skipped: z.object({ total: z.int(), first: time.nullable(), last: time.nullable() }),
      /** Instants left of an earlier catch-up. */
      under_way: z.int(),
      next: z.array(coming),
    }),
  ),
});

export const triggerEndpoints = endpoints({
  'GET /api/triggers/{id}/preview': {
    summary: 'The next instants of a trigger, or those `after` one; for a paused job, as if it were unpaused now',
    tag: 'triggers',
    allow: ['viewer', 'operator'],
    params: idPath,
    query: z.object({ count: limit(10), after: instant.optional() }),
    answer: z.object({
      trigger_id: id,
      trigger_name: z.string(),
      job_id: id,
      paused: z.boolean(),
      timezone: z.string().nullable(),
      items: z.array(coming),
      /** The `after` of the next page; null when there is none. */
      next: z.string().nullable(),
    }),
  },
});
