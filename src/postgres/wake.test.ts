import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeTenantDatabase, type TenantDatabase } from '../../test/harness/tenant-database.ts';
import { until } from '../../test/harness/until.ts';
import { silent } from '../kernel/log.ts';
import { sql } from '../kernel/sql.ts';
import { WakeHub } from './wake.ts';

let database: TenantDatabase;
const hubs: WakeHub[] = [];
beforeAll(async () => {
  database = await makeTenantDatabase();
});
afterEach(async () => {
  for (const hub of hubs.splice(0)) await hub.service.stop();
});
afterAll(() => database.close());

async function startHub(): Promise<WakeHub> {
  const hub = new WakeHub(database.address, silent);
  hubs.push(hub);
  await hub.service.start();
  return hub;
}

/** What a hub hears about a tenant from now on. */
function listen(hub: WakeHub, about = 'tenant', kind: 'ready' | 'events' = 'ready'): string[] {
  const heard: string[] = [];
  hub.on(kind, about, (lanes) => heard.push(lanes === undefined ? '' : lanes.join(' ')));
  return heard;
}

const cut = (): Promise<number> =>
  database.db.exec(sql`
    select pg_terminate_backend(pid, 5000) from pg_stat_activity
     where application_name = 'millrace wake' and datname = current_database()`);
const more = (heard: readonly string[], than = 0) => until('it is heard', () => heard.length > than || undefined);

describe('a wake-up', () => {
  it('reaches this process at once and another by NOTIFY, each once', async () => {
    const [here, there] = [await startHub(), await startHub()];
    const [near, far] = [listen(here), listen(there)];
    here.send('ready', 'tenant', ['process:main']);
    expect(near).toEqual(['process:main']);
    await more(far);
    // what came back of our own NOTIFY would have come before the answer to this
    there.send('ready', 'tenant', ['back']);
    await more(near, 1);
    expect(near).toEqual(['process:main', 'back']);
    expect(far).toEqual(['process:main', 'back']);
  });

  it('is heard by those who listen for its kind and whom it is about, or for whatever it is about', async () => {
    const hub = await startHub();
    const [mine, others, otherKind] = [listen(hub), listen(hub, 'other'), listen(hub, 'tenant', 'events')];
    const any: (string | undefined)[] = [];
    hub.onAny('ready', (about) => any.push(about));
    hub.send('ready', 'tenant');
    hub.send('ready', 'third');
    expect([mine, others, otherKind, any]).toEqual([[''], [], [], ['tenant', 'third']]);
  });

  it('is no longer heard after the listener has left', async () => {
    const hub = await startHub();
    let heard = 0;
    const leave = hub.on('ready', 'tenant', () => heard++);
    hub.send('ready', 'tenant');
    leave();
    leave();
    hub.send('ready', 'tenant');
    expect(heard).toBe(1);
  });

  it('that is sent thousands of times is told to others a few times', async () => {
    const [here, there] = [await startHub(), await startHub()];
    const [far, end] = [listen(there), listen(there, 'tenant', 'events')];
    for (let i = 0; i < 5_000; i++) here.send('ready', 'tenant');
    here.send('events', 'tenant');
    await more(end);
    expect(far.length).toBeGreaterThan(0);
    expect(far.length).toBeLessThan(5);
  });

  it('that a listener throws on still reaches the others, here and there', async () => {
    const [here, there] = [await startHub(), await startHub()];
    for (const hub of [here, there])
      hub.on('ready', 'tenant', () => {
        throw new Error('a bad listener');
      });
    const [near, far] = [listen(here), listen(there)];
    here.send('ready', 'tenant');
    expect(near).toHaveLength(1);
    await more(far);
  });

  it('loses a payload that is too long, and is heard all the same', async () => {
    const [here, there] = [await startHub(), await startHub()];
    const far = listen(there);
    here.send('ready', 'tenant', ['x'.repeat(3_000)]);
    await more(far);
    expect(far).toEqual(['']);
  });

  it('made of nonsense by someone else does no harm', async () => {
    const hub = await startHub();
    const heard = listen(hub);
    const nonsense = ['', ' ', 'a', 'a b', 'x tenant toString', 'x tenant ready {"lanes', 'x tenant ready {"lanes":1}'];
    for (const payload of nonsense) await database.db.exec(sql`select pg_notify('millrace_wake', ${payload})`);
    await more(heard, 1);
    expect(heard).toEqual(['', '']);
  });
});

describe('a lost connection', () => {
  it('is made anew, and everyone is told, because something may have been missed', async () => {
    const [here, there] = [await startHub(), await startHub()];
    const [near, far] = [listen(here), listen(there)];
    await cut();
    await more(near);
    await more(far);
    expect(near[0]).toBe('');
    const before = far.length;
    here.send('ready', 'tenant', ['after']);
    await more(far, before);
    expect(far).toContain('after');
  });

  it('loses no wake-up that was sent meanwhile', async () => {
    const [here, there] = [await startHub(), await startHub()];
    const far = listen(there);
    const cutting = database.db.exec(sql`
      select pg_terminate_backend(pid, 5000) from pg_stat_activity
       where application_name = 'millrace wake' and datname = current_database()
       order by backend_start limit 1`);
    for (let i = 0; i < 200; i++) {
      here.send('ready', 'tenant', [`lane ${i}`]);
      if (i % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await cutting;
    here.send('ready', 'tenant', ['last']);
    await until('all are heard', () => new Set(far).size >= 201 || undefined);
  });
});

describe('the service', () => {
  it('may be started twice at once and stopped twice, and starts again', async () => {
    const hub = new WakeHub(database.address, silent);
    const before = performance.now();
    await Promise.all([hub.service.start(), hub.service.start()]);
    await hub.service.start();
    expect(performance.now() - before).toBeLessThan(3_000);
    await hub.service.stop();
    await hub.service.stop();
    await hub.service.start();
    const heard = listen(await startHub());
    hub.send('ready', 'tenant');
    await more(heard);
    await hub.service.stop();
  });
});
