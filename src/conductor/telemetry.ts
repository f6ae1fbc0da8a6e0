/** Telemetry events of conductors. */
import { declareEvent } from '../kernel/telemetry.ts';

/** A put was answered. `runs`: messages that it committed; `latenessMs`: of its timers. */
export const runsCommitted = declareEvent('flows.committed', {
  tenant: 'text',
  executions: 'number',
  runs: 'number',
  lost: 'number',
  latenessMs: 'numbers',
});

/** Hosted functions were called. */
export const functionsCalled = declareEvent('flows.called', { tenant: 'text', calls: 'number' });
