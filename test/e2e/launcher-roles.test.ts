/** The roles `launcher` and `host` as processes: which of them survives the other, and how each ends. */
import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestInstallation } from '../harness/installation.ts';
import { isProcessRunning } from '../../src/kernel/process/process-stat.ts';
import { productMain, productNode } from '../harness/product.ts';
import { until } from '../harness/until.ts';
import { sql } from '../../src/kernel/sql.ts';

let world: TestInstallation;
const others: ChildProcess[] = [];
beforeAll(async () => {
  world = await TestInstallation.start({ launchers: 0 });
}, 60_000);
afterAll(async () => {
  for (const child of others) child.kill('SIGKILL');
  await world.close();
});

interface Started {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly exit: Promise<number | string | null>;
}

/** In a process group of its own, as a shell or a supervisor would start it. */
function start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Started {
  const child = spawn(productNode, [productMain, ...args], {
    env: { ...process.env, ...world.env, MILLRACE_LOG: 'info', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  others.push(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const exit = new Promise<number | string | null>((resolve) =>
    child.once('exit', (code, signal) => resolve(signal ?? code)),
  );
  return { child, output: () => output, exit };
}

const groupOf = ({ child }: Started): number => -(child.pid ?? Number.NaN);
const gone = (pids: readonly number[]) => until('they are gone', () => !pids.some(isProcessRunning));
/** The pid of the host that runs the default tenant; waits for it. */
const hostOfDefault = (): Promise<number> =>
  until('the default tenant runs', async () => {
    const row = await world.inControl((db) =>
      db.maybeOne<{ pid: number }>(sql`
        select host.pid from launch join tenant on tenant.id = launch.tenant_id join host on host.id = launch.host_id
         where tenant.name = 'default' and launch.state = 'STARTED'`),
    );
    return row?.pid;
  });

describe('launcher that is stopped', () => {
  it('a stopped launcher without a standby dismisses its hosts, and exits with 0', async () => {
    const launcher = start(['launcher']);
    const host = await hostOfDefault();
    launcher.child.kill('SIGTERM');
    expect(await launcher.exit).toBe(0);
    await gone([host]);
    expect(await world.hosts()).toEqual([]);
    expect(await world.schedulers()).toBe(0);
    expect(await world.placed('default')).toMatchObject({ state: 'ENABLED', reason: 'no launcher is active' });
  });

  it('a stopped launcher leaves its hosts to a standby, without restarts', async () => {
    const active = start(['launcher']);
    const host = await hostOfDefault();
    const { order } = await world.started('default');
    const standby = start(['launcher']);
    const launchers = () => world.inControl((db) => db.rows(sql`select from launcher`));
    await until('it stands by', async () => (await launchers()).length === 2);
    active.child.kill('SIGTERM');
    expect(await active.exit).toBe(0);
    await until('the other is active', () => /"msg":"launcher active"/.test(standby.output()));
    expect(await hostOfDefault()).toBe(host);
    expect((await world.started('default')).order).toBe(order);
    standby.child.kill('SIGTERM');
    await standby.exit;
    await gone([host]);
  });
});

describe('host', () => {
  it('a host survives its launcher, signals to its group, and the reader of its log', async () => {
    const launcher = start(['launcher']);
    const host = await hostOfDefault();
    for (const signal of ['SIGHUP', 'SIGINT', 'SIGKILL'] as const) {
      try {
        process.kill(groupOf(launcher), signal);
      } catch {
        // the process group has already ended
      }
    }
    await launcher.exit;
    launcher.child.stderr?.destroy();
    const before = await world.inControl((db) => db.one<{ id: string }>(sql`select id from host`));
    // it writes to its log, which no process reads any more
    await world.inControl((db) => db.exec(sql`delete from host`));
    const after = await until('it registers again', () =>
      world.inControl((db) => db.maybeOne<{ id: string; pid: number }>(sql`select id, pid from host`)),
    );
    expect(after.pid).toBe(host);
    expect(after.id).not.toBe(before.id);
    const next = start(['launcher']);
    await until('it is given its tenant back', async () => (await hostOfDefault()) === host);
    next.child.kill('SIGTERM');
    await next.exit;
    await gone([host]);
  });

  it('a killed host is noticed at once, and another gets its tenants', async () => {
    const launcher = start(['launcher']);
    const host = await hostOfDefault();
    const { order } = await world.started('default');
    process.kill(host, 'SIGKILL');
    await until('it is in another host', async () => {
      const placed = await world.placed('default');
      return placed?.state === 'STARTED' && placed.order > order;
    });
    expect(await hostOfDefault()).not.toBe(host);
    launcher.child.kill('SIGTERM');
    await launcher.exit;
  });

  it('a host that was started by hand gets tenants, and stays when the launcher ends', async () => {
    const host = start(['host']);
    await until('it is registered', async () => (await world.hosts()).includes(host.child.pid ?? 0));
    const launcher = start(['launcher']);
    expect(await hostOfDefault()).toBe(host.child.pid);
    launcher.child.kill('SIGTERM');
    expect(await launcher.exit).toBe(0);
    await until('it has let go', async () => (await world.schedulers()) === 0);
    expect(await world.hosts()).toEqual([host.child.pid]);
    host.child.kill('SIGTERM');
    expect(await host.exit).toBe(0);
    expect(await world.hosts()).toEqual([]);
  });

  it('a host that uses too much memory logs that, and ends with a failure', { timeout: 60_000 }, async () => {
    // less than it has when it does nothing
    const host = start(['host'], { MILLRACE_HOST_MEMORY: '32' });
    expect(await host.exit).toBe(1);
    expect(host.output()).toMatch(/uses \d+ MiB of memory, more than 48/);
    await world.inControl((db) => db.exec(sql`delete from host`));
  });
});
