import { expect, it } from 'vitest';
import { failedLaunch, makeEntry, makeHost } from '../../../test/harness/turns.ts';
import { SuspectHosts } from './suspect-hosts.ts';

it('a host in which a suspect has run stays marked after the suspect has left, until the host is gone', () => {
  const hosts = [makeHost('a'), makeHost('b')];
  const suspectIn = (hostId: string | null) => [makeEntry({ ...failedLaunch, hostId, suspicion: 1 })];
  const memory = new SuspectHosts();
  const marked = (...[listed, entries]: Parameters<SuspectHosts['mark']>): string[] =>
    memory.mark(listed, entries).flatMap(({ id, hadSuspect }) => (hadSuspect ? [id] : []));
  expect(marked(hosts, suspectIn('a'))).toEqual(['a']);
  expect(marked(hosts, suspectIn(null))).toEqual(['a']);
  expect(marked([makeHost('b')], [])).toEqual([]);
  expect(marked(hosts, [])).toEqual([]);
});
