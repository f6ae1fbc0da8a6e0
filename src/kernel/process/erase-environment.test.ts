import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, it } from 'vitest';
import { bundleModule } from '../../../test/harness/bundled.ts';
import { eraseEnvironment, valuesIn } from './erase-environment.ts';

it('the values of named variables are found in a block, and no others', () => {
  const block = Buffer.from('KEY=secret\0OTHER=KEY=x\0MY_KEY=y\0KEY=again\0LAST');
  const values = valuesIn(block, ['KEY', 'LAST']).map(({ at, length }) => block.toString('latin1', at, at + length));
  expect(values).toEqual(['secret', 'again']);
});

it('a variable that is not set costs nothing', () => {
  expect(() => eraseEnvironment(['MILLRACE_TEST_NOT_SET'])).not.toThrow();
});

it.skipIf(process.platform !== 'linux')('an erased variable is in neither the process nor /proc', async () => {
  const file = await bundleModule('kernel/process/erase-environment.ts');
  const script = `
    import { readFileSync } from 'node:fs';
    import { eraseEnvironment } from ${JSON.stringify(file)};
    eraseEnvironment(['SECRET']);
    const shown = readFileSync('/proc/self/environ', 'latin1');
    console.log(process.env.SECRET, shown.includes('hidden'), shown.includes('KEPT=here'));`;
  const env = { ...process.env, SECRET: 'hidden', KEPT: 'here' };
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', script], { env }).toString();
  rmSync(dirname(file), { recursive: true });
  expect(printed.trim()).toBe('undefined false true');
});
