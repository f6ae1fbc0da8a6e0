/**
 * The benchmarks run from a fresh build and print their results in the documented form: on an embedded PostgreSQL, with nothing
 * else installed, and on Debian's.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ExternalPostgres } from '../harness/external-postgres.ts';
import { needs } from '../harness/services.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const number = expect.any(Number) as number;
const text = expect.any(String) as string;
const percentiles = { n: number, p50: number, p90: number, p99: number, max: number };
const machine = {
  cpu: text,
  cores: number,
  memoryGb: number,
  load: number,
  node: process.version,
  postgres: expect.stringMatching(/^\d+\.\d+$/) as string,
  server: expect.stringMatching(/^PostgreSQL 18\.\d+, embedded$/) as string,
  commit: text,
  date: text,
};
const aim = { what: text, aim: text, measured: text, met: expect.any(Boolean) as boolean };

/** The object in the last line. */
async function bench(...args: string[]): Promise<unknown> {
  const script = `${root}scripts/bench.js`;
  const { stdout } = await promisify(execFile)(process.execPath, [script, ...args, '--quick', '--json'], { cwd: root });
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '');
}

it('dag prints its rate, the rate of PostgreSQL alone, and the ratio of the worst workload', async () => {
  const result = (await bench('dag')) as { rate: number; raw: number; ratio: number };
  expect(result).toMatchObject({ name: 'dag', percentiles: {}, machine, aims: [aim] });
  expect(result.rate).toBeGreaterThan(0);
  expect(result.ratio).toBeCloseTo(result.rate / result.raw);
}, 240_000);

it('handover prints percentiles, in-process and over HTTP', async () => {
  expect(await bench('handover')).toMatchObject({
    name: 'handover',
    rate: null,
    raw: null,
    ratio: null,
    percentiles: { inProcess: percentiles, overHttp: percentiles, hop: percentiles },
    machine,
    aims: [aim, aim, aim, aim, aim],
  });
}, 240_000);

it.each([['catchup', { late: percentiles }, 2]])(
  '%s prints its percentiles and targets',
  async (name, told, aims) => {
    const result = await bench(name);
    expect(result).toMatchObject({ name, percentiles: told, machine, aims: Array.from({ length: aims }, () => aim) });
  },
  240_000,
);

const busFigures = {
  commit: percentiles,
  accepted: percentiles,
  received: percentiles,
  well: percentiles,
  hangs: percentiles,
  drips: percentiles,
  handoverAlone: percentiles,
  handoverSame: percentiles,
  handoverAnother: percentiles,
};

it('bus prints a target for each of its measures, and every event arrives', async () => {
  const result = (await bench('bus')) as { rate: number; raw: number; ratio: number };
  const aims = Array.from({ length: 9 }, () => aim);
  expect(result).toMatchObject({ name: 'bus', percentiles: busFigures, machine, aims });
  expect(result.ratio).toBeCloseTo(result.rate / result.raw);
}, 240_000);

it('errands prints its rate beside that of graphile-worker', async () => {
  const result = (await bench('errands')) as { rate: number; raw: number; ratio: number };
  expect(result).toMatchObject({ name: 'errands', percentiles: { idle: percentiles }, machine, aims: [aim, aim] });
  expect(result.ratio).toBeCloseTo(result.rate / result.raw);
}, 240_000);

const burstFigures = {
  started: percentiles,
  fan: percentiles,
  commitBesideFan: percentiles,
  triggers: percentiles,
  commitBesideTriggers: percentiles,
};

const flowFigures = { idle: percentiles, rivalIdle: percentiles, commit: percentiles };

it('flows prints its rate beside those of DBOS and of PostgreSQL alone, and every execution is done', async () => {
  const result = (await bench('flows')) as { rate: number; raw: number; ratio: number };
  const aims = Array.from({ length: 5 }, () => aim);
  expect(result).toMatchObject({ name: 'flows', percentiles: flowFigures, machine, aims });
  expect(result.ratio).toBeCloseTo(result.rate / result.raw);
}, 240_000);

it('a part of flows prints the targets of that part', async () => {
  expect(await bench('flows', '--part', 'workers')).toMatchObject({ name: 'flows', rate: null, aims: [aim] });
}, 240_000);

it('timers prints the lateness of timers, and the memory of executions that sleep', async () => {
  const memory = { perSecond: number, heapMb: number, residentMb: number };
  expect(await bench('timers')).toMatchObject({
    name: 'timers',
    percentiles: { lateness: percentiles, commit: percentiles },
    details: { memory, burstMs: number },
    machine,
    aims: [aim, aim],
  });
}, 240_000);

describe.skipIf(!needs('docker') || !needs('busybox'))('With a Docker engine', () => {
  it('containers prints its time beside that of docker run, and its rate beside that of plain calls', async () => {
    const result = (await bench('containers')) as { rate: number; raw: number; ratio: number };
    const figures = { millrace: percentiles, dockerRun: percentiles };
    expect(result).toMatchObject({ name: 'containers', percentiles: figures, machine, aims: [aim, aim] });
    expect(result.ratio).toBeCloseTo(result.rate / result.raw);
  }, 240_000);
});

it('an unknown benchmark is refused with the list of benchmarks', async () => {
  await expect(bench('speed')).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/unknown benchmark 'speed'[^]*handover/) as string,
  });
}, 60_000);

describe.skipIf(!needs('postgresql'))('On the server of --database, here Debian’s PostgreSQL 15', () => {
  const server = new ExternalPostgres();
  beforeAll(() => server.create());
  afterAll(() => server.remove());
  const external = { ...machine, server: expect.stringMatching(/^PostgreSQL 1[4-7]\..* of --database/) as string };

  it.each([
    ['dag', {}, 1],
    ['handover', { inProcess: percentiles, overHttp: percentiles, hop: percentiles }, 5],
    ['burst', burstFigures, 3],
    ['bus', busFigures, 9],
    ['flows', flowFigures, 5],
    ['timers', { lateness: percentiles, commit: percentiles }, 2],
  ])(
    '%s tells its percentiles and aims, names the server and leaves no database behind',
    async (name, told, aims) => {
      const result = await bench(name, '--database', server.url('postgres'));
      const promised = { name, percentiles: told, machine: external, aims: Array.from({ length: aims }, () => aim) };
      expect(result).toMatchObject(promised);
      expect(await server.databases()).toEqual(['postgres']);
    },
    240_000,
  );

  it('a benchmark refuses to begin where a database has a name that it needs', async () => {
    await server.run('create database millrace_default');
    await expect(bench('handover', '--database', server.url('postgres'))).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('already has millrace_default') as string,
    });
    expect(await server.databases()).toEqual(['millrace_default', 'postgres']);
  }, 60_000);
});
