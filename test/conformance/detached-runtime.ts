/**
 * A small real runtime that uses every member of the contract: commands that go on without their worker. A record of each
 * process, without the values of secrets, lies in a folder. While the folder is missing the runtime is unavailable. A process
 * that was killed by anything but the runtime is lost.
 */
import { spawn } from 'node:child_process';
import { access, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { failed, lost, mismatch, type Runtime, success, type WorkerIdentity } from '../../src/runtimes/contract.ts';

interface Record {
  readonly pid: number;
  readonly incarnation: number;
  readonly env: readonly string[];
}

export function detachedRuntime(folder: string, worker: () => WorkerIdentity): Runtime {
  return {
    name: 'detached',
    serves: ['process'],
    outlives: true,
    async probe() {
      return await access(folder).then(
        () => undefined,
        () => `there is no folder ${folder}`,
      );
    },
    async adopt() {
      for (const name of await readdir(folder)) {
        const record = JSON.parse(await readFile(join(folder, name), 'utf8')) as Record;
        if (record.incarnation >= worker().incarnation) continue;
        kill(record.pid);
        await rm(join(folder, name));
      }
    },
    async run({ work, env, secrets, facts }, output, signal) {
      if (work.kind !== 'process') return mismatch('detached', work);
      if (signal.aborted) return failed('it was stopped before it began');
      const [file = '', ...args] = work.command;
      const child = spawn(file, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'], env });
      const ended = new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
        child.once('close', (code, by) => resolve([code, by]));
      });
      const visible = Object.entries(env).flatMap(([name, value]) => (secrets.has(name) ? [] : [`${name}=${value}`]));
      const record: Record = { pid: child.pid ?? 0, incarnation: worker().incarnation, env: visible };
      await writeFile(join(folder, facts.run), JSON.stringify(record));
      child.stdout.on('data', (data: Buffer) => void output.write('out', data));
      child.stderr.on('data', (data: Buffer) => void output.write('err', data));
      return await new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          if (signal.reason !== 'draining' && signal.reason !== 'lost') return kill(record.pid);
          child.unref();
          resolve(failed('let go'));
        });
        void ended.then(async ([code, by]) => {
          await rm(join(folder, facts.run), { force: true });
          if (by !== null && !signal.aborted) resolve(lost(`it was killed by ${by}`));
          else resolve(code === 0 ? success : failed(`it ended with exit code ${code}`, code));
        });
      });
    },
  };
}

function kill(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it has ended
  }
}
