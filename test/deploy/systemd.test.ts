/** The units in deploy/systemd, as systemd reads them, and against the product. No systemd runs them here. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { findService } from '../../scripts/services.js';
import { faultsOfSettings, roleOf, textOf } from '../harness/deploy/settings.ts';
import { needs } from '../harness/services.ts';

const folder = fileURLToPath(new URL('../../deploy/systemd', import.meta.url));
const units = readdirSync(folder);

it.each(units)('%s starts a role that exists, with settings that it accepts', async (unit) => {
  const text = textOf(`deploy/systemd/${unit}`);
  const [, command = ''] = /^ExecStart=\/usr\/local\/bin\/millrace (.+)$/m.exec(text) ?? [];
  for (const instance of ['api', 'launcher', 'worker']) {
    const argv = command.replace('%i', instance).split(' ');
    const env = { MILLRACE_URL: 'http://127.0.0.1:1', MILLRACE_KEY: 'mrk_any' };
    expect((await roleOf(argv, env))?.role).toBe(argv[0]);
  }
  const settings = [...text.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]);
  expect(settings.length).toBeGreaterThan(0);
  expect(faultsOfSettings(Object.fromEntries(settings) as Record<string, string>)).toEqual([]);
});

describe.skipIf(!needs('systemd'))('systemd', () => {
  it('understands every line of the units', () => {
    const room = mkdtempSync(join(tmpdir(), 'millrace-units-'));
    try {
      const paths = units.map((unit) => {
        const path = join(room, unit.replace('@', '@worker'));
        // systemd asks whether the program is there
        writeFileSync(path, textOf(`deploy/systemd/${unit}`).replace('/usr/local/bin/millrace', process.execPath));
        return path;
      });
      const { status, stderr } = spawnSync(findService('systemd') ?? '', ['verify', '--man=no', ...paths]);
      expect([status, stderr.toString()]).toEqual([0, '']);
    } finally {
      rmSync(room, { recursive: true });
    }
  });
});
