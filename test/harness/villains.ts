/**
 * Four tenants with one trigger per second, and a villain: a fifth tenant of the same engine whose scheduler blocks the
 * process, ends it or fills its memory. Measures how often the schedulers of the four restart, and their lateness: the time
 * between an instant and the moment its run was queued.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from '../../src/kernel/sql.ts';
import { engineBuild, type Mischief } from './engine-builds.ts';
import { TestInstallation } from './installation.ts';
import { millrace } from './product.ts';
import { until } from './until.ts';

/** Maximum lateness of tenants beside a villain, on a machine that is not busy. */
export const latenessAimMs = 2_000;

export const villains = [
  'spins',
  'blocks',
  'blocks-later',
  'exits',
  'leaks',
  'leaks-heap',
] as const satisfies readonly Mischief[];
export type Villain = (typeof villains)[number];

/**
 * How long the four have run when the villain is restarted and strikes. `old`: so long that only the villain is new. `new`:
 * less than 10 s. `same`: their host is killed, and they start again together with the villain.
 */
export const ages = ['old', 'new', 'same'] as const;
export type Age = (typeof ages)[number];

export interface Harm {
  /** The worst lateness of the four, and the same measured before the villain misbehaves. */
  readonly latenessMs: number;
  readonly controlMs: number;
  /** Restarts of the tenant among the four that restarted most often. */
  readonly restarts: number;
}

const version = '0.2.1-test.1';
const names = ['a', 'b', 'c', 'd'] as const;
const controlWindowMs: Readonly<Record<Age, number>> = { old: 5_000, new: 1_000, same: 5_000 };
/** The villain loses its host at most three times before it is alone. The slowest takes 15 s each time. */
const isolationMs = 90_000;

interface LaunchRow {
  readonly name: string;
  readonly state: string;
  readonly suspicion: number;
  readonly orderNo: number;
  readonly host: string | null;
}

export class Neighbourhood {
  readonly #world: TestInstallation;

  private constructor(world: TestInstallation) {
    this.#world = world;
  }

