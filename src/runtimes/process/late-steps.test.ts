import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { afterAll, describe, expect, it } from 'vitest';
import { isReachable, takeLate } from './late-steps.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-late-'));
chmodSync(folder, 0o755);
afterAll(() => rmSync(folder, { recursive: true }));

function run({ command, env }: ReturnType<typeof takeLate>): string {
  const [file = '', ...args] = command;
  return execFileSync(file, args, { env: { PATH: '/usr/bin:/bin', ...env }, encoding: 'utf8' });
}

describe('takeLate', () => {
  it('a command without a folder and loader variables is not changed', () => {
    const launch = { command: ['echo', 'a b'], env: { A: '1', PATH_LD_PRELOAD: 'x' } };
    expect(takeLate(launch, undefined)).toEqual(launch);
  });

  it.each(['LD_PRELOAD', 'LD_LIBRARY_PATH', 'LD_AUDIT', 'GCONV_PATH', 'GLIBC_TUNABLES', 'LOCPATH', 'TZDIR'])(
    'a command gets %s only when it is executed, with its value unchanged',
    (name) => {
      // the loader ignores this value and continues
      const value = `a "$b" 'c' \\ ;d`;
      const late = takeLate({ command: ['sh', '-c', `printf %s "$${name}"`], env: { [name]: value } }, undefined);
      expect(Object.keys(late.env)).not.toContain(name);
      expect(run(late)).toBe(value);
    },
  );

  it('a command begins in its folder, whatever its name, without our variables in its environment', () => {
    const odd = join(folder, `-o "d" $d`);
    mkdirSync(odd);
    const late = takeLate({ command: ['sh', '-c', 'pwd; env'], env: { LD_BIND_NOW: '1' } }, odd);
    const [where, ...variables] = run(late).split('\n');
    expect(where).toBe(odd);
    expect(variables.filter((line) => line.startsWith('MILLRACE_'))).toEqual([]);
    expect(variables).toContain('LD_BIND_NOW=1');
  });
});

describe('isReachable', () => {
  const stranger = { uid: 65_533, gid: 65_533 };
  it('a path is reachable through open folders only, even by a link', () => {
    const [open, closed] = [join(folder, 'open'), join(folder, 'closed')];
    for (const each of [open, closed, join(closed, 'inner')]) mkdirSync(each, { mode: 0o755 });
    chmodSync(closed, 0o700);
    symlinkSync(join(closed, 'inner'), join(open, 'link'));
    expect(isReachable(join(open, 'file'), stranger)).toBe(true);
    expect(isReachable(join(closed, 'file'), stranger)).toBe(false);
    expect(isReachable(join(closed, 'inner', 'file'), stranger)).toBe(false);
    expect(isReachable(join(open, 'link', 'file'), stranger)).toBe(false);
  });
});
