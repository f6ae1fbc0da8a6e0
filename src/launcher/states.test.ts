import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Effect, type LaunchEvent, type LaunchState, type Machine, step } from './states.ts';

const enabled: Machine = { state: 'ENABLED', transaction: null, scheduler: 'none' };
const allocated: Machine = { state: 'ALLOCATED', transaction: null, scheduler: 'none' };
const ordered: Machine = { state: 'ALLOCATED', transaction: null, scheduler: 'ordered' };
const started: Machine = { state: 'STARTED', transaction: null, scheduler: 'ordered' };
const disabled: Machine = { state: 'DISABLED', transaction: null, scheduler: 'none' };
const restart: LaunchEvent = { kind: 'restart', transaction: '77' };

type Line = readonly [
  line: string,
  from: Machine | undefined,
  event: LaunchEvent,
  to: Machine,
  effects: readonly Effect[],
];

/** Every line of the specification's four lists, word for word; "try automatic transitions" is a request for what is missing. */
const specification: Readonly<Record<string, readonly Line[]>> = {
  'Transitions that happen automatically (at least once per poll period).': [
    [
      '`ENABLED->ALLOCATED`: Reserved slot for worker',
      enabled,
      { kind: 'slot_reserved' },
      allocated,
      ['start_scheduler'],
    ],
    ['`ALLOCATED->STARTED`: Scheduler started', ordered, { kind: 'scheduler_started' }, started, []],
    [
      '`STARTED->DISABLED`: Iff scheduler has stopped. Release slot.',
      started,
      { kind: 'scheduler_quit' },
      disabled,
      ['release_slot'],
    ],
  ],
  'Transitions that happen upon getting a STOP MESSAGE:': [
    // but the place in the line for a slot is released as well
    ['`ENABLED->DISABLED`: No action', enabled, { kind: 'stop' }, disabled, ['release_slot']],
    ['`ALLOCATED->DISABLED`: Release slot.', allocated, { kind: 'stop' }, disabled, ['release_slot']],
    // the slot is released when the scheduler has quit
    [
      '`STARTED->DISABLED`: Terminate scheduler & release slot',
      started,
      { kind: 'stop' },
      { ...disabled, scheduler: 'ending' },
      ['terminate_scheduler'],
    ],
    ['`DISABLED->DISABLED`: No Action', disabled, { kind: 'stop' }, disabled, []],
  ],
  'Transitions that happen upon getting a START MESSAGE': [
    [
      'Database not yet registed: Register, set to ENABLED and take ENABLED action below.',
      undefined,
      { kind: 'start' },
      enabled,
      ['reserve_slot'],
    ],
    ['`ENABLED->ENABLED`: Try automatic transitions', enabled, { kind: 'start' }, enabled, ['reserve_slot']],
    ['`ALLOCATED->ALLOCATED`: Try automatic transitions', allocated, { kind: 'start' }, allocated, ['start_scheduler']],
    ['`STARTED->STARTED`: No action', started, { kind: 'start' }, started, []],
    ['`DISABLED->ENABLED`: Try automatic transitions', disabled, { kind: 'start' }, enabled, ['reserve_slot']],
  ],
  'Transitions that happen upon getting a RESTART MESSAGE': [
    [
      'Database not yet registed: Register it set to ENABLED, take ENABLED actions',
      undefined,
      restart,
      { ...enabled, transaction: '77' },
      ['reserve_slot'],
    ],
    [
      '`ENABLED->ENABLED`: Set vxid, try automatic transitions',
      enabled,
      restart,
      { ...enabled, transaction: '77' },
      ['reserve_slot'],
    ],
    [
      '`ALLOCATED->ALLOCATED`: Set vxid, try automatic transitions',
      allocated,
      restart,
      { ...allocated, transaction: '77' },
      ['start_scheduler'],
    ],
    [
      '`STARTED->ALLOCATED`: Terminate scheduler, do /not/ release slot, set vxid, then try automatic transitions',
      started,
      restart,
      { state: 'ALLOCATED', transaction: '77', scheduler: 'ending' },
      ['terminate_scheduler'],
    ],
    [
      '`DISABLED->ENABLED`: Set vxid, try automatic transitions',
      disabled,
      restart,
      { ...enabled, transaction: '77' },
      ['reserve_slot'],
    ],
  ],
};

