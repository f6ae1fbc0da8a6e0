/** `up` while an external PostgreSQL (Debian's 15) stops, or revokes a privilege. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ExternalPostgres } from '../harness/external-postgres.ts';
import { millrace, type Product, removeHome, startProduct } from '../harness/product.ts';
import { needs } from '../harness/services.ts';
import { until } from '../harness/until.ts';

describe.skipIf(!needs('postgresql'))('on an external PostgreSQL 15', () => {
  const server = new ExternalPostgres();
  let product: Product;
  beforeAll(async () => {
    await server.create();
    await server.run('create role modest login createdb');
    await server.run('create database millrace owner modest');
    const env = { MILLRACE_DATABASE_URL: server.url('millrace', 'modest') };
    product = await startProduct({ env });
    await millrace(['tenant', 'create', 'shop'], { home: product.home });
  }, 60_000);
  afterAll(async () => {
    await product.stop();
    await removeHome(product.home);
    await server.remove();
  });

  const tenants = async () => (await product.call('GET /api/tenants')).items;
  type Tenant = Awaited<ReturnType<typeof tenants>>[number];
  const allRun = () =>
    until(
      'all tenants run',
      async () => (await tenants()).every(({ summary }) => summary === 'runs') || undefined,
      60_000,
    );
  async function ask(path: string, key?: string): Promise<string> {
    const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
    return (await fetch(product.url + path, { headers })).text();
  }

  // src/launcher/turn.test.ts tests that pauses end early, because time is an argument there
  it('all tenants start again after the server is back', async () => {
    await allRun();
    const before = await tenants();
    await server.stop();
    await until('it is not ready', async () => (await ask('/readyz')).includes('cannot be reached') || undefined);
    await server.start();
    await until('it is ready', async () => (await ask('/readyz')).includes('ok') || undefined, 60_000);
    await until(
      'all tenants have started anew',
      async () => {
        const isNew = ({ name, changed_at }: Tenant): boolean =>
          before.some((tenant) => tenant.name === name && tenant.changed_at !== changed_at);
        return (await tenants()).every((tenant) => tenant.summary === 'runs' && isNew(tenant)) || undefined;
      },
      60_000,
    );
  });

  it('`up` names the privilege that the role lacks, and runs again once it is granted', async () => {
    await server.run('revoke all on schema millrace from modest', 'millrace_default');
    const plain = await until('it is not well', async () => {
      const answer = await ask('/healthz');
      return answer.includes('tenant_unavailable') ? answer : undefined;
    });
    expect(plain).toMatch(/does not run: .*its role lacks a right/);
    expect(plain).not.toContain('permission');
    expect(await ask('/healthz', product.rootKey)).toContain('permission denied for schema millrace');
    const why = await millrace(['tenant', 'why', 'default'], { home: product.home });
    expect(why.stdout).toContain('its role lacks a right: permission denied for schema millrace');
    expect(why.stdout).toContain('grant usage on schema millrace to');
    await server.run('grant all on schema millrace to modest', 'millrace_default');
    await allRun();
  });
});
