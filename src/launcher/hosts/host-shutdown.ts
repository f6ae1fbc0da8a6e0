/**
 * What becomes of hosts when whoever started them goes: one that starts on an embedded server knows that none is left; a
 * launcher that ends, and has no successor, tells its hosts to leave.
 */
import { pause } from '../../kernel/service.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import type { WakeHub } from '../../postgres/wake.ts';
import { reasons } from '../../control/reasons.ts';

/**
 * No launcher and no host can be alive: what is recorded of them is of others that were killed, and what they ran is to be
 * run again, at once. Words stay, as ended: some things that schedulers said last are still of use.
 */
export async function forgetProcesses(control: Db): Promise<void> {
  await control.transaction(async (tx) => {
    await tx.exec(sql`update launcher_lease set holder = null, renewed_at = '-infinity', epoch = epoch + 1`);
    await tx.exec(sql`delete from launcher`);
    await tx.exec(sql`delete from host`);
    await tx.exec(sql`delete from slot`);
    await tx.exec(sql`
      update scheduler set phase = 'ended', code = 'stopping', reason = 'its host is gone' where phase <> 'ended'`);
    await tx.exec(sql`
      update launch
         set state = case when state = 'DISABLED' then state else 'ENABLED' end,
             code = case when state = 'DISABLED' then code else 'starting' end,
             reason = case when state = 'DISABLED' then reason else 'starting' end,
             host_id = null, ordered = false, ending = false, changed_at = now()
       where state <> 'DISABLED' or ordered or ending`);
  });
}

const freshFor = sql`interval '5 seconds'`;
/** It need not have the lease yet: whoever stands by takes it within a moment. */
const anotherLauncher = sql`exists (select from launcher where beat_at > now() - ${freshFor})`;

/**
 * Whoever had the lease has given it up, nobody has it now, and their hosts are gone: nothing is STARTED, whatever was said.
 * The next launcher goes on from here.
 */
export async function restEntries(control: Db): Promise<void> {
  await control.exec(sql`
    with rested as (
      update launch
         set state = 'ENABLED', code = ${reasons.noLauncher.code}, reason = ${reasons.noLauncher.text}, host_id = null,
             ordered = false, ending = false, changed_at = now()
       where state in ('STARTED', 'ALLOCATED') and not exists (select from host where host.id = launch.host_id)
         and exists (select from launcher_lease where holder is null) and not ${anotherLauncher}
      returning tenant_id
    )
    delete from slot using rested where slot.tenant_id = rested.tenant_id`);
}

/** Tells all hosts to leave, unless another launcher is there for them; answers whether they are gone. */
export async function retireHosts(control: Db, hub: WakeHub, waitMs: number): Promise<boolean> {
  const told = await control.rows<{ id: string }>(sql`
    update host set leaving = true
     where not ${anotherLauncher} and beat_at > now() - ${freshFor}
    returning id`);
  for (const { id } of told) hub.send('orders', id);
  for (const until = performance.now() + waitMs; performance.now() < until; await pause(50)) {
    const left = await control.rows(sql`
      select from host where id = any(${told.map(({ id }) => id)}) and beat_at > now() - ${freshFor}`);
    if (left.length === 0) return true;
  }
  return false;
}
