/**
 * The loader picks the engine for a tenant by the version recorded inside that tenant's database, and opens the tenant
 * for it: a pool whose every connection holds `drain` and has seen that version (I6). Asked again after any change: a
 * tenant whose version is no longer its engine's is closed at once.
 */
import { Client, type Pool } from 'pg';
import type { Engine, EngineContext } from '../contract/engine.ts';
import { isConnectionLoss, MillraceError } from '../errors.ts';
import type { Log } from '../kernel/log.ts';
import { type Db, onClient, sql } from '../kernel/sql.ts';
import { type Address, clientConfig } from '../postgres/address.ts';
import { guardVersion, openPool, VersionMismatch } from '../postgres/pool.ts';
import { listTenants, type TenantRow } from './control-queries.ts';

export interface OpenTenant {
  readonly row: TenantRow;
  readonly engine: Engine;
  readonly ctx: EngineContext;
}

export interface LoaderOptions {
  readonly control: Db;
  readonly engines: readonly Engine[];
  readonly addressOf: (row: TenantRow) => Address;
  readonly contextFor: (row: TenantRow, pool: Pool) => EngineContext;
  readonly application: string;
  readonly poolSize: number;
  readonly allowPooler: boolean;
  readonly log: Log;
}

/** How long the list of tenants may be out of date when no wake-up came. */
const listLifeMs = 5_000;

export class Loader {
  readonly #options: LoaderOptions;
  readonly #open = new Map<string, Promise<OpenTenant>>();
  #rows: { readonly at: number; readonly rows: Promise<TenantRow[]> } | undefined;

  constructor(options: LoaderOptions) {
    this.#options = options;
  }

  tenants(): Promise<TenantRow[]> {
    const cached = this.#rows;
    if (cached && performance.now() - cached.at < listLifeMs) return cached.rows;
    const rows = listTenants(this.#options.control);
    this.#rows = { at: performance.now(), rows };
    rows.catch(() => this.forgetList());
    return rows;
  }

  forgetList(): void {
    this.#rows = undefined;
  }

  async named(name: string): Promise<OpenTenant> {
    return this.open(await this.find(name));
  }

  async find(name: string): Promise<TenantRow> {
    let row = (await this.tenants()).find((tenant) => tenant.name === name);
    if (row === undefined) {
      this.forgetList();
      row = (await this.tenants()).find((tenant) => tenant.name === name);
    }
    if (row === undefined) throw new MillraceError('not_found', `there is no tenant ${name}`);
    return row;
  }

  open(row: TenantRow): Promise<OpenTenant> {
    const known = this.#open.get(row.id);
    if (known) return known;
    const opening = this.#load(row);
    this.#open.set(row.id, opening);
    opening.catch(() => {
      if (this.#open.get(row.id) === opening) this.#open.delete(row.id);
    });
    return opening;
  }

  async #load(row: TenantRow): Promise<OpenTenant> {
    const address = this.#options.addressOf(row);
    const version = await recordedVersion(address, row.name);
    const engine = this.#options.engines.find((candidate) => candidate.version === version);
    if (engine === undefined) {
      const have = this.#options.engines.map((e) => e.version).join(', ');
      throw new MillraceError('no_engine', `tenant ${row.name} is at version ${version}; the engines here are ${have}`);
    }
    const pool = this.#pool(row, engine, address);
    return { row, engine, ctx: this.#options.contextFor(row, pool) };
  }

  #pool(row: TenantRow, engine: Engine, address: Address): Pool {
    const guard = guardVersion(engine.version);
    return openPool({
      address,
      schema: 'millrace',
      application: `${this.#options.application} ${row.name}`,
      max: this.#options.poolSize,
      allowPooler: this.#options.allowPooler,
      onOpen: async (client) => {
        await guard(client).catch((error: unknown) => {
          if (error instanceof VersionMismatch) void this.close(row.id);
          throw error;
        });
      },
      onError: (error) => this.#options.log.debug({ err: error, tenant: row.name }, 'an idle connection was lost'),
    });
  }

  /** Closes a tenant's pool here; the next use looks at its version again. */
  async close(tenantId: string): Promise<void> {
    const opening = this.#open.get(tenantId);
    this.#open.delete(tenantId);
    const tenant = await opening?.catch(() => undefined);
    await tenant?.ctx.pool.end().catch(() => {});
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((id) => this.close(id)));
  }
}

/** There is no such tenant (any more): what is said of it concerns nobody. */
export function isGone(error: unknown): boolean {
  return error instanceof MillraceError && error.code === 'not_found';
}

export function unlessGone(error: unknown): undefined {
  if (!isGone(error)) throw error;
}

async function recordedVersion(address: Address, name: string): Promise<string> {
  const client = new Client(clientConfig(address, 'millrace loader'));
  client.on('error', () => {});
  try {
    await client.connect();
    const { version } = await onClient(client).one<{ version: string }>(sql`select version from millrace.installation`);
    return version;
  } catch (error) {
    throw unavailable(error, name);
  } finally {
    await client.end().catch(() => {});
  }
}

const missing = new Set(['3D000', '3F000', '42P01']);

function unavailable(error: unknown, name: string): unknown {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  if (code === '3D000') return new MillraceError('tenant_unavailable', `the database of tenant ${name} does not exist`);
  if (typeof code === 'string' && missing.has(code))
    return new MillraceError('tenant_unavailable', `tenant ${name} is not installed`);
  if (isConnectionLoss(error))
    return new MillraceError('tenant_unavailable', `the database of tenant ${name} cannot be reached`, {
      cause: error,
    });
  return error;
}
