/** The only reader of the environment. It parses all variables once, and reports all faults together, each with its variable. */
import { resolve } from 'node:path';
import { z } from 'zod';
import { type Fault, MillraceError } from './errors.ts';
import type { Armed } from './kernel/checkpoint.ts';
import { fileVariableOf, findSecretVariable } from './kernel/process/secret-variable.ts';
import { faultWords, shapeFaults } from './kernel/text/shape-faults.ts';
import {
  bytes,
  checkpoint,
  count,
  duration,
  keptCount,
  keptFor,
  list,
  listOf,
  port,
  postgresUrl,
  rootKey,
  secretKeys,
  text,
  yes,
} from './kernel/text/variable-kinds.ts';

const schema = z.object({
  MILLRACE_HOME: text.default('.millrace'),
  MILLRACE_DATABASE_URL: postgresUrl.optional(),
  MILLRACE_DEFAULT_DATABASE_URL: postgresUrl.optional(),
  MILLRACE_SESSION_POOLER: yes,
  MILLRACE_HOST: text.default('127.0.0.1'),
  MILLRACE_PORT: count(8080, 0, 65_535),
  MILLRACE_PUBLIC_URL: z.url().optional(),
  MILLRACE_ALLOWED_HOSTS: list,
  MILLRACE_TLS_CERT: text.optional(),
  MILLRACE_TLS_KEY: text.optional(),
  MILLRACE_ROOT_KEY: rootKey.optional(),
  MILLRACE_SECRET_KEY: secretKeys.optional(),
  MILLRACE_MAX_TASKS: count(8, 1, 10_000),
  MILLRACE_TASK_USER: text.optional(),
  MILLRACE_LOCAL_TASKS: z.enum(['all', 'default']).default('all'),
  MILLRACE_MAX_BACKGROUND_WORKERS: count(64, 0, 10_000),
  MILLRACE_DISCOVER: z.enum(['all', 'registered']).optional(),
  MILLRACE_HOST_MEMORY: count(512, 32, 1_048_576),
  MILLRACE_DRAIN: duration.default(5_000),
  MILLRACE_LOG_LIMIT: count(10, 1, 1_024),
  MILLRACE_LEASE: duration.refine((ms) => ms >= 3_000 && ms <= 3_600_000, 'a lease lasts 3s to 1h').default(30_000),
  MILLRACE_RETENTION: keptFor.default(30 * 86_400_000),
  MILLRACE_RETENTION_RUNS: keptCount.default(100_000),
  MILLRACE_RETENTION_EVENTS: keptCount.default(50_000_000),
  MILLRACE_BUS_PORT: port.optional(),
  MILLRACE_BUS_TLS_CERT: text.optional(),
  MILLRACE_BUS_TLS_KEY: text.optional(),
  MILLRACE_BUS_ALLOW_HTTP: yes,
  MILLRACE_BUS_ALLOW_CIDRS: list,
  MILLRACE_BUS_MAX_DATA: count(16_384, 64, 1_048_576),
  MILLRACE_BUS_RETENTION: duration.refine((ms) => ms >= 1_000, 'must be at least 1s').default(7 * 86_400_000),
  MILLRACE_BUS_MAX_BYTES: bytes.default(10_737_418_240),
  MILLRACE_BUS_GIVE_UP: duration.refine((ms) => ms >= 1_000, 'must be at least 1s').default(3 * 86_400_000),
  MILLRACE_BUS_CA: text.optional(),
  MILLRACE_BUS_CONNECTIONS: count(256, 1, 10_000),
  MILLRACE_CONDUCTOR_CALLS: count(32, 1, 10_000),
  MILLRACE_CONDUCTOR_MEMORY: count(256, 1, 1_048_576),
  MILLRACE_HTTP_ALLOW_HTTP: yes,
  MILLRACE_HTTP_ALLOW_CIDRS: list,
  MILLRACE_HTTP_CA: text.optional(),
  MILLRACE_CONTAINERS: z.enum(['docker']).default('docker'),
  MILLRACE_DOCKER_HOST: text.optional(),
  MILLRACE_DOCKER_CERTS: text.optional(),
  MILLRACE_DOCKER_AUTH: text.optional(),
  MILLRACE_DOCKER_NETWORK: listOf('bridge'),
  MILLRACE_DOCKER_VOLUMES: list,
  MILLRACE_LOG: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  MILLRACE_URL: z.url().optional(),
  MILLRACE_KEY: text.optional(),
  MILLRACE_TENANT: text.optional(),
  MILLRACE_CHECKPOINT: checkpoint.optional(),
});