describe.each(Object.entries(specification))('%s', (_, lines) => {
  it.each(lines)('%s', (_line, from, event, to, effects) => {
    expect(step(from, event)).toEqual({ entry: to, effects });
  });
});

const ending = (state: LaunchState): Machine => ({ state, transaction: null, scheduler: 'ending' });

const beyond: readonly Line[] = [
  [
    'a database that is discovered takes the start action',
    undefined,
    { kind: 'discovered' },
    enabled,
    ['reserve_slot'],
  ],
  ['a registered database is not discovered again', disabled, { kind: 'discovered' }, disabled, []],
  ['STOP of an unregistered tenant registers it', undefined, { kind: 'stop' }, disabled, []],
  [
    'START does not clear the transaction',
    { ...enabled, transaction: '5' },
    { kind: 'start' },
    { ...enabled, transaction: '5' },
    ['reserve_slot'],
  ],
  ['STOP clears the transaction', { ...allocated, transaction: '5' }, { kind: 'stop' }, disabled, ['release_slot']],
  [
    'a newer RESTART waits for its own sender',
    { ...allocated, transaction: '5' },
    restart,
    { ...allocated, transaction: '77' },
    ['start_scheduler'],
  ],
  [
    'a scheduler that has started waits for no transaction',
    { ...ordered, transaction: '5' },
    { kind: 'scheduler_started' },
    started,
    [],
  ],
  ['a scheduler that hangs does not run, and keeps its slot', started, { kind: 'scheduler_hangs' }, ordered, []],
  [
    'a scheduler that hangs while it is ending continues to end',
    ending('ALLOCATED'),
    { kind: 'scheduler_hangs' },
    ending('ALLOCATED'),
    [],
  ],
  [
    'STOP terminates a scheduler that was ordered but does not run yet',
    ordered,
    { kind: 'stop' },
    ending('DISABLED'),
    ['terminate_scheduler'],
  ],
  [
    'RESTART terminates a scheduler that was ordered but does not run yet',
    ordered,
    restart,
    { ...ending('ALLOCATED'), transaction: '77' },
    ['terminate_scheduler'],
  ],
  [
    'the slot is released when a stopped scheduler has ended',
    ending('DISABLED'),
    { kind: 'scheduler_quit' },
    disabled,
    ['release_slot'],
  ],
  [
    'the slot is kept when a restarted scheduler has ended',
    ending('ALLOCATED'),
    { kind: 'scheduler_quit' },
    allocated,
    ['start_scheduler'],
  ],
  [
    'a tenant that was stopped and started again waits in line for a slot',
    ending('ENABLED'),
    { kind: 'scheduler_quit' },
    enabled,
    ['release_slot', 'reserve_slot'],
  ],
  ['START of an ending scheduler waits for its end', ending('DISABLED'), { kind: 'start' }, ending('ENABLED'), []],
  [
    'a late report that an ending scheduler runs changes nothing',
    ending('ALLOCATED'),
    { kind: 'scheduler_started' },
    ending('ALLOCATED'),
    [],
  ],
  [
    'a scheduler that quits before it was seen running counts as started and quit',
    ordered,
    { kind: 'scheduler_quit' },
    disabled,
    ['release_slot'],
  ],
  [
    'START after a quit that was noticed late is not lost',
    step(started, { kind: 'scheduler_quit' }).entry,
    { kind: 'start' },
    enabled,
    ['reserve_slot'],
  ],
  ['a slot that is granted after a stop is released', disabled, { kind: 'slot_reserved' }, disabled, ['release_slot']],
];

describe('cases that the specification leaves open', () => {
  it.each(beyond)('%s', (_line, from, event, to, effects) => {
    expect(step(from, event)).toEqual({ entry: to, effects });
  });
});

/** A model of the environment: slots are granted late, and the host obeys late. */
class Model {
  entry: Machine | undefined;
  slot: 'none' | 'asked' | 'held' = 'none';
  /** The scheduler at the host. */
  scheduler: 'none' | 'ordered' | 'running' | 'ending' = 'none';

  send(event: LaunchEvent): readonly Effect[] {
    const { entry, effects } = step(this.entry, event);
    this.entry = entry;
    for (const effect of effects) this.#perform(effect);
    return effects;
  }

