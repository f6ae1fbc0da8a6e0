import { expect, it } from 'vitest';
import { declareEvent, makeTelemetry } from './telemetry.ts';

const boiled = declareEvent('boiled', { kettle: 'text', litres: 'number', degrees: 'numbers' });
const poured = declareEvent('poured', { litres: 'number' });

it('every listener of an event gets it, and a listener that throws hurts neither the work nor other listeners', () => {
  const faults: unknown[] = [];
  const heard: number[] = [];
  const telemetry = makeTelemetry((error) => faults.push(error));
  boiled.on(telemetry, () => {
    throw new Error('a bad listener');
  });
  boiled.on(telemetry, ({ litres, degrees }) => heard.push(litres, ...degrees));
  poured.on(telemetry, ({ litres }) => heard.push(-litres));
  boiled.emit(telemetry, { kettle: 'a', litres: 3, degrees: [99, 100] });
  expect(heard).toEqual([3, 99, 100]);
  expect(faults).toEqual([new Error('a bad listener')]);
});

it('events of another version, with an unknown name or other fields, reach no listener and do no harm', () => {
  const faults: unknown[] = [];
  const heard: number[] = [];
  const telemetry = makeTelemetry((error) => faults.push(error));
  boiled.on(telemetry, ({ litres }) => heard.push(litres));
  telemetry.emit('steamed', { litres: 1 });
  telemetry.emit('boiled', {});
  telemetry.emit('boiled', { kettle: 'a', litres: '2', degrees: [100] });
  telemetry.emit('boiled', { kettle: 'a', litres: 3, degrees: ['hot'] });
  telemetry.emit('boiled', { kettle: 'a', litres: 4, degrees: [], colour: 'a field of a newer version' });
  expect(heard).toEqual([4]);
  expect(faults).toEqual([]);
});
