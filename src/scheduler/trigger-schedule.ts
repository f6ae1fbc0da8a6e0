/** Converts a trigger's row to the schedule that `calendar/` computes instants from. */
import type { ScheduleSpec } from '../calendar/schedule.ts';
import type { TriggerRow } from './queries.ts';

/** A trigger in the queue; in it at most once. */
export interface Due<T> {
  readonly id: string;
  /** When it fires: instant + offset. */
  readonly dueMs: number;
  readonly instantMs: number;
  readonly trigger: T;
}

type ScheduleRow = Pick<TriggerRow, 'start_at' | 'end_at' | 'period_ms' | 'cron' | 'timezone'>;

export function specOf(row: ScheduleRow): ScheduleSpec {
  return {
    startMs: row.start_at.getTime(),
    endMs: row.end_at?.getTime() ?? null,
    periodMs: row.period_ms,
    cron: row.cron,
    timezone: row.timezone,
  };
}
