import { expect, it } from 'vitest';
import { readBytes } from '../../documents/values.ts';
import { parseJobText } from '../../jobs/document/parse-job.ts';
import { asWritten } from '../work.ts';
import { docker } from './block.ts';
import { readVolume } from './volume.ts';

function parse(fields: object): ReturnType<typeof parseJobText> {
  const document = { project: 'p', name: 'j', tasks: [{ name: 't', docker: { image: 'i', ...fields } }] };
  return parseJobText(JSON.stringify(document), 'json');
}

it('a document of Waterwheel is stored as before: no field is added', () => {
  const block = docker.build({ image: 'i', args: ['a'], env: ['K=v'] });
  expect(block).toEqual({ kind: 'docker', image: 'i', args: ['a'], env: { K: 'v' } });
  expect(docker.expand(block, asWritten)).toEqual({
    kind: 'docker',
    image: 'i',
    args: ['a'],
    pull: 'missing',
    volumes: [],
  });
});

it('all fields reach the runtime, with placeholders expanded', () => {
  const fields = {
    image: 'i',
    entrypoint: ['e {{x}}'],
    args: ['{{x}}'],
    cwd: '/{{x}}',
    user: '1:2',
    pull: 'never',
    memory: '1GiB',
    cpus: 0.5,
    pids: 10,
    volumes: ['/a:/b:ro', 'cache:/c'],
    network: 'none',
  };
  const texts = { ...asWritten, text: (text: string) => text.replace('{{x}}', 'X') };
  expect(docker.expand(docker.build(fields), texts)).toEqual({
    kind: 'docker',
    image: 'i',
    entrypoint: ['e X'],
    args: ['X'],
    cwd: '/X',
    user: '1:2',
    pull: 'never',
    memoryBytes: 1024 ** 3,
    cpus: 0.5,
    pids: 10,
    volumes: [
      { source: '/a', target: '/b', readOnly: true },
      { source: 'cache', target: '/c', readOnly: false },
    ],
    network: 'none',
  });
});

it.each([
  [{ memory: '5MiB' }, 'memory', 'must be at least 6MiB'],
  [{ memory: '512' }, 'memory', 'whole number with a unit'],
  [{ memory: '1.5GiB' }, 'memory', 'whole number with a unit'],
  [{ cpus: 0 }, 'cpus', ''],
  [{ pids: 0 }, 'pids', ''],
  [{ pull: 'sometimes' }, 'pull', ''],
  [{ volumes: ['/a'] }, 'volumes[0]', 'SOURCE:TARGET'],
  [{ volumes: ['/a:/b:x'] }, 'volumes[0]', ':ro or :rw'],
  [{ volumes: ['../a:/b'] }, 'volumes[0]', 'must begin with an absolute path'],
  [{ volumes: ['/a:b'] }, 'volumes[0]', 'absolute path in the container'],
  [{ volumes: ['/a:/'] }, 'volumes[0]', 'other than /'],
  [{ network: 'container:other' }, 'network', 'the name of a network'],
  [{ entrypoint: [] }, 'entrypoint', ''],
  [{ privileged: true }, 'privileged', ''],
])('the fields %j are refused with their place', (fields, place, message) => {
  const parsed = parse(fields);
  expect(parsed.ok).toBe(false);
  if (parsed.ok) return;
  expect(parsed.faults.map(({ path }) => path)).toEqual([`tasks[0].docker.${place}`]);
  expect(parsed.faults[0]?.message).toContain(message);
});

it.each([
  ['2k', 2_048],
  ['3m', 3 * 1024 ** 2],
  ['3MiB', 3 * 1024 ** 2],
  ['4Gi', 4 * 1024 ** 3],
])('the size %s has %d bytes', (text, bytes) => {
  expect(readBytes(text)).toEqual({ ok: true, value: bytes });
});

it.each(['', '7', '1 MiB', '1MB', '-1k', '1e3', '99999999999999GiB'])('the size "%s" is refused', (text) => {
  expect(readBytes(text).ok).toBe(false);
});

it('a volume is read only if its text says so', () => {
  expect(readVolume('/a:/b:rw')).toMatchObject({ value: { readOnly: false } });
  expect(readVolume('/a:/b:ro')).toMatchObject({ value: { readOnly: true } });
});
