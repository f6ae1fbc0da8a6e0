/**
 * An installation whose parts are separate processes, as on several machines: its own PostgreSQL server, an API, and
 * launchers (one active, the others on standby) that start hosts. Every database of the server is a tenant.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client as PgClient } from 'pg';
import { RoleProcess } from '../chaos/role-process.ts';
import { type Client, makeClient } from '../../src/http/client.ts';
import { silent } from '../../src/kernel/log.ts';
import { type Db, onClient, sql } from '../../src/kernel/sql.ts';
import { type Address, addressOfSocket, onDatabase } from '../../src/postgres/address.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { type EmbeddedServer, startEmbedded } from '../../src/postgres/embedded/embedded.ts';
import { killTree } from './process-tree.ts';
import type { Endpoints } from './product.ts';
import { until } from './until.ts';

const rootKey = 'the-root-key-of-the-launcher-suites';

export interface InstallationOptions {
  readonly launchers: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Settings of the PostgreSQL server. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface Placed {
  readonly state: string;
  readonly reason: string | null;
  readonly order: number;
  readonly host: string | null;
}

export class TestInstallation {
  readonly home: string;
  readonly url: string;
  readonly env: Readonly<Record<string, string>>;
  readonly call: Client<Endpoints>;
  readonly api: RoleProcess;
  readonly launchers: RoleProcess[];
  readonly control: Address;
  readonly #server: EmbeddedServer;

  private constructor(home: string, server: EmbeddedServer, port: number, options: InstallationOptions) {
    this.home = home;
    this.#server = server;
    this.control = addressOfSocket(server.connection, 'millrace');
    this.url = `http://127.0.0.1:${port}`;
    this.env = {
      MILLRACE_HOME: home,
      MILLRACE_LOG: 'warn',
      MILLRACE_DATABASE_URL: this.control.url,
      MILLRACE_DISCOVER: 'all',
      MILLRACE_ROOT_KEY: rootKey,
      MILLRACE_URL: this.url,
      MILLRACE_KEY: rootKey,
      ...options.env,
    };
    this.call = makeClient<Endpoints>({ base: this.url, headers: { authorization: `Bearer ${rootKey}` } });
    this.api = this.#role('api', 'api', '--port', String(port));
    this.launchers = Array.from({ length: options.launchers }, (_, i) => this.#role(`launcher ${i + 1}`, 'launcher'));
  }

  static async start(options: InstallationOptions): Promise<TestInstallation> {
    const home = await mkdtemp(join(tmpdir(), 'millrace-e2e-'));
    const settings = { fsync: 'off', full_page_writes: 'off', max_prepared_transactions: '10', ...options.settings };
    const server = await startEmbedded({ home, log: silent, settings });
    const installation = new TestInstallation(home, server, await freePort(), options);
    await until('the API answers', async () => (await fetch(`${installation.url}/readyz`).catch(() => undefined))?.ok);
    return installation;
  }

  /** Starts another launcher. */
  addLauncher(): RoleProcess {
    const launcher = this.#role(`launcher ${this.launchers.length + 1}`, 'launcher');
    this.launchers.push(launcher);
    return launcher;
  }

  #role(name: string, ...args: readonly string[]): RoleProcess {
    return new RoleProcess({ name, args, env: this.env, mayEnd: () => false });
  }

  address(database: string): Address {
    return onDatabase(this.control, database);
  }

  /** Runs work on a separate connection to that database, like a person with psql. */
  in<T>(database: string, work: (client: PgClient) => Promise<T>): Promise<T> {
    return withClient(this.address(database), work);
  }

  /** Runs one statement on the server, outside of a transaction. */
  administer(statement: string): Promise<unknown> {
    return this.in('postgres', (client) => client.query(statement));
  }

  inControl<T>(work: (db: Db) => Promise<T>): Promise<T> {
    return this.in('millrace', async (client) => {
      await client.query('set search_path to control');
      return work(onClient(client));
    });
  }

  /** The launcher's row of a tenant; undefined if there is no such tenant. */
  async placed(name: string): Promise<Placed | undefined> {
    return this.inControl((db) =>
      db.maybeOne<{ state: string; reason: string | null; order: number; host: string | null }>(sql`
        select coalesce(launch.state, 'ENABLED') as state, launch.reason, coalesce(launch.order_no, 0)::integer as order,
               launch.host_id as host
          from tenant left join launch on launch.tenant_id = tenant.id
         where tenant.name = ${name}`),
    );
  }

  async started(name: string, withinMs = 40_000): Promise<Placed> {
    return this.#becomes(name, `${name} is STARTED`, ({ state }) => state === 'STARTED', withinMs);
  }

  async waitUntilNotRunning(name: string, reason: RegExp, withinMs = 40_000): Promise<Placed> {
    const fits = (placed: Placed): boolean => placed.state !== 'STARTED' && reason.test(placed.reason ?? '');
    return this.#becomes(name, `${name} is not running: ${reason.source}`, fits, withinMs);
  }

  async #becomes(name: string, what: string, fits: (placed: Placed) => boolean, withinMs: number): Promise<Placed> {
    let last: Placed | undefined;
    return until(
      what,
      async () => {
        last = await this.placed(name);
        return last !== undefined && fits(last) ? last : undefined;
      },
      withinMs,
    ).catch((error: unknown) => {
      throw new Error(`${what}, but it is ${JSON.stringify(last)}\n${this.output()}`, { cause: error });
    });
  }

  /** Number of schedulers that hold the lock of their tenant, over the whole server. */
  async schedulers(): Promise<number> {
    return this.in('postgres', async (client) => {
      const { rows } = await client.query<{ n: number }>(`
        select count(*)::integer as n from pg_locks
         where locktype = 'advisory' and classid = 7345 and objid = 3 and objsubid = 2 and granted`);
      return rows[0]?.n ?? 0;
    });
  }

  /** Process ids of all registered hosts. */
  async hosts(): Promise<number[]> {
    const rows = await this.inControl((db) => db.rows<{ pid: number }>(sql`select pid from host order by started_at`));
    return rows.map(({ pid }) => pid);
  }

  output(): string {
    return [this.api, ...this.launchers].map((role) => `— ${role.name}\n${role.output().slice(-3_000)}`).join('\n');
  }

  async close(): Promise<void> {
    const hosts = await this.hosts().catch(() => []);
    await Promise.all([...this.launchers, this.api].map((role) => role.release()));
    for (const pid of hosts) killTree(pid);
    await this.#server.stop('immediate');
    await rm(this.home, { recursive: true, force: true });
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
