import { expect, it } from 'vitest';
import { makeTelemetry } from './telemetry.ts';

it('telemetry tells every listener of that name, and a listener that throws hurts neither work nor others', () => {
  const faults: unknown[] = [];
  const heard: number[] = [];
  const telemetry = makeTelemetry((error) => faults.push(error));
  telemetry.on('retried', () => {
    throw new Error('a bad listener');
  });
  telemetry.on('retried', ({ runs }) => heard.push(runs));
  telemetry.on('leases_lost', ({ runs }) => heard.push(-runs));
  telemetry.emit('retried', { tenant: 'a', runs: 3 });
  telemetry.emit('fired', { tenant: 'a', triggers: 1, runs: 1, latenessMs: [0] });
  expect(heard).toEqual([3]);
  expect(faults).toEqual([new Error('a bad listener')]);
});
