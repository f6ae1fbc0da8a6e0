/** A PostgreSQL 15 server of Debian's package in a temporary folder, which a test may stop and start again. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { addressOfUrl } from '../../src/postgres/address.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { findService } from '../../scripts/services.js';
import { until } from './until.ts';

/** PostgreSQL refuses to run as root; Debian's package creates a user for it. */
function postgresUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres']).toString());
  return { uid: id('-u'), gid: id('-g') };
}

export class ExternalPostgres {
  readonly #bin = dirname(findService('postgresql') ?? '');
  readonly #user = postgresUser();
  readonly #folder = mkdtempSync(join(tmpdir(), 'millrace-pg15-'));
  #server: ChildProcess | undefined;

  url(database: string, role = 'postgres'): string {
    return `postgres://${role}@localhost:5432/${database}?host=${encodeURIComponent(this.#folder)}`;
  }

  async create(): Promise<void> {
    if (this.#user) chownSync(this.#folder, this.#user.uid, this.#user.gid);
    const args = ['-D', join(this.#folder, 'data'), '-U', 'postgres', '-A', 'trust', '-N'];
    execFileSync(join(this.#bin, 'initdb'), args, { ...this.#user, stdio: 'ignore' });
    await this.start();
  }

  async start(): Promise<void> {
    const folder = this.#folder;
    const args = ['-D', join(folder, 'data'), '-k', folder, '-c', 'listen_addresses=', '-c', 'fsync=off'];
    this.#server = spawn(join(this.#bin, 'postgres'), args, { ...this.#user, stdio: 'ignore' });
    await until('it answers', async () =>
      this.run('select 1').then(
        () => true,
        () => undefined,
      ),
    );
  }

  async run(statement: string, database = 'postgres'): Promise<void> {
    const args = ['-h', this.#folder, '-U', 'postgres', '-c', statement, database];
    execFileSync(join(this.#bin, 'psql'), args, { stdio: 'ignore' });
  }

  /** Names of all databases but the templates. */
  async databases(): Promise<string[]> {
    return withClient(addressOfUrl(this.url('postgres')), async (client) => {
      const { rows } = await client.query<{ name: string }>(
        'select datname as name from pg_database where not datistemplate order by datname',
      );
      return rows.map(({ name }) => name);
    });
  }

  /** A fast shutdown, which ends all connections. */
  async stop(): Promise<void> {
    if (this.#server !== undefined) await endProcess(this.#server);
  }

  async remove(): Promise<void> {
    await this.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGINT');
  await exit;
}
