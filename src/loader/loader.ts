/**
 * The loader picks the engine for a tenant by the version recorded inside that tenant's database, and opens the tenant
 * for it: a pool whose every connection holds `drain` and has seen that version (I6).
 *
 * 1. The version is read when a process first serves the tenant, after every change, and after an error that suggests one.
 * 2. A pool whose engine is no longer the tenant's is closed at once and never used again.
 * 3. Concurrent requests for a tenant share one inspection of its database.
 * 4. A tenant that cannot be opened is inspected at most once a second, and costs other tenants nothing.
 */
import type { Pool } from 'pg';
import type { EngineContext } from '../contract/context.ts';
import type { Engine } from '../contract/engine.ts';
import type { Caller } from '../contract/roles.ts';
import { isDoubtful, isMissingTable, isStaleEngine, knownError, MillraceError } from '../errors.ts';
import type { Log } from '../kernel/log.ts';
import { type Db, onPool } from '../kernel/sql.ts';
import type { Address } from '../postgres/address.ts';
import type { ConnectionBudget } from '../postgres/pool/connection-budget.ts';
import { makePatient } from '../postgres/pool/patient-pool.ts';
import { closePool, guardVersion, openPool } from '../postgres/pool/pool.ts';
import { presentVersion } from '../postgres/recorded-version.ts';
import type { WakeHub } from '../postgres/wake.ts';
import { formatCause } from '../control/format-reason.ts';
import { findFormer, listTenants, type TenantRow } from '../control/queries.ts';
import type { EngineSource } from './engines/engines.ts';
import { look, type Prove } from './inspect.ts';
import { findSchemaFault } from './schema-fault.ts';

export interface OpenTenant {
  readonly row: TenantRow;
  readonly engine: Engine;
  readonly ctx: EngineContext;
}

export interface LoaderOptions {
  readonly control: Db;
  readonly hub: Pick<WakeHub, 'onAny'>;
  readonly engines: EngineSource;
  readonly addressOf: (row: TenantRow) => Address;
  readonly contextFor: (row: TenantRow, pool: Pool) => EngineContext;
  readonly application: string;
  readonly poolSize: number;
  readonly allowPooler: boolean;
  /** The connections that this process may have in all. */
  readonly budget?: ConnectionBudget;
  /** The time before a tenant that could not be opened is tried again. */
  readonly failureLifeMs?: number;
  readonly log: Log;
}

/** The age of the list of tenants without a wake-up. */
const listLifeMs = 5_000;
/** The longest wait of a request for the end of a migration. */
const migrationMs = 3_000;
const usualFailureLifeMs = 1_000;
/** The shortest interval between two inspections of an open tenant, however many requests fail. */
const doubtEveryMs = 1_000;
/** The interval at which the version of a used tenant is read, because it may change without the lock `drain`. */
const proveEveryMs = 2_000;

type Seen = Awaited<ReturnType<typeof look>>;
/** The owner of connections for inspections, in the budget. */
const looks = 'looks';

interface Entry {
  readonly row: TenantRow;
  readonly opening: Promise<OpenTenant>;
  /** Set once it is open, so that it can be closed synchronously. */
  tenant?: OpenTenant;
  /** The time of its failure. The failure is the answer until it is old. */
  failedAt?: number;
  /** The start of the last read of its version. */
  provenAt: number;
  /** The last inspection since it was opened. */
  doubt?: { readonly at: number; readonly over: Promise<void> };
}

export class Loader {
  readonly #options: LoaderOptions;
  readonly #entries = new Map<string, Entry>();
  /** Names that tenants had before, since the list was read. */
  readonly #former = new Map<string, string>();
  readonly #unhear: () => void;
  readonly #beforeClose = new Set<(tenantId: string) => Promise<void>>();
  #rows: { readonly at: number; readonly rows: Promise<TenantRow[]> } | undefined;

  constructor(options: LoaderOptions) {
    this.#options = options;
    this.#unhear = options.hub.onAny('tenant', (about, payload) => this.#hear(about, payload));
  }

