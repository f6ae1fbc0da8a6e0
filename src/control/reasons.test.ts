/** Reasons are stored and read as data; their sentences may be reworded without any effect on decisions. */
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { because, failedLaunch, makeEntry, makeHost, makeWorld } from '../../test/harness/turns.ts';
import type { decide as actualDecide } from '../launcher/turn.ts';
import { formatCause, formatReason } from './format-reason.ts';
import { type CauseCode, type Reason, readReason, reasonCodes, reasons, storeReason } from './reasons.ts';

const fault = { doing: 'firing', since: 'noon', message: 'boom', hang: { kind: 'no_statement' } } as const;
const memory = { usedMib: 2, limitMib: 1 };
const transaction = { xid: '7', virtualTransaction: '3/4', pid: 5, isPrepared: false };

/** One reason of every cause. */
const samples: { readonly [C in CauseCode]: Reason<C> } = {
  none: { code: 'starting', cause: 'none', data: {} },
  error: { code: 'crashed', cause: 'error', data: { text: 'boom' } },
  other: { code: 'crashed', cause: 'other', data: { text: 'crashed: boom' } },
  no_launcher: { code: 'starting', cause: 'no_launcher', data: {} },
  no_room: { code: 'starting', cause: 'no_room', data: { engine: '1' } },
  hosts_end: { code: 'starting', cause: 'hosts_end', data: { how: 'exit 1', times: 2 } },
  wrong_host: { code: 'starting', cause: 'wrong_host', data: { engine: '1', wanted: '2' } },
  other_version: { code: 'starting', cause: 'other_version', data: { version: '2' } },
  being_changed: { code: 'starting', cause: 'being_changed', data: {} },
  other_scheduler: { code: 'starting', cause: 'other_scheduler', data: { name: null, pid: 7 } },
  proving: { code: 'starting', cause: 'proving', data: { seconds: 5 } },
  parts: { code: 'failing', cause: 'parts', data: { faults: [fault] } },
  transaction: { code: 'waiting_on_transaction', cause: 'transaction', data: transaction },
  migration: { code: 'waiting_on_transaction', cause: 'migration', data: {} },
  locked_tables: { code: 'waiting_on_transaction', cause: 'locked_tables', data: {} },
  position: { code: 'no_slot', cause: 'position', data: { position: 3 } },
  engine_missing: { code: 'no_engine', cause: 'engine_missing', data: { version: '1', available: ['2'] } },
  engine_unusable: { code: 'no_engine', cause: 'engine_unusable', data: { text: 'no' } },
  schema_unfit: { code: 'no_engine', cause: 'schema_unfit', data: { engine: '1', text: 'no' } },
  being_restored: { code: 'no_engine', cause: 'being_restored', data: { engine: '1', text: 'no' } },
  connection_lost: { code: 'unreachable', cause: 'connection_lost', data: { text: 'refused' } },
  no_answer: { code: 'unreachable', cause: 'no_answer', data: { seconds: 4 } },
  lock_connection_lost: { code: 'unreachable', cause: 'lock_connection_lost', data: {} },
  missing_right: { code: 'unreachable', cause: 'missing_right', data: { text: 'denied' } },
  read_only: { code: 'crashed', cause: 'read_only', data: {} },
  installation_table: { code: 'unreachable', cause: 'installation_table', data: { text: 'no' } },
  template: { code: 'not_connectable', cause: 'template', data: {} },
  unnameable: { code: 'not_connectable', cause: 'unnameable', data: {} },
  refuses_connections: { code: 'not_connectable', cause: 'refuses_connections', data: {} },
  host_ended: { code: 'crashed', cause: 'host_ended', data: { how: 'was killed' } },
  host_silent: { code: 'crashed', cause: 'host_silent', data: { seconds: 8 } },
  host_memory: { code: 'crashed', cause: 'host_memory', data: memory },
  host_heap: { code: 'crashed', cause: 'host_heap', data: memory },
  host_left: { code: 'stopping', cause: 'host_left', data: {} },
  late_load: { code: 'crashed', cause: 'late_load', data: { engine: '1', seconds: 60 } },
  late_start: { code: 'crashed', cause: 'late_start', data: { seconds: 60 } },
  probe_unanswered: { code: 'crashed', cause: 'probe_unanswered', data: { seconds: 10 } },
  probe_failed: { code: 'crashed', cause: 'probe_failed', data: { text: 'boom' } },
  told_to_end: { code: 'stopping', cause: 'told_to_end', data: {} },
  withdrawn: { code: 'stopping', cause: 'withdrawn', data: {} },
  cut_off: { code: 'stopping', cause: 'cut_off', data: {} },
};
const all: readonly Reason[] = Object.values(samples);

