/** A local server over a tenant's real API and database, for tests of commands. Handlers of a test take precedence. */
import { makeTenantApi, type TenantApi } from '../tenant-api.ts';
import { type LocalServer, type SomeHandlers, startLocalServer } from './shell.ts';

export interface TenantServer extends LocalServer {
  readonly tenant: TenantApi;
  /** `PROJECT/JOB` of every job, sorted. */
  jobNames(): Promise<string[]>;
}

/** `projects`: names of the projects that exist from the beginning. */
export async function startTenantServer(
  projects: readonly string[] = [],
  handlers: SomeHandlers = {},
): Promise<TenantServer> {
  const tenant = await makeTenantApi();
  for (const name of projects) await tenant.call('POST /api/projects', { body: { name, description: '' } });
  const server = await startLocalServer(handlers, { otherwise: (request, caller) => tenant.send(request, caller) });
  return {
    ...server,
    tenant,
    async jobNames() {
      const page = await tenant.call('GET /api/jobs');
      return 'items' in page ? page.items.map(({ project, name }) => `${project}/${name}`).sort() : [];
    },
    async stop() {
      await server.stop();
      await tenant.close();
    },
  };
}