type Name = keyof typeof schema.shape;

/** The `about` and default of each variable in `GET /api/installation`. The default is written as in the environment. */
const settingTexts: Readonly<
  Record<Exclude<Name, 'MILLRACE_CHECKPOINT'>, readonly [about: string, standard?: string]>
> = {
  MILLRACE_HOME: ['the folder of this installation', '.millrace'],
  MILLRACE_DATABASE_URL: ['the control database; without it, the embedded PostgreSQL'],
  MILLRACE_DEFAULT_DATABASE_URL: [
    "the default tenant's database; without it, millrace_default on the server of the control database",
  ],
  MILLRACE_SESSION_POOLER: ['whether the database is reached through a pooler that pools by session', 'false'],
  MILLRACE_HOST: ['the address to listen on', '127.0.0.1'],
  MILLRACE_PORT: ['the port to listen on; 0 picks one', '8080'],
  MILLRACE_PUBLIC_URL: ["how people and tasks reach the server; without it, the listener's address"],
  MILLRACE_ALLOWED_HOSTS: ['further host names under which a browser may reach it'],
  MILLRACE_TLS_CERT: ['the file with the certificate; with it and its key the listener speaks https'],
  MILLRACE_TLS_KEY: ["the file with the certificate's key"],
  MILLRACE_ROOT_KEY: ['the root key; without it, the file root-key in the home'],
  MILLRACE_SECRET_KEY: ["encrypts the stash and signs tasks' credentials; without it, the file secret-key in the home"],
  MILLRACE_MAX_TASKS: ['how many tasks a worker runs at once', '8'],
  MILLRACE_TASK_USER: [
    'the account, or the range of user numbers, that tasks run as if the worker is root; without it, a number for each task',
  ],
  MILLRACE_LOCAL_TASKS: ['which tenants may run process and function tasks: all, or default only', 'all'],
  MILLRACE_MAX_BACKGROUND_WORKERS: [
    'the initial number of slots for the launcher and schedulers; the control database stores later changes',
    '64',
  ],
  MILLRACE_DISCOVER: [
    'which databases of the server are tenants: all, or registered ones; without it, all on the embedded server, registered ones on others',
  ],
  MILLRACE_HOST_MEMORY: ["the limit of a host's heap in MiB; its resident memory may be half as much again", '512'],
  MILLRACE_DRAIN: ['how long running tasks may continue when their worker stops', '5s'],
  MILLRACE_LOG_LIMIT: ["how many MiB of a run's output are kept; its end is kept as well", '10'],
  MILLRACE_LEASE: ['how long a worker may be silent before its runs are handed out again', '30s'],
  MILLRACE_RETENTION: ['how long finished runs and events are kept', '30d'],
  MILLRACE_RETENTION_RUNS: ['how many finished runs of each job are kept at most', '100000'],
  MILLRACE_RETENTION_EVENTS: ['how many events are kept at most', '50000000'],
  MILLRACE_BUS_PORT: ['the port of a second listener with the event bus at its root; without it, there is none'],
  MILLRACE_BUS_TLS_CERT: ['the file with the certificate of that listener; without it, that of MILLRACE_TLS_CERT'],
  MILLRACE_BUS_TLS_KEY: ["the file with that certificate's key"],
  MILLRACE_BUS_ALLOW_HTTP: ['whether subscribers may have callbacks without TLS', 'false'],
  MILLRACE_BUS_ALLOW_CIDRS: ['private networks that events may be delivered to, comma-separated'],
  MILLRACE_BUS_MAX_DATA: ["how many bytes of JSON an event's data may have", '16384'],
  MILLRACE_BUS_RETENTION: ['how long events are kept that all subscribers have received', '7d'],
  MILLRACE_BUS_MAX_BYTES: [
    "the size of each tenant's bus log in bytes; beyond it the oldest events are dropped, even undelivered ones",
    '10737418240',
  ],
  MILLRACE_BUS_GIVE_UP: ['how long a delivery is retried, unless its subscriber sets another time', '3d'],
  MILLRACE_BUS_CA: ['the file with certificates of further authorities that deliveries trust'],
  MILLRACE_BUS_CONNECTIONS: ['how many deliveries a courier has under way at once', '256'],
  MILLRACE_CONDUCTOR_CALLS: ['how many hosted functions a conductor calls at once, each in a process', '32'],
  MILLRACE_CONDUCTOR_MEMORY: ['how many MiB of executions a conductor keeps in memory', '256'],
  MILLRACE_HTTP_ALLOW_HTTP: ['whether HTTP tasks may send requests without TLS', 'false'],
  MILLRACE_HTTP_ALLOW_CIDRS: ['private networks that HTTP tasks may reach, comma-separated'],
  MILLRACE_HTTP_CA: ['the file with certificates of further authorities that HTTP tasks trust'],
  MILLRACE_CONTAINERS: ['what executes the containers of docker tasks', 'docker'],
  MILLRACE_DOCKER_HOST: [
    'the Docker engine, as unix:///PATH or tcp://HOST:PORT; without it DOCKER_HOST, or the usual socket',
  ],
  MILLRACE_DOCKER_CERTS: [
    'the folder with ca.pem, cert.pem and key.pem for the engine; without it, as the docker command',
  ],
  MILLRACE_DOCKER_AUTH: ["logins for registries, as the content of docker's config.json; without it, that file"],
  MILLRACE_DOCKER_NETWORK: [
    'the networks that containers may join, comma-separated; the first is the default',
    'bridge',
  ],
  MILLRACE_DOCKER_VOLUMES: ['the folders and volumes that containers may use, comma-separated'],
  MILLRACE_LOG: ['the log level', 'info'],
  MILLRACE_URL: ['where workers and the command line find the server'],
  MILLRACE_KEY: ['the key of workers and the command line'],
  MILLRACE_TENANT: ['the tenant that commands refer to', 'default'],
};
const secrets: ReadonlySet<string> = new Set([
  'MILLRACE_ROOT_KEY',
  'MILLRACE_SECRET_KEY',
  'MILLRACE_KEY',
  'MILLRACE_DOCKER_AUTH',
]);
/** An empty value of these is an error. Otherwise a secret that was meant to be set would be replaced silently by another one. */
const neverEmpty: ReadonlySet<string> = new Set(['MILLRACE_ROOT_KEY', 'MILLRACE_SECRET_KEY']);

