import { expect, it } from 'vitest';
import { usualTarget } from './target.ts';

const listed = (version: string, fault: string | null = null) => ({ version, contract: 1, fault, running: false });
const engines = {
  list: async () => [
    listed('0.9.0', 'it cannot be loaded'),
    listed('0.5.0-beta.1'),
    listed('0.3.0'),
    listed('0.2.0-rc.1'),
    listed('0.1.0'),
  ],
};

it('the default target of an upgrade is the newest usable stable engine; a pre-release only from a pre-release', async () => {
  expect(await usualTarget({ engines }, '0.1.0')).toBe('0.3.0');
  expect(await usualTarget({ engines }, null)).toBe('0.3.0');
  expect(await usualTarget({ engines }, '0.2.0-rc.1')).toBe('0.5.0-beta.1');
});
