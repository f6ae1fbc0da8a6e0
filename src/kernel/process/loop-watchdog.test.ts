import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileInto } from '../../../test/harness/compiled.ts';
import { blockedSignal } from './loop-watchdog.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-watchdog-'));
const built = join(folder, 'built');
const children: ChildProcess[] = [];
beforeAll(() => compileInto(built, 'kernel/process/loop-watchdog.ts'), 60_000);
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** Runs code beside a watchdog with a limit of 300 ms. */
async function run(code: string): Promise<{ code: number | null; signal: string | null; errors: string }> {
  const file = join(built, `run-${children.length}.js`);
  const watched = `import { LoopWatchdog } from './kernel/process/loop-watchdog.js';
    const watchdog = new LoopWatchdog({ limitMs: 300, lastWords: 'blocked\\n' });
    const busy = (ms) => { const from = performance.now(); while (performance.now() - from < ms); };
    setTimeout(() => { ${code} }, 300);`;
  writeFileSync(file, watched);
  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'ignore', 'pipe'] });
  children.push(child);
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += String(chunk)));
  return new Promise((resolve) =>
    child.once('close', (exitCode, signal) => resolve({ code: exitCode, signal, errors })),
  );
}

describe('LoopWatchdog', () => {
  it('the watchdog ends a process with a blocked event loop, and writes the reason', async () => {
    expect(await run('for (;;);')).toEqual({ code: null, signal: blockedSignal, errors: 'blocked\n' });
  }, 60_000);

  it('a process that is busy in short pieces survives', async () => {
    const pieces =
      'const piece = (left) => { busy(60); left > 0 ? setTimeout(piece, 0, left - 1) : process.exit(7); };';
    expect(await run(`${pieces} piece(20)`)).toMatchObject({ code: 7, signal: null });
  }, 60_000);

  it('the limit can be changed while the watchdog runs', async () => {
    expect(await run('watchdog.limit(60_000); busy(1_500); process.exit(7)')).toMatchObject({ code: 7, signal: null });
  }, 60_000);

  it('a process that waits without using the processor survives', async () => {
    const wait = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500); process.exit(7)';
    expect(await run(wait)).toMatchObject({ code: 7, signal: null });
  }, 60_000);
});