/** Variables that hold a secret, or an address with a password. */
const secretTexts = [...secrets, 'MILLRACE_DATABASE_URL', 'MILLRACE_DEFAULT_DATABASE_URL'];

/** These, and the variables that name a file with one: a process erases them once it has read them. */
export const secretVariables: readonly string[] = secretTexts.flatMap((name) => [name, fileVariableOf(name)]);

interface Setting {
  readonly name: string;
  /** As written in the environment. Null for secrets, and if nothing is set and there is no default. */
  readonly value: string | null;
  readonly set: boolean;
  readonly about: string;
}

export interface Config {
  /** All settings for display, without the values of secrets. */
  readonly settings: readonly Setting[];
  readonly home: string;
  readonly databaseUrl: string | undefined;
  readonly defaultDatabaseUrl: string | undefined;
  readonly sessionPooler: boolean;
  readonly host: string;
  readonly port: number;
  readonly publicUrl: string | undefined;
  readonly allowedHosts: readonly string[];
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly rootKey: string | undefined;
  /** The first encrypts, all decrypt. */
  readonly secretKeys: readonly string[] | undefined;
  readonly maxTasks: number;
  /** An account, or a range of user numbers. */
  readonly taskUser: string | undefined;
  /** Which tenants may run `process` and `function` tasks. */
  readonly localTasks: 'all' | 'default';
  /** The initial value; the control database may hold another one. */
  readonly maxBackgroundWorkers: number;
  /** Which databases of the control database's server are tenants. */
  readonly discover: 'all' | 'registered';
  /** The limit of a host's heap, in MiB. */
  readonly hostMemoryMb: number;
  readonly drainMs: number;
  /** The limit of one run's output. */
  readonly logLimitBytes: number;
  /** How long a worker may be silent before its runs are handed out again. */
  readonly leaseMs: number;
  /** How much of the past is kept: runs (unless their job sets its own limits) and events. Null: forever. */
  readonly retention: { readonly ageMs: number | null; readonly runs: number | null; readonly events: number | null };
  /** The port of the listener with the event bus at its root; undefined: there is none. */
  readonly busPort: number | undefined;
  readonly busTls: { readonly cert: string; readonly key: string } | undefined;
  /** Whether deliveries may use http, and which private addresses they may reach. */
  readonly busAllowHttp: boolean;
  readonly busAllowCidrs: readonly string[];
  readonly busMaxDataBytes: number;
  readonly busRetentionMs: number;
  readonly busMaxBytes: number;
  readonly busGiveUpMs: number;
  /** A file with certificates of further authorities. */
  readonly busCa: string | undefined;
  /** Deliveries under way at once in one courier. */
  readonly busConnections: number;
  /** Hosted functions that a conductor calls at once. */
  readonly conductorCalls: number;
  readonly conductorMemoryBytes: number;
  /** Which addresses HTTP tasks may reach, beside public ones by https. */
  readonly http: {
    readonly allowHttp: boolean;
    readonly allowCidrs: readonly string[];
    readonly caFile: string | undefined;
  };
  /** How containers of docker tasks are executed, and what they may use. */
  readonly containers: {
    readonly engine: 'docker';
    /** Undefined: as the docker command finds it. The same holds for `certs` and `auth`. */
    readonly host: string | undefined;
    readonly certs: string | undefined;
    readonly auth: string | undefined;
    /** Networks that containers may join; the first is the default. */
    readonly networks: readonly string[];
    /** Folders and volumes that containers may use. */
    readonly volumes: readonly string[];
  };
  readonly logLevel: string;
  /** Where workers and the CLI find the API if it is not the one of the home folder. */
  readonly url: string | undefined;
  readonly key: string | undefined;
  /** Where this process kills itself. Only tests set it. */
  readonly checkpoint: Armed | undefined;
}

