import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { bundleModule } from '../../test/harness/bundled.ts';
import { checkpoints, parseCheckpoint } from './checkpoint.ts';

it('reads a name, and at which passage to die', () => {
  expect(parseCheckpoint('triggers.fire')).toEqual({ name: 'triggers.fire', passage: 1 });
  expect(parseCheckpoint('triggers.settle.noted:12')).toEqual({ name: 'triggers.settle.noted', passage: 12 });
  for (const bad of ['', 'triggers', 'triggers.fire:', 'triggers.fire:0', 'triggers.fire:-1', 'triggers.fire:1:1'])
    expect(parseCheckpoint(bad), bad).toBeUndefined();
});

it('has exactly the checkpoints that are passed somewhere, each in one place', () => {
  const src = fileURLToPath(new URL('..', import.meta.url));
  const passed = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .flatMap((name) => [...readFileSync(join(src, name), 'utf8').matchAll(/\bcheckpoint\('([^']+)'\)/g)])
    .map(([, name]) => name);
  const known = Object.values(checkpoints).flat();
  expect([new Set(passed), passed.length]).toEqual([new Set(known), known.length]);
});

it('dies at that passage of that checkpoint, and nowhere else', async () => {
  const file = await bundleModule('kernel/checkpoint.ts');
  const script = `
    import { arm, checkpoint } from ${JSON.stringify(pathToFileURL(file).href)};
    checkpoint('claim.made');
    arm({ name: 'claim.made', passage: 2 });
    process.on('exit', () => console.log('said goodbye'));
    for (const name of ['claim.made', 'claim.ask', 'claim.ask', 'claim.made', 'claim.ask']) {
      checkpoint(name);
      console.log('passed ' + name);
    }`;
  const died = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  rmSync(dirname(file), { recursive: true });
  expect(died.signal).toBe('SIGKILL');
  expect(died.stdout).toBe('passed claim.made\npassed claim.ask\npassed claim.ask\n');
});
