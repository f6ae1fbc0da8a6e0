/** The command `millrace import waterwheel` between a database of Waterwheel and a tenant's real API. */
import { sql } from '../../../src/kernel/sql.ts';
import type { ImportReport } from '../../../src/cli/commands/import/import-report.ts';
import { makeTenantApi, type TenantApi } from '../tenant-api.ts';
import { makeWaterwheelDatabase, type WaterwheelDatabase } from '../waterwheel-database.ts';
import { type Ran, shell, type ShellOptions, startLocalServer } from './shell.ts';

/** Something before the tenant answers with this status; by default a proxy whose connection broke. */
export class Broken extends Error {
  readonly status: number;

  constructor(status = 502) {
    super(`answered with ${status}`);
    this.status = status;
  }
}

/** A row that imports write, without its own ids and times. */
export type ImportedRow = {
  readonly kind: string;
  readonly name: string;
  readonly what: string | null;
  readonly at: Date | null;
};

export class Importing {
  readonly source: WaterwheelDatabase;
  readonly #server: Awaited<ReturnType<typeof startLocalServer>>;
  readonly #current: { tenant: TenantApi; onImport: (when: 'before' | 'after', path: string) => void };

  private constructor(
    source: WaterwheelDatabase,
    server: Awaited<ReturnType<typeof startLocalServer>>,
    current: { tenant: TenantApi; onImport: (when: 'before' | 'after', path: string) => void },
  ) {
    this.source = source;
    this.#server = server;
    this.#current = current;
  }

  static async start(): Promise<Importing> {
    const current = { tenant: await makeTenantApi(), onImport: (): void => {} };
    const otherwise = async (request: Request, caller: Parameters<TenantApi['send']>[1]): Promise<Response> => {
      const path = new URL(request.url).pathname;
      if (!path.startsWith('/api/imports/')) return current.tenant.send(request, caller);
      const { onImport }: { onImport: (when: 'before' | 'after', path: string) => void } = current;
      try {
        onImport('before', path);
        const answer = await current.tenant.send(request, caller);
        onImport('after', path);
        return answer;
      } catch (error) {
        if (error instanceof Broken) return new Response(error.message, { status: error.status });
        throw error;
      }
    };
    return new Importing(await makeWaterwheelDatabase(), await startLocalServer({}, { otherwise }), current);
  }

  get tenant(): TenantApi {
    return this.#current.tenant;
  }

  /** Called before and after each request of an import; may throw `Broken`. */
  set onImport(listener: ((when: 'before' | 'after', path: string) => void) | undefined) {
    this.#current.onImport = listener ?? (() => {});
  }

  async useNewTenant(): Promise<void> {
    await this.tenant.close();
    this.#current.tenant = await makeTenantApi();
  }

  async stop(): Promise<void> {
    await this.#server.stop();
    await this.tenant.close();
    await this.source.close();
  }

  run(...flags: string[]): Promise<Ran> {
    return this.shell(['--db', this.source.url, ...flags]);
  }

  shell(flags: readonly string[], { env, ...options }: ShellOptions = {}): Promise<Ran> {
    return shell(['import', 'waterwheel', ...flags], { ...options, env: { ...this.#server.env, ...env } });
  }

  async report(...flags: string[]): Promise<ImportReport> {
    const ran = await this.run('--json', ...flags);
    try {
      return JSON.parse(ran.stdout) as ImportReport;
    } catch {
      throw new Error(`exit code ${ran.code}: ${ran.stderr}`);
    }
  }

  /** All that imports write. */
  contents(): Promise<ImportedRow[]> {
    return this.tenant.db.rows<ImportedRow>(sql`
    select 'project' as kind, name, description || config::text as what, null::timestamptz as at from project
    union all
    select 'job', job.id::text, job.name || job.version || job.paused || i.resume || (i.started_at is not null), null
      from job join imported_job i on i.job_id = job.id
    union all
    select 'trigger', job.name || '/' || trigger.name, trigger.earliest::text, trigger.latest
      from trigger join job on job.id = trigger.job_id where trigger.removed_at is null
    union all
    select 'token', job.name || '/' || task.name, token.count::text || (held.task_id is not null), token.instant
      from token join task on task.id = token.task_id join job on job.id = task.job_id
      left join held using (task_id, instant)
    union all
    select 'edge', parent.name, child.name || kind || offset_ms, null
      from task_edge join task parent on parent.id = parent_id join task child on child.id = child_id
    union all
    select 'retry', run_id::text, attempt || priority::text, instant from retry
    union all
    select 'stash', name, null, null from global_stash
    union all
    select 'stash', name, project_id::text, null from project_stash
    union all
    select 'stash', name, job_id::text, instant from job_stash
    order by 1, 2, 3, 4`);
  }

  async countEvents(): Promise<number> {
    return (await this.tenant.db.one<{ n: number }>(sql`select count(*)::integer as n from event`)).n;
  }
}

export function outcomesOf({ projects, jobs }: ImportReport): Record<string, string> {
  return Object.fromEntries([
    ...projects.map(({ name, outcome }) => [name, outcome]),
    ...jobs.map(({ project, name, outcome }) => [`${project}/${name}`, outcome]),
  ]);
}
