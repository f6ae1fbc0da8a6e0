/** What the control database says about conductors. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type ControlDatabase, makeControlDatabase } from '../../test/harness/fresh-database.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import {
  beatConductor,
  type ConductorBeat,
  conductorWarnings,
  listFlowTenants,
  markConductorsLost,
  noteTakenOver,
  readConductorStanding,
} from './conductor-queries.ts';
import { registerTenant } from './queries.ts';

let control: ControlDatabase;
beforeAll(async () => {
  control = await makeControlDatabase();
});
beforeEach(async () => {
  await control.db.exec(sql`delete from conductor`);
});
afterAll(() => control.close());

function beatOf(more: Partial<ConductorBeat> = {}): ConductorBeat {
  const names = { functions: ['f'], tenants: [], tally: undefined };
  return { id: newId(), machine: 'm', pid: 1, version: '1', isKnown: false, ...names, ...more };
}

async function silence(id: string, ms: number): Promise<void> {
  await control.db.exec(sql`
    update conductor set beat_at = beat_at - ${ms} * interval '1 millisecond' where id = ${id}`);
}

it('conductors see each other, their functions and who is silent', async () => {
  const [a, b] = [beatOf(), beatOf({ functions: ['g', 'h'], tenants: [newId()] })];
  await beatConductor(control.db, a);
  await beatConductor(control.db, b);
  const [seen] = (await beatConductor(control.db, { ...a, isKnown: true })).others;
  expect(seen).toMatchObject({ id: b.id, functions: ['g', 'h'], isAlive: true, isNear: false, tenants: [] });
  await silence(b.id, 3_000);
  expect((await beatConductor(control.db, { ...a, isKnown: true })).others[0]).toMatchObject({
    isAlive: true,
    isNear: true,
  });
  await silence(b.id, 3_000);
  expect((await beatConductor(control.db, { ...a, isKnown: true })).others[0]).toMatchObject({
    isAlive: false,
    tenants: b.tenants,
  });
});

it('a conductor that was silent for too long is doubted if another was there meanwhile, and not if it is alone', async () => {
  const [a, b] = [beatOf(), beatOf()];
  await beatConductor(control.db, a);
  await silence(a.id, 60_000);
  expect(await beatConductor(control.db, { ...a, isKnown: true })).toMatchObject({ isDoubted: false });
  await silence(a.id, 6_000);
  await beatConductor(control.db, b);
  expect(await beatConductor(control.db, { ...a, isKnown: true })).toMatchObject({ isDoubted: true });
  expect(await beatConductor(control.db, { ...b, isKnown: true })).toMatchObject({ isDoubted: false });
});

it('a conductor whose row is gone or marked as lost is doubted', async () => {
  const a = beatOf();
  expect(await beatConductor(control.db, { ...a, isKnown: true })).toMatchObject({ isDoubted: true });
  await beatConductor(control.db, a);
  await markConductorsLost(control.db, [a.id]);
  expect(await beatConductor(control.db, { ...a, isKnown: true })).toMatchObject({ isDoubted: true });
});

it('a dead conductor is shown until its tenants are taken over', async () => {
  const [one, two] = [newId(), newId()];
  const [a, b] = [beatOf(), beatOf({ tenants: [one, two] })];
  await beatConductor(control.db, b);
  await markConductorsLost(control.db, [b.id]);
  expect((await beatConductor(control.db, a)).others).toMatchObject([{ id: b.id, tenants: [one, two] }]);
  await noteTakenOver(control.db, one, [b.id]);
  expect((await beatConductor(control.db, a)).others).toMatchObject([{ tenants: [two] }]);
  await noteTakenOver(control.db, two, [b.id]);
  expect((await beatConductor(control.db, a)).others).toEqual([]);
});

it('tenants have work if their schedulers say so, and may have some if these are silent', async () => {
  const ids: Record<string, string> = {};
  const tenants = { idle: ['none', 0, false, null], inbox: ['some', 0, true, null] } as const;
  const timers = {
    near: ['some', 0, false, 30],
    far: ['none', 0, false, 300],
    silent: ['unknown', 60, false, 300],
  } as const;
  const all = { ...tenants, ...timers };
  for (const [name, [, silentS, inbox, dueS]] of Object.entries(all)) {
    const id = newId();
    ids[name] = id;
    await registerTenant(control.db, { id, name, database: name, at: new Date() });
    await control.db.exec(sql`
      insert into scheduler (tenant_id, id, host_id, order_no, phase, engine, changed_at, beat_at, flow_inbox, next_timer_at)
      values (${id}, ${newId()}, ${newId()}, 1, 'running', '0', now(), now() - ${silentS} * interval '1 s', ${inbox},
              now() + ${dueS} * interval '1 s')`);
  }
  const listed = await listFlowTenants(control.db);
  for (const [name, [work]] of Object.entries(all))
    expect([name, listed.find(({ id }) => id === ids[name])?.work]).toEqual([name, work]);
});

it('a warning is given while flows wait and no conductor is alive', async () => {
  const warnings = async (): Promise<string[]> => conductorWarnings(await readConductorStanding(control.db));
  expect(await warnings()).toEqual([expect.stringContaining('no conductor runs')]);
  await beatConductor(control.db, beatOf());
  expect(await warnings()).toEqual([]);
});
