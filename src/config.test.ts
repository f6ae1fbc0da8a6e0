import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readConfig } from './config.ts';
import { MillraceError } from './errors.ts';

const faultsOf = (env: Record<string, string>): string[] => {
  try {
    readConfig(env);
    return [];
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    expect(error.code).toBe('bad_configuration');
    return error.faults.map((fault) => fault.path).toSorted();
  }
};

describe('the configuration', () => {
  it('has a default for everything', () => {
    expect(readConfig({})).toMatchObject({
      home: resolve('.millrace'),
      databaseUrl: undefined,
      host: '127.0.0.1',
      port: 8080,
      maxTasks: 8,
      drainMs: 5_000,
      leaseMs: 30_000,
      logLevel: 'info',
      sessionPooler: false,
      allowedHosts: [],
      tls: undefined,
      rootKey: undefined,
    });
  });

  it('is read from the environment, and nothing else of it is looked at', () => {
    const config = readConfig({
      PATH: '/bin',
      MILLRACE_HOME: '/srv/millrace',
      MILLRACE_DATABASE_URL: 'postgres://me:pw@db/control',
      MILLRACE_DEFAULT_DATABASE_URL: 'postgresql:///tenant?host=/var/run/postgresql',
      MILLRACE_SESSION_POOLER: 'true',
      MILLRACE_HOST: '0.0.0.0',
      MILLRACE_PORT: '0',
      MILLRACE_PUBLIC_URL: 'https://millrace.example',
      MILLRACE_ALLOWED_HOSTS: ' a.example, b.example ,',
      MILLRACE_TLS_CERT: '/cert',
      MILLRACE_TLS_KEY: '/key',
      MILLRACE_ROOT_KEY: 'sixteen-characters',
      MILLRACE_MAX_TASKS: '100',
      MILLRACE_LOG: 'debug',
    });
    expect(config).toMatchObject({
      home: '/srv/millrace',
      databaseUrl: 'postgres://me:pw@db/control',
      defaultDatabaseUrl: 'postgresql:///tenant?host=/var/run/postgresql',
      sessionPooler: true,
      host: '0.0.0.0',
      port: 0,
      publicUrl: 'https://millrace.example',
      allowedHosts: ['a.example', 'b.example'],
      tls: { cert: '/cert', key: '/key' },
      rootKey: 'sixteen-characters',
      maxTasks: 100,
      logLevel: 'debug',
    });
  });

  it('reads secrets from the files that variables name, and tells what is wrong with one', () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-config-'));
    const [key, open] = [join(folder, 'key'), join(folder, 'open')];
    writeFileSync(key, 'a-root-key.of-sixteen\n', { mode: 0o444 });
    writeFileSync(open, 'x');
    chmodSync(open, 0o666);
    try {
      const config = readConfig({ MILLRACE_ROOT_KEY_FILE: key });
      expect(config.rootKey).toBe('a-root-key.of-sixteen');
      expect(config.settings.find(({ name }) => name === 'MILLRACE_ROOT_KEY')).toMatchObject({
        value: null,
        set: true,
      });
      const faulty = { MILLRACE_KEY_FILE: open, MILLRACE_DATABASE_URL_FILE: key, MILLRACE_PORT: 'x' };
      expect(faultsOf(faulty)).toEqual(['MILLRACE_DATABASE_URL', 'MILLRACE_KEY_FILE', 'MILLRACE_PORT']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('takes an empty variable for one that is not set', () => {
    const names = ['HOME', 'DATABASE_URL', 'PORT', 'MAX_TASKS', 'LOG', 'TLS_CERT', 'SESSION_POOLER', 'HOST'];
    expect(readConfig(Object.fromEntries(names.map((name) => [`MILLRACE_${name}`, ''])))).toEqual(readConfig({}));
  });

  it('tells every fault at once, each by its variable', () => {
    const bad = {
      MILLRACE_DATABASE_URL: 'mysql://x/y',
      MILLRACE_DEFAULT_DATABASE_URL: 'nonsense',
      MILLRACE_SESSION_POOLER: 'yes',
      MILLRACE_PORT: '65536',
      MILLRACE_PUBLIC_URL: 'nowhere',
      MILLRACE_TLS_CERT: '/cert',
      MILLRACE_ROOT_KEY: 'short',
      MILLRACE_SECRET_KEY: 'short',
      MILLRACE_MAX_TASKS: '0',
      MILLRACE_DRAIN: '1.5',
      MILLRACE_LOG_LIMIT: '1025',
      MILLRACE_LEASE: '2s',
      MILLRACE_RETENTION: '1ms',
      MILLRACE_RETENTION_RUNS: '0',
      MILLRACE_RETENTION_EVENTS: 'never',
      MILLRACE_LOG: 'loud',
      MILLRACE_URL: 'nowhere',
      MILLRACE_CHECKPOINT: 'nowhere',
    };
    const paired = Object.keys(bad).filter((name) => name !== 'MILLRACE_TLS_CERT');
    expect(faultsOf(bad)).toEqual([...paired, 'MILLRACE_TLS_KEY'].toSorted());
    expect(faultsOf({ MILLRACE_TLS_KEY: '/key' })).toEqual(['MILLRACE_TLS_CERT']);
  });

  it('keeps the past for a while, or for ever', () => {
    expect(readConfig({}).retention).toEqual({ ageMs: 30 * 86_400_000, runs: 100_000, events: 50_000_000 });
    const said = { MILLRACE_RETENTION: '1w', MILLRACE_RETENTION_RUNS: '10', MILLRACE_RETENTION_EVENTS: 'forever' };
    expect(readConfig(said).retention).toEqual({ ageMs: 7 * 86_400_000, runs: 10, events: null });
    expect(readConfig({ MILLRACE_RETENTION: 'forever' }).retention.ageMs).toBeNull();
  });

  it('does not guess at numbers', () => {
    for (const text of [' ', 'ten', '0x50', '1e3', '8080x', '-0', 'NaN', 'Infinity', '٣'])
      expect(faultsOf({ MILLRACE_PORT: text }), text).toEqual(['MILLRACE_PORT']);
  });

  it('refuses a list of secret keys of which one is too short, or empty: it would open what anyone could seal', () => {
    const good = 'a secret of enough characters';
    expect(readConfig({ MILLRACE_SECRET_KEY: `${good},${good} before` }).secretKeys).toEqual([good, `${good} before`]);
    for (const list of [`${good},`, `,${good}`, `${good},short`, `${good},,${good}`])
      expect(faultsOf({ MILLRACE_SECRET_KEY: list }), list).toEqual(['MILLRACE_SECRET_KEY']);
  });

  it('refuses a root key or secret key that is set and empty, and says how to leave it out', () => {
    for (const name of ['MILLRACE_ROOT_KEY', 'MILLRACE_SECRET_KEY'])
      expect(() => readConfig({ [name]: '' })).toThrow(`${name}: is empty: set a key, or unset the variable`);
  });

  it('refuses a root key that no header can carry, and a secret key with control characters', () => {
    for (const key of [' '.repeat(20), 'sixteen characters', 'sixteen:characters', '\0'.repeat(20), 'ß'.repeat(20)])
      expect(faultsOf({ MILLRACE_ROOT_KEY: key }), key).toEqual(['MILLRACE_ROOT_KEY']);
    for (const key of [' '.repeat(20), '\0'.repeat(20), 'a secret of enough\ncharacters'])
      expect(faultsOf({ MILLRACE_SECRET_KEY: key }), key).toEqual(['MILLRACE_SECRET_KEY']);
  });

  it('does not repeat a secret in what it says (I12)', () => {
    for (const [name, value] of [
      ['MILLRACE_ROOT_KEY', 'hunter2'],
      ['MILLRACE_DATABASE_URL', 'mysql://me:hunter2@x/y'],
    ] as const) {
      try {
        readConfig({ [name]: value });
        expect.unreachable();
      } catch (error) {
        expect(JSON.stringify([String(error), error])).not.toContain('hunter2');
      }
    }
  });
});

describe('the settings that are told to people', () => {
  const told = (env: Record<string, string>) => new Map(readConfig(env).settings.map((each) => [each.name, each]));

  it('show every variable with what it is for, and the defaults that really hold', () => {
    for (const { name, value, set, about } of readConfig({}).settings) {
      expect([name, set]).toEqual([name, false]);
      expect(about).not.toBe('');
      if (value !== null)
        expect({ ...readConfig({ [name]: value }), settings: [] }).toEqual({ ...readConfig({}), settings: [] });
    }
    expect(told({}).get('MILLRACE_LEASE')).toMatchObject({ value: '30s' });
  });

  it('show what is set as it was written, but no secret', () => {
    const settings = told({
      MILLRACE_HOME: 'here',
      MILLRACE_LEASE: '1m',
      MILLRACE_DATABASE_URL: 'postgres://me:hunter2@db:5433/control?password=hunter2&sslmode=require',
      MILLRACE_URL: 'http://me:hunter2@there:8080',
      MILLRACE_ROOT_KEY: 'hunter2hunter2hunter2',
      MILLRACE_SECRET_KEY: 'hunter2hunter2hunter2',
      MILLRACE_KEY: 'hunter2',
    });
    expect(settings.get('MILLRACE_HOME')).toMatchObject({ value: resolve('here'), set: true });
    expect(settings.get('MILLRACE_LEASE')).toMatchObject({ value: '1m', set: true });
    expect(settings.get('MILLRACE_DATABASE_URL')).toMatchObject({ value: 'postgres://me@db:5433/control', set: true });
    expect(settings.get('MILLRACE_ROOT_KEY')).toMatchObject({ value: null, set: true });
    expect(JSON.stringify([...settings.values()])).not.toContain('hunter2');
  });
});
