/** The benchmarks run from a fresh build, with nothing else installed, and print their results in the documented form. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

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
    percentiles: { inProcess: percentiles, overHttp: percentiles },
    machine,
    aims: [aim, aim, aim],
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

it('an unknown benchmark is refused with the list of benchmarks', async () => {
  await expect(bench('speed')).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/unknown benchmark 'speed'[^]*handover/) as string,
  });
}, 60_000);
