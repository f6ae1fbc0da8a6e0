/** The events that schedulers emit. Hosts of other versions count them: names and fields may be added, not changed. */
import { declareEvent } from '../kernel/telemetry.ts';

/** Due triggers have fired. `latenessMs`: of each trigger, from its due time to the commit. */
export const triggersFired = declareEvent('fired', {
  tenant: 'text',
  triggers: 'number',
  runs: 'number',
  latenessMs: 'numbers',
});
/** Missed instants have fired. */
export const instantsCaughtUp = declareEvent('caught_up', { tenant: 'text', triggers: 'number', runs: 'number' });
/** Runs were taken back from lost workers. */
export const leasesLost = declareEvent('leases_lost', { tenant: 'text', runs: 'number' });
/** Retries have become runs. */
export const retried = declareEvent('retried', { tenant: 'text', runs: 'number' });
