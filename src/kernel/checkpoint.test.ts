import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { bundleModule } from '../../test/harness/bundled.ts';
import { parseArmed } from './checkpoint.ts';

it('parseArmed reads a name and the passage at which to die', () => {
  expect(parseArmed('triggers.fire')).toEqual({ name: 'triggers.fire', passage: 1 });
  expect(parseArmed('triggers.settle.noted:12')).toEqual({ name: 'triggers.settle.noted', passage: 12 });
  for (const bad of ['', 'triggers', 'triggers.', 'triggers.fire:', 'triggers.fire:0', 'triggers.fire:-1', 'a.b:1:1'])
    expect(parseArmed(bad), bad).toBeUndefined();
});

it('a process dies at the armed passage of the armed checkpoint only', async () => {
  const file = await bundleModule('kernel/checkpoint.ts');
  const script = `
    import { arm, declareCheckpoints } from ${JSON.stringify(pathToFileURL(file).href)};
    const { checkpoint } = declareCheckpoints('claim.made');
    const { checkpoint: other } = declareCheckpoints('claim.ask');
    checkpoint('claim.made');
    arm({ name: 'claim.made', passage: 2 });
    process.on('exit', () => console.log('said goodbye'));
    for (const name of ['claim.made', 'claim.ask', 'claim.ask', 'claim.made', 'claim.ask']) {
      (name === 'claim.made' ? checkpoint : other)(name);
      console.log('passed ' + name);
    }`;
  const died = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  rmSync(dirname(file), { recursive: true });
  expect(died.signal).toBe('SIGKILL');
  expect(died.stdout).toBe('passed claim.made\npassed claim.ask\npassed claim.ask\n');
});