  /**
   * Adds work that needs a tenant's connections a last time before they are closed, such as giving back what the process
   * holds. It must end within seconds. If the version has changed already, the connections are closed meanwhile. Returns a
   * function that removes it.
   */
  beforeClose(work: (tenantId: string) => Promise<void>): () => void {
    this.#beforeClose.add(work);
    return () => this.#beforeClose.delete(work);
  }

  async #sayGoodbye(tenantId: string): Promise<void> {
    await Promise.all(Array.from(this.#beforeClose, (work) => work(tenantId)));
  }

  /** Tenants wait, because the process already opens as many connections at a time as it may. */
  get isBusy(): boolean {
    return this.#options.budget?.isBusy ?? false;
  }

  tenants(): Promise<TenantRow[]> {
    const cached = this.#rows;
    if (cached && performance.now() - cached.at < listLifeMs) return cached.rows;
    this.#former.clear();
    const rows = listTenants(this.#options.control);
    const list = { at: performance.now(), rows };
    this.#rows = list;
    rows.then(
      (read) => {
        if (this.#rows === list) this.#closeGone(read);
      },
      () => {
        if (this.#rows === list) this.forgetList();
      },
    );
    return rows;
  }

  forgetList(): void {
    this.#rows = undefined;
  }

  async find(name: string): Promise<TenantRow> {
    const row = await this.#findListed((tenant) => tenant.name === name);
    if (row === undefined) throw noTenant(name);
    return row;
  }

  /** Finds a tenant by its id, whatever its present name. */
  async byId(id: string): Promise<TenantRow> {
    const row = await this.#findListed((tenant) => tenant.id === id);
    if (row === undefined) throw noTenant(id);
    return row;
  }

  /** Finds a tenant by its name or, if no tenant has that name, by a recent former name, which addresses of tasks may use. */
  async findAlways(name: string): Promise<TenantRow> {
    const hasName = (tenant: TenantRow): boolean => tenant.name === name;
    const rows = await this.tenants();
    const formerId = this.#former.get(name);
    const known = rows.find(hasName) ?? rows.find(({ id }) => id === formerId);
    return known ?? (await this.#findListed(hasName)) ?? this.#findFormer(name);
  }

  /** Caches the answer for the life of the list, because a task may call many times a second. */
  async #findFormer(name: string): Promise<TenantRow> {
    // PostgreSQL rejects NUL in a text
    const isText = !name.includes('\0');
    const former = isText ? await findFormer(this.#options.control, name) : undefined;
    if (former === undefined) throw noTenant(name);
    this.#former.set(name, former.id);
    return former;
  }

  /** Reads the list again if the tenant is not in it, since it may be newer than the list. */
  async #findListed(isIt: (row: TenantRow) => boolean): Promise<TenantRow | undefined> {
    const known = (await this.tenants()).find(isIt);
    if (known !== undefined) return known;
    this.forgetList();
    return (await this.tenants()).find(isIt);
  }

  open(row: TenantRow): Promise<OpenTenant> {
    const known = this.#entries.get(row.id);
    if (known !== undefined && isSame(known.row, row) && !this.#isOld(known)) {
      this.#proveNowAndThen(known);
      return known.opening;
    }
    if (known !== undefined) void this.close(row.id);
    const entry: Entry = { row, opening: this.#load(row), provenAt: performance.now() };
    this.#entries.set(row.id, entry);
    entry.opening.then(
      (tenant) => {
        entry.tenant = tenant;
      },
      () => {
        entry.failedAt = performance.now();
      },
    );
    return entry.opening;
  }

  #isOld({ failedAt }: Entry): boolean {
    const { failureLifeMs = usualFailureLifeMs } = this.#options;
    return failedAt !== undefined && performance.now() - failedAt > failureLifeMs;
  }

  /** Reads the version on a connection of the tenant's pool, beside the work. Ignores failures: other checks notice them. */
  #proveNowAndThen(entry: Entry): void {
    const { tenant } = entry;
    const now = performance.now();
    if (tenant === undefined || now - entry.provenAt < proveEveryMs) return;
    entry.provenAt = now;
    presentVersion(onPool(tenant.ctx.pool)).then(
      (version) => version !== tenant.engine.version && this.#drop(tenant),
      () => {},
    );
  }

  /** Runs work that may be repeated. Repeats it if the tenant has changed its engine meanwhile. */
  async use<T>(tenantId: string, work: (tenant: OpenTenant) => Promise<T>): Promise<T> {
    const open = async (): Promise<OpenTenant> => this.open(await this.byId(tenantId));
    const tenant = await open();
    try {
      return await work(tenant);
    } catch (error) {
      if (!(await this.#isOver(tenant, error))) throw error;
      return work(await open());
    }
  }

  /** Whether the work failed because the tenant has changed its engine. */
  async #isOver(tenant: OpenTenant, error: unknown): Promise<boolean> {
    if (isStaleEngine(error)) this.#drop(tenant);
    else if (isDoubtful(error)) await this.#doubt(tenant);
    else return false;
    return tenant.ctx.pool.ending;
  }

  /** The answer of the tenant's engine. A read is repeated if the engine has changed meanwhile. */
  async fetch(row: TenantRow, request: Request, caller: Caller | undefined): Promise<Response> {
    const tenant = await this.open(row);
    const answer = await tenant.engine.fetch(request, tenant.ctx, caller);
    if (answer.status < 500) return answer;
    const isFault = answer.status === 500;
    if (isFault) await this.#doubt(tenant);
    if (!tenant.ctx.pool.ending) return answer;
    const successor = await this.open(await this.byId(row.id));
    if (request.method === 'GET' || request.method === 'HEAD')
      return successor.engine.fetch(request, successor.ctx, caller);
    if (!isFault) return answer;
    throw new MillraceError('tenant_unavailable', `tenant ${row.name} was changed meanwhile; try again`);
  }

  /** Inspects the database after an unexpected failure. Drops the tenant if its version has changed or it is gone. */
  #doubt(tenant: OpenTenant): Promise<void> {
    const entry = this.#entries.get(tenant.row.id);
    if (entry?.tenant !== tenant) return Promise.resolve();
    const at = performance.now();
    if (entry.doubt === undefined || at - entry.doubt.at > doubtEveryMs)
      entry.doubt = { at, over: this.#lookAgain(tenant) };
    return entry.doubt.over;
  }

  async #lookAgain(tenant: OpenTenant): Promise<void> {
    const seen = await this.#look(this.#options.addressOf(tenant.row));
    if (seen.kind !== 'installed' || seen.version !== tenant.engine.version) this.#drop(tenant);
  }

  async #load(row: TenantRow): Promise<OpenTenant> {
    const address = this.#options.addressOf(row);
    const version = versionOf(await this.#look(address, this.#prove), row.name);
    const found = await this.#options.engines.find(version);
    if (!found.ok) throw new MillraceError('no_engine', `tenant ${row.name} is at version ${version}: ${found.detail}`);
    const { engine } = found;
    let tenant: OpenTenant | undefined;
    const pool = this.#pool(row, engine, address, () => tenant && this.#drop(tenant));
    tenant = { row, engine, ctx: this.#options.contextFor(row, pool) };
    return tenant;
  }

  readonly #prove: Prove = async (client, version) => {
    const found = await this.#options.engines.find(version);
    const fault = found.ok ? await findSchemaFault(client, found.engine) : undefined;
    if (fault !== undefined) throw new Error(formatCause(fault));
  };

  /** Inspections count in the connection budget, which also limits how many connections open at a time. */
  async #look(address: Address, prove?: Prove): Promise<Seen> {
    const { budget } = this.#options;
    const opened = await budget?.enter(looks);
    try {
      return await look(address, migrationMs, prove);
    } finally {
      opened?.();
      budget?.leave(looks);
    }
  }

  #pool(row: TenantRow, engine: Engine, address: Address, onStale: () => void): Pool {
    const guard = guardVersion(engine.version);
    const { budget } = this.#options;
    const pool = openPool({
      address,
      schema: 'millrace',
      application: `${this.#options.application} ${engine.version} ${row.name}`,
      max: this.#options.poolSize,
      allowPooler: this.#options.allowPooler,
      budget,
      onOpen: async (client) => {
        await guard(client).catch((error: unknown) => {
          if (isStaleEngine(error) || isMissingTable(error)) onStale();
          throw error;
        });
      },
      onError: (error) => this.#options.log.debug({ err: error, tenant: row.name }, 'idle connection lost'),
    });
    return budget === undefined ? pool : makePatient(pool, budget);
  }

  /** Removes and closes a tenant whose engine has changed. */
  #drop(tenant: OpenTenant): void {
    if (this.#entries.get(tenant.row.id)?.tenant === tenant) this.#entries.delete(tenant.row.id);
    void this.#sayGoodbye(tenant.row.id);
    void closePool(tenant.ctx.pool);
  }

  /** Without a payload, notifications may have been missed; nothing is closed, because connections check their version. */
  #hear(tenantId: string | undefined, isChanged: boolean | undefined): void {
    this.forgetList();
    if (tenantId !== undefined && isChanged === true) void this.close(tenantId);
  }