export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const found = secretTexts.map((name) => ({ name, ...findSecretVariable(env, name) }));
  const whole = { ...env, ...Object.fromEntries(found.map(({ name, value }) => [name, value])) };
  const set = Object.fromEntries(
    Object.entries(whole).filter(([name, value]) => name in schema.shape && (value !== '' || neverEmpty.has(name))),
  );
  const parsed = schema.safeParse(set, faultWords);
  const fileFaults = found.flatMap(({ fault }) => fault ?? []);
  const faults = [...fileFaults, ...shapeFaults(parsed.error?.issues ?? []), ...tlsFaults(set)];
  if (!parsed.success || faults.length > 0) throw faulty(faults);
  return { ...valuesOf(parsed.data), settings: listSettings(set) };
}

/** All variables with their values, without those of secrets. */
function listSettings(set: Readonly<Record<string, string | undefined>>): Config['settings'] {
  return Object.entries(settingTexts).map(([name, [about, standard]]) => ({
    name,
    value: secrets.has(name) ? null : formatValue(name, set[name] ?? standard),
    set: set[name] !== undefined,
    about,
  }));
}

function valuesOf(e: z.output<typeof schema>): Omit<Config, 'settings'> {
  return {
    home: resolve(e.MILLRACE_HOME),
    databaseUrl: e.MILLRACE_DATABASE_URL,
    defaultDatabaseUrl: e.MILLRACE_DEFAULT_DATABASE_URL,
    sessionPooler: e.MILLRACE_SESSION_POOLER,
    host: e.MILLRACE_HOST,
    port: e.MILLRACE_PORT,
    publicUrl: e.MILLRACE_PUBLIC_URL,
    allowedHosts: e.MILLRACE_ALLOWED_HOSTS,
    tls: tlsOf(e.MILLRACE_TLS_CERT, e.MILLRACE_TLS_KEY),
    rootKey: e.MILLRACE_ROOT_KEY,
    secretKeys: e.MILLRACE_SECRET_KEY,
    maxTasks: e.MILLRACE_MAX_TASKS,
    taskUser: e.MILLRACE_TASK_USER,
    localTasks: e.MILLRACE_LOCAL_TASKS,
    maxBackgroundWorkers: e.MILLRACE_MAX_BACKGROUND_WORKERS,
    discover: e.MILLRACE_DISCOVER ?? (e.MILLRACE_DATABASE_URL === undefined ? 'all' : 'registered'),
    hostMemoryMb: e.MILLRACE_HOST_MEMORY,
    drainMs: e.MILLRACE_DRAIN,
    logLimitBytes: e.MILLRACE_LOG_LIMIT * 1024 * 1024,
    leaseMs: e.MILLRACE_LEASE,
    retention: {
      ageMs: e.MILLRACE_RETENTION,
      runs: e.MILLRACE_RETENTION_RUNS,
      events: e.MILLRACE_RETENTION_EVENTS,
    },
    busPort: e.MILLRACE_BUS_PORT,
    busTls: tlsOf(e.MILLRACE_BUS_TLS_CERT, e.MILLRACE_BUS_TLS_KEY),
    busAllowHttp: e.MILLRACE_BUS_ALLOW_HTTP,
    busAllowCidrs: e.MILLRACE_BUS_ALLOW_CIDRS,
    busMaxDataBytes: e.MILLRACE_BUS_MAX_DATA,
    busRetentionMs: e.MILLRACE_BUS_RETENTION,
    busMaxBytes: e.MILLRACE_BUS_MAX_BYTES,
    busGiveUpMs: e.MILLRACE_BUS_GIVE_UP,
    busCa: e.MILLRACE_BUS_CA,
    busConnections: e.MILLRACE_BUS_CONNECTIONS,
    conductorCalls: e.MILLRACE_CONDUCTOR_CALLS,
    conductorMemoryBytes: e.MILLRACE_CONDUCTOR_MEMORY * 1024 * 1024,
    http: {
      allowHttp: e.MILLRACE_HTTP_ALLOW_HTTP,
      allowCidrs: e.MILLRACE_HTTP_ALLOW_CIDRS,
      caFile: e.MILLRACE_HTTP_CA,
    },
    containers: {
      engine: e.MILLRACE_CONTAINERS,
      host: e.MILLRACE_DOCKER_HOST,
      certs: e.MILLRACE_DOCKER_CERTS,
      auth: e.MILLRACE_DOCKER_AUTH,
      networks: e.MILLRACE_DOCKER_NETWORK,
      volumes: e.MILLRACE_DOCKER_VOLUMES,
    },
    logLevel: e.MILLRACE_LOG,
    url: e.MILLRACE_URL,
    key: e.MILLRACE_KEY,
    checkpoint: e.MILLRACE_CHECKPOINT,
  };
}

function formatValue(name: string, value: string | undefined): string | null {
  if (value === undefined) return null;
  if (name === 'MILLRACE_HOME') return resolve(value);
  return name.endsWith('_URL') ? withoutPassword(value) : value;
}

/** Removes the parameters as well, because they may hold a password. */
function withoutPassword(address: string): string {
  const url = new URL(address);
  url.password = '';
  url.search = '';
  return url.href;
}

function tlsOf(cert: string | undefined, key: string | undefined): Config['tls'] {
  return cert === undefined || key === undefined ? undefined : { cert, key };
}

function tlsFaults(set: Readonly<Record<string, unknown>>): Fault[] {
  return ['MILLRACE_TLS', 'MILLRACE_BUS_TLS'].flatMap((stem) => {
    const missing = [`${stem}_CERT`, `${stem}_KEY`].filter((name) => set[name] === undefined);
    if (missing.length !== 1) return [];
    return missing.map((path) => ({ path, message: 'is missing: TLS needs both files' }));
  });
}

function faulty(faults: readonly Fault[]): MillraceError {
  const detail = faults.map((fault) => `${fault.path}: ${fault.message}`).join('; ');
  return new MillraceError('bad_configuration', detail, { faults });
}
