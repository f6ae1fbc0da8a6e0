/** The events of claims and reports. Gateways of other versions count them: names and fields may be added, but not changed. */
import { declareEvent } from '../kernel/telemetry.ts';

export const claimed = declareEvent('claimed', { runs: 'number', polls: 'number' });
/** Runs that left in the commit of a report; they count as claimed, too. */
export const handedOver = declareEvent('handed_over', { runs: 'number' });
export const reported = declareEvent('reported', { runs: 'number', applied: 'number', created: 'number' });
