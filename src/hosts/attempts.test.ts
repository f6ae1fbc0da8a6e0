import { expect, it } from 'vitest';
import { until } from '../../test/harness/until.ts';
import { newId } from '../kernel/id.ts';
import { Attempts } from './attempts.ts';
import type { HostReport, Order } from './host-queries.ts';
import { stopped } from './singleton.ts';

const orders = Array.from({ length: 20 }, (_, i): Order => {
  const name = `t${i}`;
  return { row: { id: newId(), name, database: name, desired: 'on' }, engine: '1.0.0', orderNo: 1 };
});

/** Schedulers that never finish starting, and end when their signal aborts. */
function starting(): { attempts: Attempts; begun: string[]; reports: HostReport[] } {
  const begun: string[] = [];
  const reports: HostReport[] = [];
  const attempts = new Attempts({
    run: ({ row }, _, signal) => {
      begun.push(row.name);
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve(stopped())));
    },
    report: (report) => reports.push(report),
    onEnd: () => {},
  });
  return { attempts, begun, reports };
}

it('an order that is withdrawn while it waits for a start permit ends at once, and its permit is not lost', async () => {
  const { attempts, begun, reports } = starting();
  attempts.follow({ orders: orders, withdrawn: [] });
  await until('16 orders have begun', () => begun.length === 16 || undefined);
  const [waiting, next] = orders.slice(16);
  attempts.follow({ orders: orders.filter((order) => order !== waiting), withdrawn: [] });
  await until('the withdrawn order has ended', () => reports.at(-1)?.phase === 'ended' || undefined);
  expect(reports.at(-1)).toMatchObject({ tenantId: waiting?.row.id, reason: { code: 'stopping' } });
  // an order that had begun is withdrawn: its permit goes to the next order in line
  attempts.follow({ orders: orders.slice(1).filter((order) => order !== waiting), withdrawn: [] });
  await until('the next order has begun', () => begun.length === 17 || undefined);
  expect(begun.at(-1)).toBe(next?.row.name);
  await attempts.stopAll();
  expect(attempts.running).toEqual([]);
  expect(begun).toHaveLength(17);
});

it('an order whose execution throws ends as crashed', async () => {
  const reports: HostReport[] = [];
  const run = (): never => {
    throw new Error('no address');
  };
  const attempts = new Attempts({ run, report: (report) => reports.push(report), onEnd: () => {} });
  attempts.follow({ orders: orders.slice(0, 1), withdrawn: [] });
  await until('it has ended', () => reports.at(-1)?.phase === 'ended' || undefined);
  expect(reports.at(-1)).toMatchObject({ reason: { code: 'crashed', data: { text: 'no address' } } });
  expect(attempts.running).toEqual([]);
});
