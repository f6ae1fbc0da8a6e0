import { hostname } from 'node:os';
import { expect, it } from 'vitest';
import { machine, machineOf } from './machine.ts';

it('a machine is identified by its name, and a container also by its PID namespace', () => {
  expect(machineOf('pid:[4026531836]', 'mill')).toBe('mill');
  expect(machineOf('pid:[4026532281]', 'mill')).toBe('mill/4026532281');
  expect(machineOf(undefined, 'mill')).toBe('mill');
  expect(machine.split('/')[0]).toBe(hostname());
});