  /** Closes tenants that the list no longer has, for example after a drop without a notification. */
  #closeGone(rows: readonly TenantRow[]): void {
    const there = new Set(rows.map(({ id }) => id));
    for (const id of this.#entries.keys()) if (!there.has(id)) void this.close(id);
  }

  /** Closes the tenant's pool in this process; the next use reads its version again. */
  async close(tenantId: string): Promise<void> {
    const entry = this.#entries.get(tenantId);
    this.#entries.delete(tenantId);
    // without such work, an open tenant is closed in this very turn
    if (entry !== undefined && this.#beforeClose.size > 0) await this.#sayGoodbye(tenantId);
    const tenant = entry?.tenant ?? (await entry?.opening.catch(() => undefined));
    if (tenant !== undefined) await closePool(tenant.ctx.pool);
  }

  async closeAll(): Promise<void> {
    this.#unhear();
    await Promise.all([...this.#entries.keys()].map((id) => this.close(id)));
  }
}

function noTenant(name: string): MillraceError {
  return new MillraceError('not_found', `there is no tenant ${name}`);
}

/** A tenant with another name or database is opened again. */
function isSame(a: TenantRow, b: TenantRow): boolean {
  // until the launcher has recorded the oid, a database is known by its name only
  const isSeen = a.databaseOid != null && b.databaseOid != null;
  return a.name === b.name && a.database === b.database && (!isSeen || a.databaseOid === b.databaseOid);
}

/** Whether the tenant does not exist any more, so that reports about it can be dropped. */
function isGone(error: unknown): boolean {
  return knownError(error)?.code === 'not_found';
}

/** Whether no process can serve the tenant now: not installed, no engine, unreachable or being upgraded. */
export function isUnserved(error: unknown): boolean {
  const code = knownError(error)?.code;
  return code === 'tenant_unavailable' || code === 'not_installed' || code === 'no_engine';
}

/** Whether the tenant is gone, or Millrace was removed from its database: its runs no longer exist. */
export function hasNoRuns(error: unknown): boolean {
  return isGone(error) || knownError(error)?.code === 'not_installed';
}

export function unlessGone(error: unknown): undefined {
  if (!isGone(error)) throw error;
}

function versionOf(seen: Seen, name: string): string {
  if (seen.kind === 'installed') return seen.version;
  throw new MillraceError(seen.kind === 'not_installed' ? 'not_installed' : 'tenant_unavailable', reasonOf(name, seen));
}

function reasonOf(name: string, seen: Exclude<Seen, { kind: 'installed' }>): string {
  if (seen.kind === 'gone') return `the database of tenant ${name} does not exist`;
  if (seen.kind === 'not_installed') return `tenant ${name} is not installed`;
  if (seen.kind === 'migrating') return `tenant ${name} is being upgraded`;
  if (seen.kind === 'locked') return `another transaction has locked the tables of tenant ${name}; try again`;
  return `the database of tenant ${name} cannot be used: ${formatCause(seen.reason)}`;
}
