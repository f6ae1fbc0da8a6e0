/**
 * Cleans up after hosts and launchers. A process that has just started the embedded server knows that none is left. A
 * launcher that ends without a successor tells its hosts to leave.
 */
import { pause } from '../../kernel/service.ts';
import { type Db, type Sql, sql } from '../../kernel/sql.ts';
import type { WakeHub } from '../../postgres/wake.ts';
import { formatReason } from '../../control/format-reason.ts';
import { type Reason, reasons, storeReason } from '../../control/reasons.ts';

const hostGone: Reason = { code: 'stopping', cause: 'host_ended', data: { how: null } };

/** Columns of `launch` or `scheduler`. */
function assignReason(reason: Reason): Sql {
  const sentence = formatReason(reason);
  return sql`code = ${reason.code}, reason = ${sentence}, why = ${storeReason(reason, sentence)}::jsonb`;
}

/**
 * Call it when no launcher and no host can be alive: the rows belong to processes that were killed. Their tenants start again at
 * once. Reports stay, as ended, because the next triggers in them are still of use.
 */
export async function forgetProcesses(control: Db): Promise<void> {
  await control.transaction(async (tx) => {
    await tx.exec(sql`update launcher_lease set holder = null, renewed_at = '-infinity', epoch = epoch + 1`);
    await tx.exec(sql`delete from launcher`);
    await tx.exec(sql`delete from host`);
    await tx.exec(sql`delete from slot`);
    await tx.exec(sql`
      update scheduler set phase = 'ended', ${assignReason(hostGone)} where phase <> 'ended'`);
    await tx.exec(sql`
      update launch set state = 'ENABLED', ${assignReason(reasons.starting)} where state <> 'DISABLED'`);
    await tx.exec(sql`
      update launch set host_id = null, ordered = false, ending = false, changed_at = now()
       where state = 'ENABLED' or ordered or ending`);
  });
}

const freshFor = sql`interval '5 seconds'`;
/** A launcher on standby counts: it takes the lease within a moment. */
const anotherLauncher = sql`exists (select from launcher where beat_at > now() - ${freshFor})`;

/**
 * Call it when the last launcher has given up its lease and its hosts are gone: no tenant is STARTED any more, although rows
 * may still say so. The next launcher continues from here.
 */
export async function restEntries(control: Db): Promise<void> {
  await control.exec(sql`
    with rested as (
      update launch
         set state = 'ENABLED', ${assignReason(reasons.noLauncher)}, host_id = null,
             ordered = false, ending = false, changed_at = now()
       where state in ('STARTED', 'ALLOCATED') and not exists (select from host where host.id = launch.host_id)
         and exists (select from launcher_lease where holder is null) and not ${anotherLauncher}
      returning tenant_id
    )
    delete from slot using rested where slot.tenant_id = rested.tenant_id`);
}

/** Tells all hosts to leave, unless another launcher is alive. Returns whether they have left. */
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