it.each(all)('A reason of cause $cause is read as it was stored', (reason) => {
  const sentence = formatReason(reason);
  expect(sentence).toMatch(/^[^\n]+$/);
  const why: unknown = JSON.parse(storeReason(reason, sentence) ?? '');
  expect(readReason({ code: reason.code, reason: sentence, why })).toEqual(reason);
});

it('A reason whose sentence an older release has overwritten is read as that sentence', () => {
  const why: unknown = JSON.parse(storeReason(reasons.isTemplate, 'a template') ?? '');
  const former = { code: 'crashed', cause: 'other', data: { text: 'crashed: boom' } };
  expect(readReason({ code: 'crashed', reason: 'crashed: boom', why })).toEqual(former);
  expect(readReason({ code: 'crashed', reason: 'crashed: boom', why: null })).toEqual(former);
  expect(formatReason(samples.other)).toBe('crashed: boom');
});

it('A reason with an unknown cause or invalid data is read as its sentence', () => {
  const read = (cause: string, data: object) =>
    readReason({ code: 'crashed', reason: 'x', why: { code: 'crashed', cause, data, text: 'x' } });
  expect(read('sabotage', {})?.cause).toBe('other');
  expect(read('toString', {})?.cause).toBe('other');
  expect(read('host_silent', { seconds: 'many' })?.cause).toBe('other');
});

it('A sentence of an older host that only repeats the code has no cause', () => {
  expect(readReason({ code: 'starting', reason: 'starting', why: null }, 'error')).toEqual(reasons.starting);
});

it('Texts of servers and engines are stored without characters that PostgreSQL rejects', () => {
  const reason = reasons.error('crashed', `a\0b${'\u{1f600}'.repeat(2_000)}`);
  expect(JSON.stringify(reason)).not.toMatch(/\\u0000|\\ud83d/);
});

type Decide = typeof actualDecide;
let decide: Decide;
let decideReworded: Decide;
beforeAll(async () => {
  ({ decide } = await import('../launcher/turn.ts'));
  vi.resetModules();
  vi.doMock('./format-reason.ts', () => ({
    formatReason: () => 'gibberish',
    formatCause: () => 'gibberish',
    formatPlainReason: () => 'gibberish',
    formatMissingEngine: () => 'gibberish',
    formatHolder: () => 'gibberish',
    formatFreeing: () => 'gibberish',
    formatPreparedEnd: () => 'gibberish',
  }));
  ({ decide: decideReworded } = await import('../launcher/turn.ts'));
});
afterEach(() => void vi.restoreAllMocks());
afterAll(() => vi.doUnmock('./format-reason.ts'));

it.each(all)('The launcher decides the same after a report of cause $cause, however it is worded', (reason) => {
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
  for (const phase of ['starting', 'running', 'ended'] as const) {
    const ordered = { ...failedLaunch, state: 'ALLOCATED', hostId: 'a', ordered: true } as const;
    const entry = { ...makeEntry(ordered), report: { orderNo: 1, hostId: 'a', phase, reason } };
    const plan = (by: Decide) => {
      const { changes, looks, dueAt } = by(makeWorld({ entries: [{ ...entry }], hosts: [makeHost('a')] }));
      return { changes: changes.map(({ launch, isNews }) => ({ launch, isNews })), looks: looks.length, dueAt };
    };
    expect(plan(decideReworded)).toEqual(plan(decide));
  }
});

it('Every code has a sentence of its own', () => {
  const sentences = reasonCodes.map((code) => formatCause(because(code)));
  expect(new Set(sentences).size).toBe(reasonCodes.length);
});