  #perform(effect: Effect): void {
    if (effect === 'reserve_slot') this.slot = this.slot === 'held' ? 'held' : 'asked';
    if (effect === 'release_slot') {
      expect(this.slot).not.toBe('none');
      this.slot = 'none';
    }
    if (effect === 'start_scheduler') {
      expect(this.slot).toBe('held');
      expect(this.scheduler).toBe('none');
    }
    if (effect === 'terminate_scheduler') {
      expect(['ordered', 'running']).toContain(this.scheduler);
      this.scheduler = 'ending';
    }
  }

  act(act: Act): readonly Effect[] {
    return typeof act === 'string' ? this.happen(act) : this.send(act);
  }

  /** An event of the environment, if it is possible now. */
  happen(what: 'grant' | 'order' | 'run' | 'quit'): readonly Effect[] {
    if (what === 'grant' && this.slot === 'asked') {
      this.slot = 'held';
      return this.send({ kind: 'slot_reserved' });
    }
    if (what === 'order' && this.scheduler === 'none' && this.entry?.state === 'ALLOCATED') {
      this.scheduler = 'ordered';
      return this.send({ kind: 'scheduler_ordered' });
    }
    if (what === 'run' && this.scheduler === 'ordered') {
      this.scheduler = 'running';
      return this.send({ kind: 'scheduler_started' });
    }
    if (what === 'quit' && this.scheduler !== 'none') {
      this.scheduler = 'none';
      return this.send({ kind: 'scheduler_quit' });
    }
    return [];
  }

  check(): void {
    const { entry } = this;
    if (entry === undefined) return expect([this.slot, this.scheduler]).toEqual(['none', 'none']);
    const up = entry.state === 'ALLOCATED' || entry.state === 'STARTED';
    expect(this.slot === 'held', 'a tenant holds a slot if it is up or ending').toBe(
      up || entry.scheduler === 'ending',
    );
    expect(this.slot === 'asked').toBe(entry.state === 'ENABLED' && entry.scheduler !== 'ending');
    expect(this.scheduler === 'running').toBe(entry.state === 'STARTED');
    expect(this.scheduler === 'ending').toBe(entry.scheduler === 'ending');
    if (entry.state === 'STARTED' || entry.state === 'DISABLED') expect(entry.transaction).toBeNull();
  }
}

type Act = LaunchEvent | 'grant' | 'order' | 'run' | 'quit';

const acts: fc.Arbitrary<Act[]> = fc.array(
  fc.oneof(
    fc.constantFrom<Act>({ kind: 'discovered' }, { kind: 'start' }, { kind: 'stop' }, 'grant', 'order', 'run', 'quit'),
    fc.option(fc.nat(9).map(String)).map((transaction): Act => ({ kind: 'restart', transaction })),
  ),
  { maxLength: 60 },
);

describe('any sequence of events', () => {
  it('slots and schedulers stay in balance, and messages are obeyed, after any sequence of events', () => {
    fc.assert(
      fc.property(acts, (list) => {
        const model = new Model();
        for (const act of list) {
          const before = model.entry;
          const effects = model.act(act);
          model.check();
          if (before?.state === 'DISABLED' && model.entry?.state !== 'DISABLED')
            expect(act, 'DISABLED is left by a message only').toMatchObject({
              kind: expect.stringMatching(/start/) as unknown,
            });
          if (typeof act === 'string') continue;
          if (act.kind === 'restart') expect(effects).not.toContain('release_slot');
          if (act.kind === 'stop') expect(model.entry?.state).toBe('DISABLED');
          if (act.kind === 'start' && before !== undefined) expect(model.entry?.transaction).toBe(before.transaction);
          if (act.kind === 'start' || act.kind === 'stop') {
            const once = model.entry;
            expect(
              model.send(act).filter((effect) => effect !== 'reserve_slot' && effect !== 'start_scheduler'),
            ).toEqual([]);
            expect(model.entry, 'repeating a message changes nothing').toEqual(once);
            model.check();
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('a started tenant eventually runs after any sequence of events', () => {
    fc.assert(
      fc.property(acts, (list) => {
        const model = new Model();
        for (const act of list) model.act(act);
        model.send({ kind: 'start' });
        if (model.scheduler === 'ending') model.happen('quit');
        for (const act of ['grant', 'order', 'run'] as const) model.happen(act);
        expect(model.entry?.state).toBe('STARTED');
      }),
      { numRuns: 1_000 },
    );
  });
});
