/** compose.yaml against the product and the Dockerfile: what it names exists. Compose itself is not asked. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { readConfig } from '../../src/config.ts';
import { shell } from '../harness/cli/shell.ts';
import { faultsOfSettings, image, roleOf, textOf } from '../harness/deploy/settings.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const condition = z.enum(['service_started', 'service_healthy', 'service_completed_successfully']);
const healthcheck = z.union([
  z.strictObject({ disable: z.literal(true) }),
  z.strictObject({ test: z.array(z.string()), interval: z.string(), start_period: z.string() }),
]);
const service = z.strictObject({
  image: z.string(),
  pull_policy: z.literal('never').optional(),
  command: z.array(z.string()).optional(),
  entrypoint: z.array(z.string()).optional(),
  environment: z.record(z.string(), z.string()).default({}),
  restart: z.enum(['unless-stopped', 'no']),
  init: z.boolean().optional(),
  read_only: z.boolean().optional(),
  tmpfs: z.array(z.string()).optional(),
  cap_drop: z.array(z.string()).optional(),
  security_opt: z.array(z.string()).optional(),
  secrets: z.array(z.string()).default([]),
  volumes: z.array(z.string()).default([]),
  ports: z.array(z.string()).default([]),
  deploy: z.strictObject({ replicas: z.number() }).optional(),
  depends_on: z.record(z.string(), z.strictObject({ condition })).default({}),
  healthcheck,
  shm_size: z.string().optional(),
  stop_grace_period: z.string().optional(),
});
const file = z.looseObject({
  name: z.string(),
  services: z.record(z.string(), service),
  volumes: z.record(z.string(), z.null()),
  secrets: z.record(z.string(), z.strictObject({ file: z.string() })),
});

const { services, volumes, secrets } = file.parse(parse(textOf('compose.yaml'), { merge: true }));
const ours = Object.entries(services).filter(([name]) => name !== 'postgres');
/** `${NAME:-standard}` */
const resolved = (text: string): string => text.replace(/\$\{\w+:-([^}]*)\}/g, '$1');

it('each service of compose.yaml starts a role that exists, with settings that it accepts', async () => {
  for (const [name, { command = [], entrypoint, environment }] of ours) {
    const env = Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, resolved(value)]));
    expect(faultsOfSettings(env), name).toEqual([]);
    if (entrypoint !== undefined) continue;
    const { role } =
      (await roleOf(
        command.filter((word) => !/key/.test(word)),
        { ...env, MILLRACE_KEY_FILE: '' },
      )) ?? {};
    expect(role).toBe(name);
  }
});

it('workers reach the API under a name that it accepts without a key, as their health checks send none', () => {
  const { hostname, port } = new URL(services['worker']?.environment['MILLRACE_URL'] ?? '');
  const { MILLRACE_ALLOWED_HOSTS = '' } = services[hostname]?.environment ?? {};
  expect(MILLRACE_ALLOWED_HOSTS.split(',')).toContain(hostname);
  expect(Number(port)).toBe(readConfig({}).port);
});

it('the commands in health checks and in the service that makes a key are understood', async () => {
  const env = { MILLRACE_URL: 'http://127.0.0.1:1' };
  const commands = ours.flatMap(([, { healthcheck: check, command, entrypoint }]) => [
    ...('test' in check ? [check.test.slice(1)] : []),
    ...(entrypoint === undefined
      ? []
      : [
          /millrace (.*?) >/
            .exec(command?.join(' ') ?? '')?.[0]
            .slice(0, -2)
            .split(' ') ?? [],
        ]),
  ]);
  expect(commands.map(([program]) => program)).toEqual(['millrace', 'millrace', 'millrace']);
  // 3: the server cannot be reached; 2 would be a command line that is not understood
  for (const [, ...argv] of commands) expect((await shell(argv, { env })).code, argv.join(' ')).toBe(3);
});

it('services, volumes and secrets of compose.yaml are those that it declares', () => {
  const all = Object.values(services);
  const named = all.flatMap((each) => Object.keys(each.depends_on));
  expect(Object.keys(services)).toEqual(expect.arrayContaining(named));
  expect(new Set(all.flatMap((each) => each.volumes.map((text) => text.split(':')[0])))).toEqual(
    new Set(Object.keys(volumes)),
  );
  expect(new Set(all.flatMap((each) => each.secrets))).toEqual(new Set(Object.keys(secrets)));
  for (const each of all) {
    const files = Object.entries(each.environment).filter(([name]) => name.endsWith('_FILE'));
    expect(each.secrets.map((name) => `/run/secrets/${name}`)).toEqual(
      expect.arrayContaining(files.map(([, path]) => path)),
    );
  }
  for (const [name, { condition: wanted }] of all.flatMap((each) => Object.entries(each.depends_on)))
    if (wanted === 'service_healthy') expect(services[name]?.healthcheck, name).toHaveProperty('test');
});

it('containers have no rights, write only where the image does, and are reached from this machine only', () => {
  for (const [name, each] of ours) {
    expect(each, name).toMatchObject({
      read_only: true,
      tmpfs: ['/tmp'],
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      init: true,
      pull_policy: 'never',
    });
    expect(each.volumes.map((text) => text.split(':')[1])).toEqual([image.volume]);
  }
  const ports = Object.values(services).flatMap((each) => each.ports);
  expect(ports).toEqual([`127.0.0.1:8080-8081:${readConfig({}).port}`]);
  expect(services['api']?.deploy?.replicas).toBe(2);
});

it('deploy/make-secrets.sh writes the secrets that compose.yaml names once, and the product accepts them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-compose-'));
  try {
    mkdirSync(join(folder, 'deploy'));
    copyFileSync(join(root, 'deploy', 'make-secrets.sh'), join(folder, 'deploy', 'make-secrets.sh'));
    const make = (): Record<string, string> => {
      execFileSync('sh', [join(folder, 'deploy', 'make-secrets.sh')]);
      const names = readdirSync(join(folder, 'secrets'));
      return Object.fromEntries(
        names.map((name) => [`secrets/${name}`, readFileSync(join(folder, 'secrets', name), 'utf8')]),
      );
    };
    const made = make();
    expect(Object.keys(made).toSorted()).toEqual(
      Object.values(secrets)
        .map(({ file: path }) => path)
        .toSorted(),
    );
    expect(make()).toEqual(made);
    expect(statSync(join(folder, 'secrets')).mode & 0o777).toBe(0o700);
    const config = readConfig({
      MILLRACE_DATABASE_URL_FILE: join(folder, 'secrets', 'database-url'),
      MILLRACE_ROOT_KEY_FILE: join(folder, 'secrets', 'root-key'),
      MILLRACE_SECRET_KEY_FILE: join(folder, 'secrets', 'secret-key'),
    });
    const { hostname, password } = new URL(config.databaseUrl ?? '');
    expect(`${password}\n`).toBe(made['secrets/postgres-password']);
    expect(Object.keys(services)).toContain(hostname);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