  static async start(): Promise<Neighbourhood> {
    const world = await TestInstallation.start({ launchers: 1, env: { MILLRACE_HOST_MEMORY: '300' } });
    const neighbourhood = new Neighbourhood(world);
    try {
      const { code, stderr } = await millrace(['engine', 'add', await engineBuild({ version })], { env: world.env });
      if (code !== 0) throw new Error(`the engine was not added: ${stderr}`);
      for (const name of names) await neighbourhood.#createTicking(name);
      return neighbourhood;
    } catch (error) {
      await world.close();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#world.close();
  }

  /** Lets a tenant beside the four misbehave, and waits until it has a host for itself, or none, and the four run elsewhere. */
  async suffer(villain: Villain, age: Age): Promise<Harm> {
    const name = `${villain}-${age}`;
    await this.#create(name);
    await this.#gather([...names, name]);
    const isNew = age === 'new';
    if (!isNew) await until('the four are old', async () => (await this.#areAllNew(false)) || undefined, 60_000);
    await until('hosts stand by', () => this.#hasSpares(), isolationMs);
    const controlFrom = await this.#now();
    await sleep(controlWindowMs[age]);
    const controlMs = await this.#latenessMs(controlFrom);
    await this.#checkTogether([...names, name]);
    if (!(await this.#areAllNew(isNew))) throw new Error(`not all tenants are ${age}`);
    const before = await this.#orders();
    const from = await this.#now();
    await this.#corrupt(name, villain);
    if (age === 'same') await this.#killHost(name);
    else await this.#world.call('POST /api/tenants/{name}/restart', { params: { name } });
    await until(`${name} is alone`, () => this.#isAlone(name), isolationMs);
    const to = await this.#now();
    await until('instants after that fired', async () => (await this.#lastInstant()) > to.getTime() + 2_000, 40_000);
    const latenessMs = await this.#latenessMs(from);
    const after = await this.#orders();
    const restarts = Math.max(...names.map((each) => (after.get(each) ?? 0) - (before.get(each) ?? 0)));
    await this.#forgive(name);
    return { latenessMs, controlMs, restarts };
  }

  /** Starts them anew, together in one host. A former villain may have separated them. */
  async #gather(together: readonly string[]): Promise<void> {
    const tell = (verb: 'stop' | 'start') =>
      Promise.all(together.map((name) => this.#world.call(`POST /api/tenants/{name}/${verb}`, { params: { name } })));
    await tell('stop');
    await until('nobody is in a host', async () => {
      const launches = [...(await this.#launches()).values()];
      return launches.every(({ name, host }) => name === 'default' || host === null) || undefined;
    });
    await tell('start');
    for (const name of together) await this.#world.started(name);
    await this.#checkTogether(together);
  }

  /** A tenant that was started less than 10 s before the loss of its host is new to the launcher. */
  #areAllNew(isNew: boolean): Promise<boolean> {
    return this.#world.inControl(async (db) => {
      const others = await db.rows(sql`
        select from launch join tenant on tenant.id = tenant_id
         where name = any(${names})
           and (changed_at > clock_timestamp() - interval '10 seconds') is distinct from ${isNew}`);
      return others.length === 0;
    });
  }

  /** A villain that is alone does no harm, and figures would mean nothing. */
  async #checkTogether(together: readonly string[]): Promise<void> {
    const launches = await this.#launches();
    const hosts = new Set(together.map((name) => launches.get(name)?.host ?? null));
    if (hosts.size > 1 || hosts.has(null)) throw new Error(`${together.join(', ')} do not share a host`);
  }

  async #createTicking(name: string): Promise<void> {
    await this.#create(name);
    const start = new Date(Math.ceil(Date.now() / 1_000) * 1_000).toISOString();
    const document = {
      project: 'p',
      name: 'j',
      description: '',
      triggers: [{ name: 't', start, period: '1s' }],
      tasks: [{ name: 'k', depends: ['trigger/t'] }],
    };
    await this.#post(name, '/api/projects', { name: 'p' });
    await this.#post(name, '/api/jobs', document);
  }

  async #post(name: string, path: string, body: object): Promise<void> {
    const { url, env } = this.#world;
    const headers = { authorization: `Bearer ${env['MILLRACE_KEY']}`, 'content-type': 'application/json' };
    const response = await fetch(`${url}/t/${name}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path} answers ${response.status}: ${await response.text()}`);
  }

  async #create(name: string): Promise<void> {
    await this.#world.call('POST /api/tenants', { body: { name, version } });
    await this.#world.started(name);
  }

  /** Its scheduler misbehaves from its next start on. */
  async #corrupt(name: string, villain: Villain): Promise<void> {
    await this.#world.in(name, (client) => client.query('insert into millrace.build_mischief values ($1)', [villain]));
  }

  async #killHost(name: string): Promise<void> {
    const { host } = (await this.#launches()).get(name) ?? {};
    const { pid } = await this.#world.inControl((db) =>
      db.one<{ pid: number }>(sql`select pid from host where id = ${host}`),
    );
    process.kill(pid, 'SIGKILL');
  }

  /** Stops the villain and clears all suspicions, so that the next villain finds the same conditions. */
  async #forgive(name: string): Promise<void> {
    await this.#world.call('POST /api/tenants/{name}/stop', { params: { name } });
    const isGone = async () => (await this.#launches()).get(name)?.host === null || undefined;
    await until(`${name} is in no host`, isGone, isolationMs);
    await this.#world.inControl((db) => db.exec(sql`update launch set suspicion = 0, failures = 0`));
  }

  async #launches(): Promise<Map<string, LaunchRow>> {
    const rows = await this.#world.inControl((db) =>
      db.rows<LaunchRow>(sql`
        select name, state, suspicion, order_no::integer as "orderNo",
               case when ordered or ending then host_id end as host
          from launch join tenant on tenant.id = tenant_id`),
    );
    return new Map(rows.map((row) => [row.name, row]));
  }

  async #orders(): Promise<Map<string, number>> {
    return new Map([...(await this.#launches())].map(([name, { orderNo }]) => [name, orderNo]));
  }

  /** Whether the villain is suspected and has a host for itself or none, and the four run. */
  async #isAlone(villain: string): Promise<true | undefined> {
    const launches = await this.#launches();
    const its = launches.get(villain);
    const isApart = (name: string): boolean => {
      const { state, host } = launches.get(name) ?? {};
      return state === 'STARTED' && host !== its?.host;
    };
    return (its !== undefined && its.suspicion > 0 && names.every(isApart)) || undefined;
  }

  /** Two hosts stand by where at least three tenants share a host. */
  async #hasSpares(): Promise<true | undefined> {
    const spares = await this.#world.inControl((db) =>
      db.rows(sql`
        select from host
         where engine = ${version} and not leaving
           and not exists (select from launch where host_id = host.id and (ordered or ending))`),
    );
    return spares.length > 1 || undefined;
  }

  async #now(): Promise<Date> {
    return this.#world.inControl(async (db) => (await db.one<{ now: Date }>(sql`select clock_timestamp() as now`)).now);
  }

  async #latenessMs(since: Date): Promise<number> {
    const each = names.map((name) =>
      this.#world.in(name, async (client) => {
        const { rows } = await client.query<{ ms: number }>(
          `select coalesce(max(extract(epoch from queued_at - instant) * 1000), 0)::float8 as ms
             from millrace.live where instant >= $1`,
          [since],
        );
        return rows[0]?.ms ?? 0;
      }),
    );
    return Math.max(...(await Promise.all(each)));
  }

  /** The newest instant of the tenant that is furthest behind. */
  async #lastInstant(): Promise<number> {
    const each = names.map((name) =>
      this.#world.in(name, async (client) => {
        const { rows } = await client.query<{ at: Date | null }>('select max(instant) as at from millrace.firing');
        return rows[0]?.at?.getTime() ?? 0;
      }),
    );
    return Math.min(...(await Promise.all(each)));
  }
}
