import { hostname } from 'node:os';
import { expect, it } from 'vitest';
import { machine, machineOf } from './machine.ts';

it('a machine is called by its name, a container of it also by what it counts its processes in', () => {
  expect(machineOf('pid:[4026531836]', 'mill')).toBe('mill');
  expect(machineOf('pid:[4026532281]', 'mill')).toBe('mill/4026532281');
  expect(machineOf(undefined, 'mill')).toBe('mill');
  expect(machine.split('/')[0]).toBe(hostname());
});
