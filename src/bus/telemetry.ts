/**
 * The events that the bus emits. `tenant` is the id of the tenant. Shells of other versions count them: names and fields may be
 * added, not changed.
 */
import { declareEvent } from '../kernel/telemetry.ts';

/** Events were accepted and committed. */
export const eventsPublished = declareEvent('bus_published', { tenant: 'text', events: 'number', bytes: 'number' });
/**
 * A batch was sent. `status` is a class (`2xx`) or the code of a failure (`timeout`). `latencyMs`: from the acceptance of each
 * event to the answer, if the batch was taken.
 */
export const batchSent = declareEvent('bus_sent', {
  tenant: 'text',
  subscriber: 'text',
  status: 'text',
  events: 'number',
  ms: 'number',
  latencyMs: 'numbers',
});
/** A batch was given up. */
export const batchGivenUp = declareEvent('bus_given_up', { tenant: 'text', subscriber: 'text', events: 'number' });
/** Retention dropped events that a subscriber had not received. */
export const eventsDropped = declareEvent('bus_dropped', { tenant: 'text', subscriber: 'text', events: 'number' });
/** Errands came back from a lost worker. */
export const errandsScrubbed = declareEvent('errands_scrubbed', { tenant: 'text', errands: 'number' });
