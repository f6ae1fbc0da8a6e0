/**
 * Two launchers, of which the active one falls silent: the other takes over within seconds, the running host and its scheduler
 * stay as they are, and a launcher that comes back stands by.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RoleProcess } from '../chaos/role-process.ts';
import { TestInstallation } from '../harness/installation.ts';
import { type Network, networkTo } from '../harness/network.ts';
import { until } from '../harness/until.ts';
import { sql } from '../../src/kernel/sql.ts';

/** The lease's five seconds, and what a busy machine adds. */
const takenOverMs = 30_000;

let world: TestInstallation;
let network: Network;
let host: RoleProcess;
const roles: RoleProcess[] = [];

beforeAll(async () => {
  world = await TestInstallation.start({ launchers: 0 });
  network = await networkTo(world.control);
  host = start('host', ['host']);
}, 60_000);
afterAll(async () => {
  await Promise.all(roles.map((role) => role.release()));
  network.close();
  await world.close();
});

function start(name: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): RoleProcess {
  const role = new RoleProcess({ name, args, env: { ...world.env, ...env }, mayEnd: () => false });
  roles.push(role);
  return role;
}

const launcher = (name: string, env: Readonly<Record<string, string>> = {}): RoleProcess =>
  start(name, ['launcher', '--no-hosts'], { MILLRACE_LOG: 'info', ...env });
const times = (role: RoleProcess, said: string): number => role.output().split(`"msg":"${said}"`).length - 1;
const isActive = (role: RoleProcess): boolean => times(role, 'launcher active') > 0;
const standing = () => world.inControl((db) => db.one<{ n: number }>(sql`select count(*)::integer as n from launcher`));

describe('standby launcher', () => {
  it.each([
    ['is killed', {}, (active: RoleProcess) => active.kill(), async () => {}],
    ['is frozen', {}, freeze, async (active: RoleProcess) => active.signal('SIGCONT')],
    ['has lost its network', { through: true }, async () => network.fallSilent(), async () => network.close()],
  ] as const)(
    'a standby takes over from a launcher that %s, and restarts nothing',
    async (_, how, harm, heal) => {
      const env = 'through' in how ? { MILLRACE_DATABASE_URL: network.address.url } : {};
      const active = launcher('active', env);
      await until('it is active', () => isActive(active));
      const before = await world.started('default');
      const { pid } = host;
      const standby = launcher('standby');
      await until('the other stands by', async () => (await standing()).n === 2);

      await harm(active);
      await until('the other is active', () => isActive(standby), takenOverMs);
      await heal(active);
      await world.call('POST /api/tenants/{name}/start', { params: { name: 'default' } });
      await new Promise((resolve) => setTimeout(resolve, 3_000));

      expect(await world.started('default')).toEqual(before);
      expect(await world.hosts()).toEqual([pid]);
      expect(await world.schedulers()).toBe(1);
      expect(times(active, 'launcher active')).toBe(1);
      await Promise.all([active, standby].map((role) => role.release()));
    },
    120_000,
  );
});

async function freeze(active: RoleProcess): Promise<void> {
  active.signal('SIGSTOP');
}
