import { expect, it } from 'vitest';
import { after, minute, Schedule } from '../../test/harness/scheduling.ts';
import { until } from '../../test/harness/until.ts';
import { withClient } from '../postgres/databases.ts';
import { makeScheduler } from './scheduler.ts';

it('A trigger whose firing the database refuses does not block other triggers, and is not a vital fault', async () => {
  const all = await Schedule.make();
  const scheduler = makeScheduler(all.ctx);
  await scheduler.start();
  try {
    const poisoned = await all.triggered({ start: after(minute) });
    const second = await all.triggered({ start: after(minute) });
    const sound = await all.triggered({ start: after(minute) });
    all.tell(poisoned);
    all.tell(second);
    all.tell(sound);
    await all.waitsFor(after(minute));
    await withClient(all.line.address, (client) =>
      client.query(`
        create function millrace.refuse() returns trigger language plpgsql as $$
        begin
          if new.task_id in (select id from millrace.task where job_id in ('${poisoned.id}', '${second.id}')) then raise 'poisoned'; end if;
          return new;
        end $$;
        create trigger refuse before insert on millrace.live for each row execute function millrace.refuse()`),
    );
    all.line.time.moveTo(after(minute));
    await all.firedAre(sound, [after(minute)]);
    await until('the other was refused', () => all.ctx.faults.some((fault) => /poisoned/.test(String(fault))));
    await all.firedAre(poisoned, []);
    await until('both were refused', () => scheduler.faults?.().length === 1 || undefined);
    expect(scheduler.faults?.()).toEqual([expect.objectContaining({ isVital: false, message: 'poisoned' })]);
    await withClient(all.line.address, (client) => client.query('drop trigger refuse on millrace.live'));
    all.line.time.advance(5_000);
    for (const healed of [poisoned, second]) await all.firedAre(healed, [after(minute)]);
    await until('nothing is refused any more', () => scheduler.faults?.().length === 0 || undefined);
  } finally {
    await scheduler.stop();
    await all.close();
  }
});
